// An entry whose holder froze and whose microbatch was decided without it: its peer learns so from the trainer, long
// before the claim that nobody can release runs out, and its window and credit are free again. Stages 0, 1 and 2 have
// the peers A and B, P and Q, Y and Z; P freezes when Y has counted for it, and Q leads to Z.
#include <gtest/gtest.h>

#include <algorithm>

#include "hop_world.h"
#include "ledger_rig.h"

namespace shoal::hop {
namespace {

constexpr Duration kHalfLease = 2s;

Options script() {
  Options options;
  options.stages = 3;
  options.microbatches = 1;
  options.inner_batch = 1;
  options.delay_min = options.delay_max = 5ms;
  options.job_min = options.job_max = 10ms;
  return options;
}

struct Bypassed {
  World world{script()};
  PeerActor &a = world.peer(0, 0), &b = world.peer(0, 1), &p = world.peer(1, 0), &q = world.peer(1, 1),
            &y = world.peer(2, 0), &z = world.peer(2, 1);
  std::vector<Session> trainer_prefers{a.self(), b.self()};

  Bypassed() {
    world.fence_after = 1000s;  // nobody ends the frozen session
    const std::map<Session, std::vector<Session>> order = {
        {a.self(), {p.self(), q.self()}}, {b.self(), {q.self()}}, {p.self(), {y.self()}}, {q.self(), {z.self()}}};
    world.choose = [this, order](const Session& holder, SampleId, std::span<const Candidate> candidates) {
      std::optional<Session> chosen;
      const auto wishes = order.find(holder);
      for (const Session& wanted : wishes == order.end() ? trainer_prefers : wishes->second)
        for (const Candidate& c : candidates)
          if (!chosen && c.session == wanted) chosen = wanted;
      return chosen;
    };
  }
  bool freeze_p_when_y_counted() {
    if (!world.run_until([&] { return world.count("counted", y.self()) == 1; })) return false;
    world.freeze(p);
    return true;
  }
  bool y_undone() const { return world.count("undone", y.self()) == 1; }
  bool ends_clean() {
    world.thaw(p);
    const bool sound = world.run();
    for (const std::string& violation : world.violations()) ADD_FAILURE() << violation;
    return sound && world.lost().empty() && world.count("settled", y.self()) == 0 &&
           world.count("settled", z.self()) == 1;
  }
};

TEST(OrphansTest, AWindowDoesNotWaitALeaseForAMicrobatchThatIsDecidedElsewhere) {
  Bypassed run;
  ASSERT_TRUE(run.freeze_p_when_y_counted());
  EXPECT_TRUE(run.world.run_until([&] { return run.y_undone(); }, kHalfLease));
  EXPECT_EQ(run.world.count("logged"), 1u);
  EXPECT_EQ(run.world.count("undo", run.y.self(), "expired"), 0u);
  EXPECT_TRUE(run.y.ledger().quiet());
  EXPECT_TRUE(run.ends_clean());
}

// Y asks while Q's backward still runs: it is told at the decision, not when it asks again.
TEST(OrphansTest, WhoAskedBeforeTheDecisionIsToldWithIt) {
  Bypassed run;
  run.q.job_time[JobKind::kBackward] = 700ms;
  std::size_t asked = 0;
  run.world.delay_of = [&](const Session&, const Session& to, const Message& message) -> std::optional<Duration> {
    if (std::holds_alternative<Waiting>(message) && to == run.world.trainer().self() && asked++ > 0)
      return std::nullopt;
    return 0ms;
  };
  ASSERT_TRUE(run.freeze_p_when_y_counted());
  ASSERT_TRUE(run.world.run_until([&] { return run.world.count("logged") == 1; }, kHalfLease));
  EXPECT_GE(asked, 1u);
  EXPECT_FALSE(run.y_undone()) << "nothing is undone before the path is durable";
  EXPECT_TRUE(run.world.run_until([&] { return run.y_undone(); }, 200ms));
  EXPECT_TRUE(run.ends_clean());
}

// The holder above the frozen one is out of the race as well, and knows nothing of the decision.
TEST(OrphansTest, TheTrainerAnswersWhenTheHolderAboveIsGone) {
  Bypassed run;
  ASSERT_TRUE(run.world.run_until([&] { return run.world.count("counted", run.y.self()) == 1; }));
  run.world.freeze(run.p);
  run.world.freeze(run.a);
  EXPECT_TRUE(run.world.run_until([&] { return run.y_undone(); }, kHalfLease));
  EXPECT_EQ(run.world.count("settled", run.b.self()), 1u);
  run.world.thaw(run.a);
  EXPECT_TRUE(run.ends_clean());
}

// The trainer that knew of it died: the next one is asked.
TEST(OrphansTest, ARestartedTrainerIsAskedUnderItsNewSession) {
  Bypassed run;
  ASSERT_TRUE(run.freeze_p_when_y_counted());
  run.world.kill_trainer(300ms);
  EXPECT_TRUE(run.world.run_until([&] { return run.y_undone(); }, kHalfLease));
  EXPECT_EQ(run.world.count("undo", run.y.self(), "expired"), 0u);
  EXPECT_TRUE(run.ends_clean());
}

// Stage 0's holder is the trainer itself: what the last one had opened at A, the next one decides through B.
TEST(OrphansTest, WhatADeadTrainerHeldIsClosedByTheNextOnesDecision) {
  Bypassed run;
  World& world = run.world;
  world.delay_of = [&](const Session&, const Session& to, const Message& message) -> std::optional<Duration> {
    if (std::holds_alternative<Gradient>(message) && to == world.trainer().self() && world.trainer_lives() == 1)
      return std::nullopt;
    return 0ms;
  };
  ASSERT_TRUE(world.run_until([&] { return world.count("counted", run.a.self()) == 1; }));
  run.trainer_prefers = {run.b.self()};
  world.rounds = false;  // the low-water mark would close it as well
  world.kill_trainer(300ms);
  EXPECT_TRUE(world.run_until([&] { return world.count("undone", run.a.self()) == 1; }, kHalfLease));
  EXPECT_EQ(world.count("undo", run.a.self(), "expired"), 0u);
  EXPECT_EQ(world.count("settled", run.b.self()), 1u);
  world.rounds = true;
  EXPECT_TRUE(world.run());
  EXPECT_TRUE(world.lost().empty());
}

// What wins is never closed by the answer: here Y itself is on the path, its COMMITs are lost, and it asks.
TEST(OrphansTest, TheAnswerSettlesWhoWon) {
  Bypassed run;
  World& world = run.world;
  const Session trainer = world.trainer().self();
  bool asked = false;
  world.delay_of = [&](const Session&, const Session& to, const Message& message) -> std::optional<Duration> {
    if (std::holds_alternative<Waiting>(message) && to == trainer) asked = true;
    if (std::holds_alternative<Commit>(message) && to == run.y.self() && !asked) return std::nullopt;
    return 0ms;
  };
  world.on_event = [&](const Event& event) {
    if (event.name == "counted" && event.who == run.a.self()) world.freeze(run.p);
  };
  ASSERT_TRUE(world.run_until([&] { return world.count("logged") == 1; }));
  EXPECT_TRUE(world.run_until([&] { return world.count("settled", run.y.self()) == 1; }, 4s));
  EXPECT_TRUE(asked);
  EXPECT_EQ(world.count("undone"), 0u);
  world.thaw(run.p);
  EXPECT_TRUE(world.run());
  EXPECT_TRUE(world.lost().empty());
}

// A loser that holds the winner's child by the only claim that still stands: the child hears of the COMMIT in front of
// the Release.
TEST(OrphansTest, AClosedEntryTellsTheWinnersChildBeforeItReleasesIts) {
  LedgerRig rig(1, 3);
  rig.list(2, {70});
  const EntrySerial entry = rig.accept(2, 0);
  rig.work_all();
  EXPECT_EQ(rig.state(entry), EntryState::kBelow);
  const std::vector<EntryName> path{naming::entry_name(60, 1), naming::entry_name(70, 1)};
  rig.commit(0, path);
  std::vector<std::size_t> kinds;  // of what the child was told
  for (const LedgerRig::Sent& item : rig.sent)
    if (item.to == naming::session(70)) kinds.push_back(item.message.index());
  EXPECT_EQ(kinds, (std::vector{Message(Forward{}).index(), Message(Commit{}).index(), Message(Release{}).index()}));
  const auto told = rig.take_sent<Commit>(70);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].items.at(0).microbatch, naming::id(0));
  EXPECT_EQ(told[0].items.at(0).path, std::vector(path.begin() + 1, path.end()));
  EXPECT_FALSE(rig.courier.hops().holds(naming::id(0)));
  rig.commit(0, path);  // once more: nothing to close
  EXPECT_TRUE(rig.take_sent<Commit>(70).empty());
}

}  // namespace
}  // namespace shoal::hop
