// A holder that nobody of the next stage answers says so, and the holder above asks another replica: once, and never
// because a stage is slow.
#include <map>

#include "courier_rig.h"
#include "hop_world.h"
#include "ledger_rig.h"

namespace shoal {
namespace {

using namespace naming;

// ---- at the holder ----
class StrandedTest : public CourierRig {
 protected:
  void measure_answers(Duration took) {
    for (const std::uint64_t tag : {kA, kB, kC})
      for (int i = 0; i < 8; ++i) neighbours.observe(session(tag), HopKind::kAnswer, took);
  }
  // One beat period of a child that says where its claim stands.
  void beat(std::uint64_t tag, const Lease& lease, HopPhase phase, std::vector<std::uint64_t> alive = {kA, kB, kC}) {
    progress(tag, lease, phase);
    pass(250ms, std::move(alive));
  }
};

TEST_F(StrandedTest, AHopThatNobodyAnswersIsStrandedAfterWhatFirstWordsTake) {
  measure_answers(1s);
  open();
  pass(2900ms, {});
  EXPECT_FALSE(courier.hops().stranded(id(0)));
  pass(200ms, {});
  EXPECT_TRUE(courier.hops().stranded(id(0)));
  EXPECT_TRUE(courier.stranded());
  EXPECT_EQ(courier.counters().stranded, 1u);
}

// One direction of a pair is open: it is heard, but says nothing about what it was sent.
TEST_F(StrandedTest, ToBeHeardIsNoAnswer) {
  measure_answers(1s);
  open();
  pass(3100ms, {kA, kB, kC});
  EXPECT_TRUE(courier.hops().stranded(id(0)));
}

TEST_F(StrandedTest, WhileNothingIsMeasuredItWaitsLonger) {
  open();
  pass(HopRates::kDeadlineUnknown - 1s, {});
  EXPECT_FALSE(courier.hops().stranded(id(0)));
  pass(2s, {});
  EXPECT_TRUE(courier.hops().stranded(id(0)));
}

TEST_F(StrandedTest, ASlowChildWithBeatsIsNotStranded) {
  measure_answers(10ms);
  serve({kA});
  open();
  const Lease lease = asked().second.lease;
  for (int i = 0; i < 60; ++i) beat(kA, lease, HopPhase::kForward);
  for (int i = 0; i < 2400; ++i) {
    beat(kA, lease, HopPhase::kBelow);
    ASSERT_FALSE(courier.hops().stranded(id(0)));
  }
  EXPECT_EQ(courier.counters().stranded, 0u);
  EXPECT_EQ(courier.counters().branches, 0u);
}

TEST_F(StrandedTest, BusyIsAnAnswer) {
  measure_answers(10ms);
  serve({kA});
  open();
  for (int i = 0; i < 1000; ++i) {
    for (const auto& [to, forward] : take_out<Forward>()) busy(kA, forward.lease);
    pass(20ms, {kA});
  }
  EXPECT_EQ(courier.counters().stranded, 0u);
}

TEST_F(StrandedTest, AHolderThatWasStoppedItselfIsNotStranded) {
  measure_answers(10ms);
  open();
  pass(1s, {});
  now += 30s;
  pass(200ms, {});
  EXPECT_FALSE(courier.hops().stranded(id(0)));
}

TEST_F(StrandedTest, WithNobodyToAskItIsParkedAndNotStranded) {
  measure_answers(10ms);
  serve({});
  open();
  pass(60s, {});
  EXPECT_FALSE(courier.hops().stranded(id(0)));
  serve({kA});
  pass(1200ms, {kA});
  EXPECT_EQ(asked().first, session(kA));
  EXPECT_FALSE(courier.hops().stranded(id(0))) << "its wait begins when there is somebody";
}

TEST_F(StrandedTest, WhileNobodyAnswersEveryHopIsStrandedFromItsBeginningUntilSomebodyDoes) {
  measure_answers(10ms);
  open(0);
  pass(3s, {});
  ASSERT_TRUE(courier.stranded());
  open(1);
  pass(20ms, {});
  EXPECT_TRUE(courier.hops().stranded(id(1)));
  const auto forwards = take_out<Forward>();
  busy(forwards.back().first.peer_tag, forwards.back().second.lease);
  pass(20ms, {});
  EXPECT_FALSE(courier.stranded());
  EXPECT_FALSE(courier.hops().stranded(id(1)));
  EXPECT_TRUE(courier.hops().stranded(id(0))) << "nobody said a word about that one";
  pass(5s, {});
  ASSERT_TRUE(courier.stranded());
  courier.on_link_up(remote_of(kA), now);
  EXPECT_FALSE(courier.stranded()) << "a link came up";
}

// ---- at the holder above ----
TEST_F(StrandedTest, AStrandedChildIsLeftForAnotherOnce) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  progress(kA, first, HopPhase::kBelow);
  progress(kA, first, HopPhase::kStranded);
  const auto [to, second] = asked();
  EXPECT_EQ(to, session(kB));
  EXPECT_TRUE(take_out<Release>().empty()) << "its claim stays: it may be reached again";
  EXPECT_TRUE(health.suspected(session(kA)));
  EXPECT_TRUE(health.why_not(session(kA), now) == WhyNot::kResting);
  for (int i = 0; i < 40; ++i) {
    progress(kA, first, HopPhase::kStranded);
    beat(kB, second.lease, HopPhase::kBelow);
  }
  EXPECT_TRUE(asked_nobody());
  EXPECT_EQ(courier.counters().branches, 1u);
  EXPECT_FALSE(courier.hops().stranded(id(0)));
  gradient(kB, second.lease);
  ASSERT_EQ(won.size(), 1u);
  const auto released = take_out<Release>();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].second.lease, first) << "the branch that lost is undone";
}

