// Ways in which simpler protocols break, each steered to the turn: C1 to C11 and the races beside them. Stage 0 has
// peers A and B, stage 1 P and Q, stage 2 (where there is one) Z. A run that ends passed every check of hop_world.h;
// the expectations say that it went that way. C3, two lives of a launching process, is in
// tests/sim/takeover_test.cc: logs and links are the product's there.
#include <gtest/gtest.h>

#include "hop_world.h"
#include "ledger_rig.h"

namespace shoal::hop {
namespace {

using Order = std::map<Session, std::vector<Session>>;  // holder -> whom it asks first

Options script(std::uint16_t stages = 2, std::size_t replicas = 2) {
  Options options;
  options.stages = stages;
  options.replicas = replicas;
  options.microbatches = 1;
  options.inner_batch = 1;
  options.delay_min = options.delay_max = 5ms;
  options.job_min = options.job_max = 10ms;
  return options;
}

void prefer(World& world, Order order) {
  world.choose = [order = std::move(order)](const Session& holder, SampleId,
                                            std::span<const Candidate> candidates) -> std::optional<Session> {
    const auto it = order.find(holder);
    if (it == order.end()) return std::nullopt;
    for (const Session& wanted : it->second)
      for (const Candidate& c : candidates)
        if (c.session == wanted) return wanted;
    return std::nullopt;
  };
}

std::string found(const World& world) {
  std::string text;
  for (const std::string& violation : world.violations()) text += "\n  " + violation;
  return text;
}

bool counted(World& world, Actor& peer) {
  return world.run_until([&] { return world.count("counted", peer.self()) > 0; });
}

// A and B both lead to P: A asks Q first, which is leaving, and the trainer takes A for silent as its beats are lost.
struct TwoBranches {
  World world{script()};
  PeerActor &a = world.peer(0, 0), &b = world.peer(0, 1), &p = world.peer(1, 0), &q = world.peer(1, 1);
  Session loser;  // its gradient for the trainer comes too late

