// Table 3.1 of the protocol, row by row: one hop seen by its holder. The holder is session 1, peers of the next stage are 10, 11, 12.
#include "router/courier.h"

#include <gtest/gtest.h>

#include "names.h"

namespace shoal {
namespace {

using namespace naming;

// Asks peers in the order of the list, so that tests can name them.
class FirstOfList final : public RoutingPolicy {
 public:
  std::optional<Session> pick(SampleId, std::span<const Candidate> candidates) const override {
    return candidates.empty() ? std::nullopt : std::optional(candidates.front().session);
  }
};

class CourierTest : public testing::Test, private CourierPort {
 protected:
  struct Out {
    Session to;
    Message message;
  };

  static constexpr std::uint64_t kA = 10, kB = 11, kC = 12;

  void open(std::uint64_t serial = 0, std::optional<GradientHint> hint = {}) {
    HopSpec spec;
    spec.microbatch = id(serial);
    spec.sample = SampleId(serial);
    spec.to = StageId(1);
    spec.above = {session(99), session(1)};
    spec.hint = hint;
    courier.open(std::move(spec), now);
  }
  template <class T>
  std::vector<std::pair<Session, T>> take_out() {
    std::vector<std::pair<Session, T>> result;
    std::erase_if(out, [&](const Out& item) {
      const T* message = std::get_if<T>(&item.message);
      if (message != nullptr) result.emplace_back(item.to, *message);
      return message != nullptr;
    });
    return result;
  }
  // The one Forward since the last call.
  std::pair<Session, Forward> asked() {
    auto all = take_out<Forward>();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? std::pair<Session, Forward>{} : all[0];
  }
  bool asked_nobody() { return take_out<Forward>().empty(); }
  void busy(std::uint64_t tag, const Lease& lease, BusyReason why = BusyReason::kNoCredit) {
    courier.on_busy(session(tag), Busy{lease, why, 0}, now);
  }
  void progress(std::uint64_t tag, const Lease& lease, HopPhase phase) {
    courier.on_heard(session(tag), now);
    courier.on_progress(session(tag), Progress{{{lease, phase}}, 0}, now);
  }
  void gradient(std::uint64_t tag, const Lease& lease, std::uint64_t token_serial = 5) {
    Gradient message;
    message.lease = lease;
    message.microbatch = id(0);
    message.path = {token(tag, token_serial)};
    if (courier.wants(session(tag), message, now)) courier.on_gradient(session(tag), message, {}, now);
  }
  // Time passes in ticks; `alive` peers are heard all the time.
  void pass(Duration time, std::vector<std::uint64_t> alive = {kA, kB, kC}) {
    for (const TimePoint end = now + time; now < end;) {
      now += 20ms;
      for (const std::uint64_t tag : alive) courier.on_heard(session(tag), now);
      courier.tick(now);
    }
  }
  void measure(Duration took) {  // of everybody, so that deadlines are 3 x this
    for (const std::uint64_t tag : {kA, kB, kC})
      for (int i = 0; i < 8; ++i)
        for (const HopKind kind : {HopKind::kForward, HopKind::kBackward}) rates.observe(session(tag), kind, took);
  }

  TimePoint now = at(0s);
  std::vector<Session> serving = {session(kA), session(kB), session(kC)};
  std::vector<Out> out;
  std::vector<TransferId> dropped;
  std::vector<std::pair<MicrobatchId, bool>> parked;
  std::vector<Gradient> won;
  std::optional<Session> unreachable;
  TransferId next_transfer = 1;
  FirstOfList policy;
  HopRates rates;
  Courier courier{port(), policy, rates, session(1)};