TEST_F(StrandedTest, WithoutAnotherReplicaItsClaimIsKeptAndOthersAreAskedWhenTheyCome) {
  serve({kA});
  open();
  const Lease first = asked().second.lease;
  progress(kA, first, HopPhase::kBelow);
  for (int i = 0; i < 40; ++i) beat(kA, first, HopPhase::kStranded, {kA});
  EXPECT_TRUE(asked_nobody());
  EXPECT_TRUE(take_out<Release>().empty());
  progress(kA, first, HopPhase::kBelow);
  EXPECT_FALSE(health.suspected(session(kA))) << "the stage after it answered it again";
  pass(2s, {kA});
  serve({kA, kB});
  pass(2s, {kA});
  EXPECT_TRUE(asked_nobody()) << "it is well again: nobody else is needed";
  progress(kA, first, HopPhase::kStranded);
  EXPECT_EQ(asked().first, session(kB));
}

TEST_F(StrandedTest, AnOlderChildThatIsStrandedOpensNoBranch) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(3100ms);
  const Lease second = asked().second.lease;
  progress(kB, second, HopPhase::kBelow);
  progress(kA, first, HopPhase::kStranded);
  EXPECT_TRUE(asked_nobody());
  EXPECT_EQ(courier.counters().branches, 1u);
}

// Each is asked once at once. To ask one again costs it another computation, so that is done ever more rarely.
TEST_F(StrandedTest, ThreeThatAreAllStrandedAreNotAskedInTurnForEver) {
  open();
  std::vector<TimePoint> times;
  std::map<std::uint64_t, Lease> claims;
  std::vector<std::uint64_t> whom;
  const auto answer = [&] {
    for (const auto& [to, forward] : take_out<Forward>()) {
      times.push_back(now);
      whom.push_back(to.peer_tag);
      claims[to.peer_tag] = forward.lease;
    }
    for (const auto& [to, release] : take_out<Release>())
      std::erase_if(claims, [&](const auto& claim) { return claim.second == release.lease; });
    for (const auto& [tag, lease] : std::map(claims)) progress(tag, lease, HopPhase::kStranded);
  };
  for (int turn = 0; turn < 4 * 120; ++turn) {
    answer();
    pass(250ms);
  }
  ASSERT_GE(times.size(), 6u) << "they are asked again";
  EXPECT_LE(times[2] - times[0], 1s) << "each once at once";
  EXPECT_LE(times.size(), 30u) << "and not with each beat of two minutes";
  answer();
  const std::size_t before = times.size();
  ASSERT_EQ(claims.size(), 2u);
  const std::uint64_t dropped = !claims.contains(kA) ? kA : !claims.contains(kB) ? kB : kC;
  health.rejoined(session(dropped));
  for (int turn = 0; turn < 8 && whom.size() == before; ++turn) {
    pass(250ms);
    answer();
  }
  ASSERT_EQ(whom.size(), before + 1) << "the next stage answers that one again: no wait";
  EXPECT_EQ(whom.back(), dropped);
}

// None of this stage reaches the next one: another holder above may know one that does.
TEST_F(StrandedTest, AHopWhoseChildrenAreAllStrandedIsStrandedAlthoughTheyAnswer) {
  measure_answers(10ms);
  serve({kA, kB});
  open();
  const Lease first = asked().second.lease;
  progress(kA, first, HopPhase::kStranded);
  const Lease second = asked().second.lease;
  for (int i = 0; i < 16; ++i) {
    progress(kA, first, HopPhase::kStranded);
    beat(kB, second, HopPhase::kStranded);
  }
  EXPECT_TRUE(courier.hops().stranded(id(0)));
  EXPECT_FALSE(courier.stranded()) << "they do answer";
}

