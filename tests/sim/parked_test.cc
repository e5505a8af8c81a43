// A stage that nobody serves for minutes: the run says which and why, holds what it holds and no more, and goes on by
// itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/checkers.h"
#include "tests/quiet_log.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

constexpr std::uint64_t kMicrobatches = 400;

SwarmOptions one_peer_a_stage() {
  SwarmOptions options;
  options.stages = 2;
  options.replicas = 1;
  options.config = small_config(RuleId::kDiloco, options.stages, kMicrobatches);
  return options;
}

class ParkedTest : public Quiet<testing::Test> {};

// Its only peer is fenced, and holds the only copy of the stage's state: it comes back with it.
TEST_F(ParkedTest, WhenTheOnlyHolderOfAStageIsFrozenTheRunWaitsForItAndGoesOn) {
  Swarm swarm(one_peer_a_stage());
  swarm.run_for(8s);
  const Session frozen = swarm.peers()[1]->peer->session();
  ASSERT_EQ(swarm.peers()[1]->peer->report().stage, StageId(1));
  ASSERT_GT(swarm.peers()[1]->peer->stage_peer()->version().value, 0u) << "no round yet: anybody could begin anew";
  EXPECT_EQ(swarm.launch()->parked_text(), "");
  swarm.freeze_peer(1);
  swarm.run_for(30s);
  const std::uint64_t committed = swarm.launch()->book().committed();
  ASSERT_LT(committed, kMicrobatches);
  const std::size_t open = swarm.launch()->book().open();
  swarm.run_for(180s);
  const std::string parked = swarm.launch()->parked_text();
  EXPECT_NE(parked.find("stage 1 has no serving peer that holds version"), std::string::npos) << parked;
  EXPECT_NE(parked.find(short_name(frozen)), std::string::npos) << "who held it last: " << parked;
  EXPECT_NE(parked.find("no known copy of it is left"), std::string::npos) << parked;
  EXPECT_NE(parked.find("brings it back when it reaches this process again"), std::string::npos) << parked;
  EXPECT_EQ(parked.find("stage 0"), std::string::npos) << parked;
  EXPECT_EQ(told(swarm, "parked: stage 1 has no serving peer"), 1u)
      << "once, however long it lasts: " << ::testing::PrintToString(swarm.notices());
  EXPECT_LE(told(swarm, "lost: "), 1u) << "one line for all that went with the session";
  EXPECT_EQ(swarm.launch()->book().committed(), committed);
  EXPECT_EQ(swarm.launch()->book().open(), open) << "nothing piles up";
  EXPECT_LE(open, in_flight_of(one_peer_a_stage().config));
  EXPECT_EQ(check_counting(swarm), std::vector<std::string>{});
  swarm.resume_peer(1);
  swarm.run_for(20s);
  EXPECT_EQ(swarm.launch()->parked_text(), "");
  EXPECT_GT(swarm.launch()->book().committed(), committed);
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(swarm.summary().committed, kMicrobatches);
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
}

// A line a session, however many of its microbatches are lost; each of them is an event.
TEST_F(ParkedTest, WhatIsLostWithASessionIsOneLine) {
  SwarmOptions options = one_peer_a_stage();
  options.keep_events = true;
  Swarm swarm(std::move(options));
  swarm.run_for(8s);
  ASSERT_EQ(swarm.peers()[1]->peer->report().stage, StageId(1));
  swarm.kill_peer(1);
  swarm.run_for(60s);
  const auto lost = std::count_if(swarm.events().begin(), swarm.events().end(),
                                  [](const SimEvent& event) { return event.event == EventKind::kLost; });
  ASSERT_GT(lost, 3);
  EXPECT_EQ(told(swarm, "lost: " + std::to_string(lost) + " microbatches of session"), 1u);
  EXPECT_EQ(told(swarm, "lost: "), 1u);
}

// One that comes to a stage whose state nobody holds.
TEST_F(ParkedTest, AJoinerThatWaitsForAStateSaysSoOnce) {
  Swarm swarm(one_peer_a_stage());
  swarm.run_for(8s);
  swarm.kill_peer(1);
  swarm.run_for(30s);
  const std::size_t joiner = swarm.peers().size();
  swarm.add_peer();
  swarm.run_for(300s);
  const auto& lines = swarm.peers()[joiner]->notices;
  const auto waits = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("waiting for state: ") != std::string::npos;
  });
  EXPECT_EQ(waits, 1);
  EXPECT_LE(lines.size(), 4u) << ::testing::PrintToString(lines);
}

// Before any round a stage's state is its seed: whoever comes may begin it.
TEST_F(ParkedTest, BeforeTheFirstRoundANewPeerIsEnough) {
  Swarm swarm(one_peer_a_stage());
  swarm.run_for(500ms);
  swarm.kill_peer(1);
  swarm.run_for(180s);
  EXPECT_EQ(swarm.launch()->parked_text(), "waiting: stage 1 has no serving peer");
  swarm.add_peer();
  ASSERT_TRUE(swarm.run_to_end(600s));
  EXPECT_EQ(swarm.summary().committed, kMicrobatches);
  EXPECT_EQ(check_end(swarm), std::vector<std::string>{});
}

}  // namespace
}  // namespace shoal