 private:
  CourierPort& port() { return *this; }
  std::vector<Session> candidates(StageId) override { return serving; }
  std::uint64_t low_of(std::uint64_t) override { return 3; }
  Result<TransferId> send_forward(const Session& to, Forward message) override {
    if (unreachable == to) return make_error(ErrorCode::kUnreachable, "no link");
    out.push_back({to, std::move(message)});
    return next_transfer++;
  }
  void send(const Session& to, Message message) override { out.push_back({to, std::move(message)}); }
  void drop_transfer(const Session&, TransferId transfer) override { dropped.push_back(transfer); }
  void on_won(const MicrobatchId&, const Gradient& gradient, std::vector<Bytes>) override { won.push_back(gradient); }
  void on_parked(const MicrobatchId& microbatch, StageId, bool is) override { parked.emplace_back(microbatch, is); }
  void event(std::string_view, const MicrobatchId&, const Session&, const Lease&, std::string_view) override {}
};

TEST_F(CourierTest, OpeningSendsAForwardUnderANewLease) {
  open(0);
  const auto [to, forward] = asked();
  EXPECT_EQ(to, session(kA));
  EXPECT_EQ(forward.lease.session, session(1));
  EXPECT_EQ(forward.above.back(), session(1));
  EXPECT_EQ(forward.low, 3u);
  EXPECT_EQ(forward.budget_ms, 20000u) << "nothing is measured yet";
  EXPECT_TRUE(courier.waiting(id(0)));
  open(1);
  EXPECT_NE(asked().second.lease, forward.lease);
}

TEST_F(CourierTest, TheTimerOpensASecondBranchAndTheFirstStays) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(2900ms);
  EXPECT_TRUE(asked_nobody());
  pass(200ms);
  const auto [to, second] = asked();
  EXPECT_EQ(to, session(kB));
  EXPECT_TRUE(take_out<Release>().empty());
  EXPECT_TRUE(rates.suspected(session(kA)));
  EXPECT_EQ(courier.counters().timers, 1u);
  gradient(kA, first);
  EXPECT_EQ(courier.won_by(id(0)), session(kA)) << "the first one may still win";
}

TEST_F(CourierTest, AThirdBranchReleasesTheOldestAndOnlyTheOldest) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(3100ms);
  const Lease second = asked().second.lease;
  pass(3100ms);
  const auto [to, third] = asked();
  EXPECT_EQ(to, session(kC));
  const auto released = take_out<Release>();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].first, session(kA));
  EXPECT_EQ(released[0].second.lease, first);
  EXPECT_EQ(released[0].second.why, ReleaseWhy::kCrowded);
  gradient(kB, second);
  EXPECT_EQ(courier.won_by(id(0)), session(kB)) << "the second one's claim still stands";
}

TEST_F(CourierTest, ASilentPeerFiresTheTimerAfterASecondWhateverItsDeadline) {
  open();
  const Lease first = asked().second.lease;
  progress(kA, first, HopPhase::kBelow);
  pass(5s, {kA});
  EXPECT_TRUE(asked_nobody()) << "it waits for a later stage: no deadline runs";
  pass(1100ms, {});
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(CourierTest, EachPhaseHasADeadlineOfItsOwnThatNewsRestart) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(2s);
  progress(kA, first, HopPhase::kBackward);
  pass(2900ms);
  EXPECT_TRUE(asked_nobody());
  progress(kA, first, HopPhase::kBackward);  // the same again is no news
  pass(200ms);
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(CourierTest, BusyAsksAnotherAtOnceAndStopsTheTransfer) {
  open();
  const auto [to, first] = asked();
  busy(kA, first.lease);
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(dropped, std::vector<TransferId>{1});
  EXPECT_TRUE(take_out<Release>().empty()) << "it never had a claim";
}

TEST_F(CourierTest, WhenAllAreBusyItAsksAgainAfterABackoff) {
  open();
  for (const std::uint64_t tag : {kA, kB, kC}) busy(tag, asked().second.lease);
  EXPECT_TRUE(asked_nobody());
  pass(100ms);
  EXPECT_EQ(take_out<Forward>().size(), 1u);
  EXPECT_TRUE(parked.empty()) << "busy is not parked";
}

TEST_F(CourierTest, GoneAndTheEndOfASessionAskAnother) {
  open();
  courier.on_gone(session(kA), Gone{asked().second.lease}, now);
  EXPECT_EQ(asked().first, session(kA)) << "gone is no refusal: the same peer may be asked";
  serving = {session(kB)};
  courier.on_session_over(session(kA), now);
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(CourierTest, AnswersUnderALeaseOfAnotherSessionAreIgnored) {
  open();
  const Lease lease = asked().second.lease;
  busy(kB, lease);
  courier.on_gone(session(kB), Gone{lease}, now);
  gradient(kB, lease);
  EXPECT_TRUE(won.empty());
  EXPECT_TRUE(asked_nobody());
}

TEST_F(CourierTest, HaveStopsTheTransferAndTheDeadline) {
  measure(1s);
  open();
  const Lease lease = asked().second.lease;
  courier.on_have(session(kA), Have{lease}, now);
  EXPECT_EQ(dropped, std::vector<TransferId>{1});
  pass(20s);
  EXPECT_TRUE(asked_nobody());
}

TEST_F(CourierTest, TheFirstGradientWinsAndTheOthersAreReleased) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(3100ms);
  const Lease second = asked().second.lease;
  gradient(kA, first);
  ASSERT_EQ(won.size(), 1u);
  EXPECT_EQ(won[0].path, (std::vector{token(kA, 5)}));
  const auto released = take_out<Release>();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].second.lease, second);
  EXPECT_EQ(released[0].second.why, ReleaseWhy::kLost);
  gradient(kA, first);
  EXPECT_EQ(won.size(), 1u) << "a repeat";
  EXPECT_TRUE(take_out<Release>().empty());
  gradient(kB, second);
  EXPECT_EQ(take_out<Release>().at(0).second.why, ReleaseWhy::kLate);
  pass(60s, {});
  EXPECT_TRUE(asked_nobody()) << "a won hop has no timer";
  EXPECT_EQ(rates.in_flight(session(kA)) + rates.in_flight(session(kB)), 0u);
}