  explicit TwoBranches(bool a_wins) : loser(a_wins ? b.self() : a.self()) {
    prefer(world,
           {{world.trainer().self(), {a.self(), b.self()}}, {a.self(), {q.self(), p.self()}}, {b.self(), {p.self()}}});
    q.ledger().set_leaving(true);
    p.job_time[JobKind::kForward] = 3s;
    world.delay_of = [this](const Session& from, const Session& to, const Message& message) -> std::optional<Duration> {
      if (to != world.trainer().self()) return 0ms;
      if (from == a.self() && std::holds_alternative<Progress>(message)) return std::nullopt;
      if (from == loser && std::holds_alternative<Gradient>(message)) return 1s;
      return 0ms;
    };
  }
};

TEST(CounterexamplesTest, C1AttemptNumbersCollide) {
  TwoBranches run(true);
  ASSERT_TRUE(run.world.run()) << found(run.world);
  EXPECT_EQ(run.world.count("forward_sent", run.a.self()), 2u) << "the second attempt of A";
  EXPECT_EQ(run.world.count("joined", run.p.self()), 1u) << "and the trainer's second branch meet in one entry";
  EXPECT_EQ(run.p.ledger().counters().counted, 1u);
  EXPECT_EQ(run.p.ledger().counters().undone, 0u);
  EXPECT_EQ(run.world.count("settled", run.a.self()), 1u);
  EXPECT_EQ(run.world.count("settled", run.b.self()), 0u);
}

TEST(CounterexamplesTest, C2AbortOfASharedEntryEndsOneClaimWhicheverBranchWins) {
  for (const bool a_wins : {true, false}) {
    TwoBranches run(a_wins);
    ASSERT_TRUE(run.world.run()) << found(run.world);
    EXPECT_EQ(run.world.count("settled", (a_wins ? run.a : run.b).self()), 1u);
    EXPECT_EQ(run.world.count("settled", run.p.self()), 1u);
    EXPECT_EQ(run.world.count("undone", run.p.self()), 0u);
    EXPECT_EQ(run.world.count("undone", run.loser) + run.world.count("drop", run.loser), 1u);
    EXPECT_TRUE(run.world.lost().empty());
  }
}

TEST(CounterexamplesTest, C4AnUndoAfterAStepIsExact) {
  Options options = script(2, 2);
  options.microbatches = 2;
  options.may_list = true;
  World world(options);
  PeerActor &a = world.peer(0, 0), &b = world.peer(0, 1), &p = world.peer(1, 0);
  world.choose = [&](const Session& holder, SampleId sample,
                     std::span<const Candidate> candidates) -> std::optional<Session> {
    const Session wanted = holder != world.trainer().self() ? p.self() : sample.value == 0 ? a.self() : b.self();
    for (const Candidate& c : candidates)
      if (c.session == wanted) return wanted;
    return std::nullopt;
  };
  WeightStamp at_undo = 0;
  world.on_event = [&](const Event& event) {
    if (event.name == "counted" && event.who == p.self() && event.microbatch.serial == 1) world.freeze(b);
    if (event.name == "undo" && event.who == p.self()) at_undo = p.device.stamp;
  };
  b.job_time[JobKind::kForward] = 50ms;
  ASSERT_TRUE(world.run_until([&] { return p.device.stamp == 1; }));
  p.ledger().on_session_over(b.self());  // the only claim on microbatch 1
  p.pump();
  ASSERT_TRUE(world.run_until([&] { return world.count("undone", p.self()) > 0; }));
  EXPECT_EQ(at_undo, 1u) << "microbatch 0 stepped; microbatch 1 was made at the stamp before";
  EXPECT_EQ(p.device.window[0] + p.device.window[1], 0u);
  world.thaw(b);
  ASSERT_TRUE(world.run()) << found(world);
}

TEST(CounterexamplesTest, C5AClaimFallsWithItsHolderThoughTheMicrobatchIsOpen) {
  Options options = script(2, 2);
  options.microbatches = 2;
  options.may_list = true;  // the stopped trainer finds the gradient of a claim that fell meanwhile
  World world(options);
  PeerActor &a = world.peer(0, 0), &p = world.peer(1, 0);
  world.fence_after = 1000s;  // nobody ends a session: expiry alone must do it
  prefer(world, {{world.trainer().self(), {a.self()}}, {a.self(), {p.self()}}});
  ASSERT_TRUE(world.run_until([&] { return world.count("counted", p.self()) == 2; }));
  EXPECT_TRUE(p.windows().at(WindowSlot::kA) && p.windows().at(WindowSlot::kB)) << "both windows wait";
  world.freeze(a);
  world.freeze(world.trainer());
  EXPECT_TRUE(world.run_until([&] { return p.ledger().quiet() && !p.device_busy(); }, 5s)) << "L is 4 s";
  EXPECT_EQ(world.count("undo", p.self()), 2u);
  world.thaw(world.trainer());
  EXPECT_TRUE(world.run_until([&] { return world.count("logged") == 2; }, 10s)) << "through B";
  world.thaw(a);
  ASSERT_TRUE(world.run()) << found(world);
}

TEST(CounterexamplesTest, C6WhatACommittedPeerTookWithItIsLostByName) {
  Options options = script(2, 2);
  options.may_list = true;
  World world(options);
  PeerActor& p = world.peer(1, 0);
  world.rounds = false;
  prefer(world, {{world.peer(0, 0).self(), {p.self()}}, {world.peer(0, 1).self(), {p.self()}}});
  ASSERT_TRUE(world.run_until(
      [&] { return world.trainer().book().outstanding().empty() && world.trainer().book().committed() == 1; }));
  EXPECT_EQ(world.trainer().book().undecided(p.self()), 1u) << "acknowledged is not merged: it is followed";
  world.kill(p);
  ASSERT_TRUE(world.run_until([&] { return !world.lost().empty(); }));
  EXPECT_TRUE(world.lost().contains({0, 1}));
  world.rounds = true;
  ASSERT_TRUE(world.run()) << found(world);
  EXPECT_EQ(world.lost().size(), 1u);
}

TEST(CounterexamplesTest, C6ARestartedTrainerRepeatsTheCommitsOfItsLog) {
  World world(script());
  std::size_t before = 0;
  world.delay_of = [&](const Session& from, const Session&, const Message& message) -> std::optional<Duration> {
    if (from == world.trainer().self() && std::holds_alternative<Commit>(message) && world.trainer_lives() == 1)
      return std::nullopt;
    return 0ms;
  };
  ASSERT_TRUE(world.run_until([&] { return world.count("logged") == 1; }));
  before = world.count("settled");
  world.kill_trainer(500ms);
  ASSERT_TRUE(world.run()) << found(world);
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(world.count("settled"), 2u);
  EXPECT_TRUE(world.lost().empty());
}

TEST(CounterexamplesTest, C7TheTimerIsTheHopsAndSurvivesABusyBranch) {
  Options options = script(1, 2);
  World world(options);
  PeerActor &a = world.peer(0, 0), &b = world.peer(0, 1);
  world.fence_after = 1000s;
  prefer(world, {{world.trainer().self(), {a.self(), b.self()}}});
  b.ledger().set_leaving(true);
  world.freeze(a);
  ASSERT_TRUE(world.run_until([&] { return world.count("forward_sent") == 2; }))
      << "the timer opened B, which says Busy";
  world.run_for(500ms);
  b.ledger().set_leaving(false);
  EXPECT_TRUE(world.run_until([&] { return world.count("logged") == 1; }, 3s))
      << "A still stands in the table and is silent";
}

TEST(CounterexamplesTest, C8SilenceIsNotDeath) {
  Options options = script();
  World world(options);
  PeerActor& p = world.peer(1, 0);
  world.fence_after = 1000s;
  world.rounds = false;
  prefer(world, {{world.peer(0, 0).self(), {p.self()}}, {world.peer(0, 1).self(), {p.self()}}});
  world.delay_of = [&](const Session& from, const Session&, const Message& message) -> std::optional<Duration> {
    if (from == p.self() && std::holds_alternative<CommitAck>(message)) return std::nullopt;
    return 0ms;
  };
  ASSERT_TRUE(world.run_until([&] { return world.count("settled", p.self()) == 1; }));
  world.freeze(p);
  world.cut(p.self(), world.trainer().self(), 1s);
  world.run_for(60s);
  EXPECT_TRUE(world.lost().empty()) << "only the authority's word lists";
  world.thaw(p);
  world.rounds = true;
  EXPECT_TRUE(world.run()) << found(world);
}

TEST(CounterexamplesTest, C9AnEntryLostThroughItsOwnHoldersFreezeIsLostByName) {
  Options options = script(3, 1);
  options.may_list = true;
  World world(options);
  PeerActor& a = world.peer(0, 0);
  world.fence_after = 1000s;
  world.delay_of = [&](const Session& from, const Session& to, const Message& message) -> std::optional<Duration> {
    if (from == a.self() && to == world.trainer().self() && std::holds_alternative<Gradient>(message)) return 5s;
    return 0ms;
  };
  ASSERT_TRUE(counted(world, a));
  world.freeze(a);
  ASSERT_TRUE(world.run_until([&] { return world.count("undone") == 2; })) << "P's claim expired, Z was released";
  world.thaw(a);  // in time for the trainer, which renews A's own claim
  ASSERT_TRUE(world.run()) << found(world);
  EXPECT_EQ(world.count("settled", a.self()), 1u);
  EXPECT_EQ(world.lost(), (std::set<std::pair<std::uint64_t, std::uint16_t>>{{0, 1}, {0, 2}}));
}

TEST(CounterexamplesTest, C10NoCommitLeavesBeforeTheLogIsDurable) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {  // where the record is torn differs
    Options options = script();
    options.seed = seed;
    options.job_max = 200ms;
    World world(options);
    ASSERT_TRUE(world.run_until([&] { return !world.trainer().unsynced().empty(); }));
    EXPECT_EQ(world.count("commit_sent"), 0u);
    world.kill_trainer(500ms);
    ASSERT_TRUE(world.run()) << found(world);
  }
}

TEST(CounterexamplesTest, C11AWaitingGradientIsFoundThroughTheSessionsAbove) {
  Options options = script();
  World world(options);
  PeerActor &a = world.peer(0, 0), &b = world.peer(0, 1), &p = world.peer(1, 0), &q = world.peer(1, 1);
  world.fence_after = 1000s;
  prefer(world, {{world.trainer().self(), {a.self(), b.self()}}, {a.self(), {p.self()}}, {b.self(), {q.self()}}});
  q.job_time[JobKind::kForward] = 30s;
  world.on_event = [&](const Event& event) {
    if (event.name == "counted" && event.who == p.self()) world.freeze(a);
  };
  ASSERT_TRUE(world.run_until([&] { return world.count("logged") == 1; }, 4s))
      << "long before Q is done and before P's claim falls";
  EXPECT_EQ(world.count("take", b.self()), 1u);
  EXPECT_EQ(world.count("forward", p.self()), 1u) << "P redid nothing";
  EXPECT_EQ(q.ledger().counters().counted, 0u);
  world.thaw(a);
  ASSERT_TRUE(world.run()) << found(world);
  EXPECT_EQ(world.count("settled", p.self()), 1u);
}

// ---- races ----

TEST(RacesTest, ExpiryAndCommitInOneTurnInBothOrders) {
  for (const bool commit_first : {true, false}) {
    LedgerRig rig;
    const EntrySerial entry = rig.count(2, 0);
    rig.now += 4s;
    if (commit_first) rig.commit(0, {rig.own(entry)});
    rig.ledger.tick(rig.now);
    if (!commit_first) rig.commit(0, {rig.own(entry)});
    const CommitState answer = rig.take_sent<CommitAck>(1).at(0).items.at(0).state;
    EXPECT_EQ(answer, commit_first ? CommitState::kCommitted : CommitState::kGone);
    rig.work_all();
    EXPECT_EQ(rig.windows.stepped().size(), commit_first ? 1u : 0u);
  }
}

TEST(RacesTest, AReleaseThatOvertookItsForwardCostsOneLease) {
  LedgerRig rig;
  rig.release(2, 0);
  const EntrySerial entry = rig.count(2, 0);
  rig.now += 3900ms;
  rig.ledger.tick(rig.now);
  EXPECT_EQ(rig.state(entry), EntryState::kCounted);
  rig.now += 100ms;
  rig.ledger.tick(rig.now);
  rig.work_all();
  EXPECT_TRUE(rig.ledger.quiet());
}

TEST(RacesTest, AForwardRepeatedLateNeverCountsTwice) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.now += 600ms;
  EXPECT_FALSE(rig.forward(2, 0)) << "counted: a repeat";
  rig.commit(0, {rig.own(entry)});
  rig.work_all();
  rig.now += 600ms;
  EXPECT_FALSE(rig.forward(2, 0)) << "committed";
  rig.ledger.secure({entry});
  rig.ledger.on_lows({{naming::kTrainer, 1}});
  EXPECT_FALSE(rig.forward(2, 0)) << "forgotten";
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kClosed));
  EXPECT_EQ(rig.ledger.counters().counted, 1u);
  // After an undo it makes an entry that nobody renews.
  LedgerRig undone;
  undone.count(2, 0);
  undone.release(2, 0);
  undone.work_all();
  EXPECT_TRUE(undone.forward(2, 0));
  undone.now += 4s;
  undone.ledger.tick(undone.now);
  undone.work_all();
  EXPECT_TRUE(undone.ledger.quiet());
}