// Its tensors are no good, or it hands on what is none: the microbatch waits for no word that helps it.
TEST_F(StrandedTest, AHopThatEverybodyRefusesAsUnusableIsStrandedAlthoughTheyAnswer) {
  measure_answers(10ms);
  serve({kA});
  open();
  for (int i = 0; i < 80 && !courier.hops().stranded(id(0)); ++i) {
    for (const auto& [to, forward] : take_out<Forward>()) busy(kA, forward.lease, BusyReason::kFailed);
    pass(250ms, {kA});
  }
  EXPECT_TRUE(courier.hops().stranded(id(0)));
}

// ---- at the stranded peer ----
TEST(StrandedLedgerTest, TheHoldersAreToldThatAnEntryIsStrandedAndThatItIsNotAnyMore) {
  LedgerRig rig(0, 2);
  rig.list(1, {60});
  rig.accept(1, 1);
  rig.work();
  const auto pass = [&](Duration time) {
    for (const TimePoint end = rig.now + time; rig.now < end;) rig.courier.tick(rig.now += 20ms);
  };
  const auto phase = [&] { return rig.ledger.progress().at(session(1)).at(0).phase; };
  pass(HopRates::kDeadlineUnknown - 1s);
  EXPECT_EQ(phase(), HopPhase::kBelow);
  pass(2s);
  EXPECT_EQ(phase(), HopPhase::kStranded);
  const auto forwards = rig.take_sent<Forward>(60);
  ASSERT_FALSE(forwards.empty());
  rig.courier.on_message({peer(60), session(60), PeerRole::kPeer}, Have{forwards.back().lease}, 0, rig.now);
  pass(20ms);
  EXPECT_EQ(phase(), HopPhase::kBelow);
}

TEST(StrandedLedgerTest, ALinkToTheNextStageIsAWordAndOneToAnotherStageIsNone) {
  LedgerRig rig(0, 3);
  rig.list(1, {60});
  rig.accept(1, 1);
  rig.work();
  for (const TimePoint end = rig.now + HopRates::kDeadlineUnknown + 1s; rig.now < end;)
    rig.courier.tick(rig.now += 20ms);
  ASSERT_TRUE(rig.courier.stranded());
  rig.courier.on_link_up({peer(70), session(70), PeerRole::kPeer}, rig.now);
  EXPECT_TRUE(rig.courier.stranded());
  rig.courier.on_link_up({peer(60), session(60), PeerRole::kPeer}, rig.now);
  EXPECT_FALSE(rig.courier.stranded());
}

}  // namespace

// ---- all of them ----
namespace hop {
namespace {

enum class Way { kBoth, kDown, kUp };

class StrandedWorldTest : public testing::TestWithParam<Way> {};

// The trainer prefers A, and A and stage 1 cannot meet from the beginning.
TEST_P(StrandedWorldTest, EachMicrobatchTakesOneBranchMoreAndCountsOnce) {
  Options options;
  options.stages = 3;
  World world(options);
  const Session a = world.peer(0, 0).self();
  const std::set<Session> next = {world.peer(1, 0).self(), world.peer(1, 1).self()};
  world.choose = [&](const Session& holder, SampleId, std::span<const Candidate> candidates) -> std::optional<Session> {
    if (holder != world.trainer().self()) return std::nullopt;
    for (const Candidate& c : candidates)
      if (c.session == a) return a;
    return std::nullopt;
  };
  world.delay_of = [&](const Session& from, const Session& to, const Message&) -> std::optional<Duration> {
    if (GetParam() != Way::kUp && from == a && next.contains(to)) return std::nullopt;
    if (GetParam() != Way::kDown && to == a && next.contains(from)) return std::nullopt;
    return 5ms;
  };
  const bool sound = world.run();
  for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
  EXPECT_TRUE(sound);
  EXPECT_TRUE(world.lost().empty());
  EXPECT_EQ(world.count("settled", a), 0u);
  EXPECT_EQ(world.count("settled", world.peer(0, 1).self()), options.microbatches);
  EXPECT_EQ(world.trainer().courier().counters().branches, options.microbatches);
}

INSTANTIATE_TEST_SUITE_P(Ways, StrandedWorldTest, testing::Values(Way::kBoth, Way::kDown, Way::kUp),
                         [](const auto& way) {
                           return way.param == Way::kBoth ? "Both" : way.param == Way::kDown ? "Down" : "Up";
                         });

}  // namespace
}  // namespace hop
}  // namespace shoal