TEST_F(CourierTest, BusyOrGoneOfTheWonClaimChangesNothing) {
  open();
  const Lease lease = asked().second.lease;
  gradient(kA, lease);
  busy(kA, lease);
  courier.on_gone(session(kA), Gone{lease}, now);
  courier.on_session_over(session(kA), now);
  EXPECT_TRUE(asked_nobody());
  EXPECT_EQ(courier.won_by(id(0)), session(kA));
}

TEST_F(CourierTest, CloseReleasesEveryChild) {
  measure(1s);
  open();
  pass(3100ms);
  courier.close(id(0), ReleaseWhy::kOver);
  EXPECT_EQ(take_out<Release>().size(), 2u);
  EXPECT_FALSE(courier.holds(id(0)));
  EXPECT_EQ(rates.in_flight(session(kA)) + rates.in_flight(session(kB)), 0u);
}

TEST_F(CourierTest, CommitTellsTheWinnerOnceAndStopsRenewing) {
  open();
  const Lease lease = asked().second.lease;
  EXPECT_TRUE(courier.renewals().at(session(kA)).at(0).want);
  gradient(kA, lease);
  EXPECT_FALSE(courier.renewals().at(session(kA)).at(0).want);
  courier.commit(id(0));
  courier.commit(id(0));
  const auto commits = take_out<Commit>();
  ASSERT_EQ(commits.size(), 1u);
  EXPECT_EQ(commits[0].second.items.at(0).path, (std::vector{token(kA, 5)}));
  EXPECT_TRUE(courier.renewals().empty());
}

// A beat or a repeated gradient of the winner that crossed the COMMIT was answered Release, which could overtake it and undo the winner.
TEST_F(CourierTest, LateWordsOfACommittedWinnerAreNotAnsweredWithARelease) {
  open();
  const Lease lease = asked().second.lease;
  gradient(kA, lease);
  courier.commit(id(0));
  progress(kA, lease, HopPhase::kBackward);
  gradient(kA, lease);
  EXPECT_TRUE(take_out<Release>().empty());
  courier.forget_below(kTrainer, 0);
  EXPECT_TRUE(courier.holds(id(0)));
  courier.forget_below(kTrainer, 1);
  EXPECT_FALSE(courier.holds(id(0)));
  progress(kA, lease, HopPhase::kBackward);
  EXPECT_EQ(take_out<Release>().size(), 1u) << "below low nothing can be undone by it";
}

TEST_F(CourierTest, ForgetBelowKeepsWhatIsNotCommitted) {
  open(0);
  courier.forget_below(kTrainer, 10);
  EXPECT_TRUE(courier.holds(id(0)));
}

TEST_F(CourierTest, ADeadLinkFiresAtOnceAndTheChildStays) {
  open();
  const Lease first = asked().second.lease;
  courier.on_link_down(session(kB), now);
  EXPECT_TRUE(asked_nobody());
  courier.on_link_down(session(kA), now);
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_TRUE(take_out<Release>().empty());
  gradient(kA, first);
  EXPECT_EQ(won.size(), 1u);
}

TEST_F(CourierTest, WaitingGivesTheHintToAYoungerChild) {
  measure(1s);
  open();
  pass(3100ms);
  (void)take_out<Forward>();
  courier.on_waiting(session(70), Waiting{id(0), token(70, 2), session(kA)}, now);
  const auto hints = take_out<Hint>();
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_EQ(hints[0].first, session(kB));
  EXPECT_EQ(hints[0].second.where.token, token(70, 2));
  EXPECT_TRUE(asked_nobody());
}

TEST_F(CourierTest, WaitingWithoutAYoungerChildAsksAnotherWithTheHintAndAtMostThreeStand) {
  measure(1s);
  open();
  pass(3100ms);
  (void)take_out<Forward>();
  courier.on_waiting(session(70), Waiting{id(0), token(70, 2), session(kB)}, now);
  const auto [to, forward] = asked();
  EXPECT_EQ(to, session(kC));
  EXPECT_EQ(forward.hint->token, token(70, 2));
  EXPECT_TRUE(take_out<Release>().empty()) << "a re-point may be the third";
  serving.push_back(session(13));
  courier.on_waiting(session(70), Waiting{id(0), token(70, 2), session(kC)}, now);
  EXPECT_EQ(asked().first, session(13));
  EXPECT_EQ(take_out<Release>().at(0).first, session(kA));
}