TEST(RacesTest, AFreezeBetweenGradientAndCommitLosesNothingWithinTheLease) {
  World world(script(2, 1));
  PeerActor& p = world.peer(1, 0);
  ASSERT_TRUE(counted(world, p));
  world.freeze(p);
  ASSERT_TRUE(world.run_until([&] { return world.count("logged") == 1; }));
  world.run_for(5s);  // more than L: renewals and COMMIT wait in its queue, before its timers
  world.thaw(p);
  ASSERT_TRUE(world.run()) << found(world);
  EXPECT_TRUE(world.lost().empty());
  EXPECT_EQ(world.count("settled", p.self()), 1u);
}

TEST(RacesTest, TwoRePointsAtOnceAreHarmless) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  for (const std::uint64_t tag : {3u, 4u}) {
    rig.ledger.on_take(naming::session(tag), Take{naming::id(0), naming::lease(tag, 1), rig.own(entry), {}}, rig.now);
    EXPECT_EQ(rig.take_sent<Gradient>(tag).size(), 1u);
  }
  rig.ledger.on_session_over(naming::session(2));
  rig.release(3, 1);
  EXPECT_EQ(rig.state(entry), EntryState::kCounted) << "the loser releases its own claim only";
  rig.commit(0, {rig.own(entry)});
  EXPECT_EQ(rig.state(entry), EntryState::kCommitted);
}

TEST(RacesTest, AReplacedPeerWhoseOlderSelfStillRunsCountsOnce) {
  Options options = script(2, 1);
  options.microbatches = 4;
  options.may_list = true;
  World world(options);
  PeerActor& older = world.peer(1, 0);
  ASSERT_TRUE(counted(world, older));
  world.end_session(older.self());  // it was fenced and does not know
  EXPECT_TRUE(older.running());
  ASSERT_TRUE(world.run()) << found(world);
  world.run_for(10s);
  EXPECT_TRUE(older.ledger().quiet()) << "nobody renews its claims";
  EXPECT_EQ(world.count("undone", older.self()), world.count("counted", older.self()));
}

}  // namespace
}  // namespace shoal::hop