TEST_F(CourierTest, WaitingAboutAStrangerOrAWonHopIsIgnored) {
  open();
  const Lease lease = asked().second.lease;
  courier.on_waiting(session(70), Waiting{id(0), token(70, 2), session(kC)}, now);
  EXPECT_TRUE(out.empty()) << "session C was never asked";
  courier.on_waiting(session(70), Waiting{id(8), token(70, 2), session(kA)}, now);
  EXPECT_TRUE(out.empty());
  gradient(kA, lease);
  courier.on_waiting(session(70), Waiting{id(0), token(70, 2), session(kA)}, now);
  EXPECT_TRUE(out.empty());
}

TEST_F(CourierTest, AHintMakesATakeInsteadOfAForward) {
  open(0, GradientHint{session(kC), token(kC, 4)});
  EXPECT_TRUE(asked_nobody());
  const auto takes = take_out<Take>();
  ASSERT_EQ(takes.size(), 1u);
  EXPECT_EQ(takes[0].first, session(kC));
  courier.take(id(0), GradientHint{session(kC), token(kC, 4)}, now);
  EXPECT_TRUE(take_out<Take>().empty()) << "a claim there stands already";
  courier.on_gone(session(kC), Gone{takes[0].second.lease}, now);
  EXPECT_EQ(asked().first, session(kA)) << "gone there: a plain Forward";
}

TEST_F(CourierTest, ATakeMayBeTheThirdChildAndNotTheFourth) {
  measure(1s);
  open();
  pass(3100ms);
  courier.take(id(0), GradientHint{session(kC), token(kC, 4)}, now);
  EXPECT_TRUE(take_out<Release>().empty());
  courier.take(id(0), GradientHint{session(13), token(13, 4)}, now);
  EXPECT_EQ(take_out<Release>().size(), 1u);
  EXPECT_EQ(courier.renewals().size(), 3u);
}

TEST_F(CourierTest, ARejectedGradientAsksAnotherPeer) {
  open();
  const Lease lease = asked().second.lease;
  gradient(kA, lease);
  courier.reject(id(0), "not finite", now);
  EXPECT_TRUE(courier.waiting(id(0)));
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(take_out<Release>().at(0).second.lease, lease);
  EXPECT_TRUE(rates.suspected(session(kA)));
}

TEST_F(CourierTest, WithoutAnyPeerItParksSaysSoAndGoesOn) {
  serving.clear();
  open();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_TRUE(parked[0].second);
  EXPECT_EQ(courier.parked(), 1u);
  pass(3s, {});
  EXPECT_EQ(parked.size(), 1u) << "said once";
  serving = {session(kB)};
  pass(1100ms, {});
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(courier.parked(), 0u);
  EXPECT_FALSE(parked.back().second);
}

TEST_F(CourierTest, APeerThatCannotBeReachedCountsAsBusy) {
  unreachable = session(kA);
  open();
  EXPECT_TRUE(asked_nobody());
  pass(60ms);
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(rates.in_flight(session(kA)), 0u);
}

TEST_F(CourierTest, AnOldDeadChildDoesNotKeepAHopFromAskingAgain) {
  measure(1s);
  serving = {session(kA), session(kB)};
  open();
  (void)asked();
  pass(1100ms, {kB});  // A is dead
  const Lease second = asked().second.lease;
  busy(kB, second);
  EXPECT_TRUE(asked_nobody());
  pass(120ms, {kB});
  EXPECT_EQ(asked().first, session(kB)) << "A is overdue: B is asked again as soon as its Busy is over, not after a deadline of A";
}

TEST_F(CourierTest, WithOneReplicaTheHopKeepsItsOverdueChild) {
  measure(1s);
  serving = {session(kA)};
  open();
  const Lease lease = asked().second.lease;
  pass(30s, {});
  EXPECT_TRUE(asked_nobody());
  EXPECT_TRUE(take_out<Release>().empty());
  gradient(kA, lease);
  EXPECT_EQ(won.size(), 1u);
}

TEST_F(CourierTest, ThousandsOfHopsLeaveNothingBehind) {
  for (std::uint64_t serial = 0; serial < 2000; ++serial) {
    open(serial);
    gradient(kA, asked().second.lease);
    courier.commit(id(serial));
  }
  courier.forget_below(kTrainer, 2000);
  EXPECT_EQ(courier.size(), 0u);
  EXPECT_TRUE(courier.renewals().empty());
  EXPECT_EQ(rates.in_flight(session(kA)), 0u);
}

}  // namespace
}  // namespace shoal
