// Real joins for each of several devices: on the processor twice.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "tests/live/processes.h"

namespace shoal {
namespace {

using testing::HasSubstr;

void join_two(Processes& swarm, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"--json",
                                    "--home",
                                    swarm.path("home"),
                                    "join",
                                    swarm.ticket(),
                                    "--device",
                                    "cpu,cpu",
                                    "--listen",
                                    "127.0.0.1:0",
                                    "--no-dht",
                                    "--no-checkpoints",
                                    "--events",
                                    swarm.path("events/both.jsonl")};
  words.insert(words.end(), more.begin(), more.end());
  swarm.start("both", std::move(words));
}

TEST(LiveJoinEachTest, ListedDevicesServeUnderAKeyEachAndTheirOwnerSpeaksToAll) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 2, .replicas = 2, .steps = 100'000}));
  join_two(swarm);
  for (const std::string stage : {"0", "1"})
    swarm.join("at-" + stage, {"--stage", stage});  // else it holds the last state
  for (const std::string name : {"both-cpu-0", "both-cpu-1", "at-0", "at-1"})
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""})) << swarm.errors("both");
  EXPECT_NE(ScratchFolder::read(swarm.path("home/cpu-0/key")), ScratchFolder::read(swarm.path("home/cpu-1/key")));

  swarm.start("twice", {"--home", swarm.path("home"), "join", swarm.ticket(), "--device", "cpu,cpu"});
  EXPECT_EQ(swarm.exit_code("twice"), 75) << swarm.errors("twice");
  EXPECT_THAT(swarm.errors("twice"), HasSubstr("HINT: --home"));

  swarm.start("say", {"--json", "--home", swarm.path("home"), "pause"});
  EXPECT_EQ(swarm.exit_code("say"), 0) << swarm.errors("say");
  EXPECT_THAT(swarm.output("say"), HasSubstr("\"state\": \"paused\""));
  EXPECT_THAT(swarm.output("say"), HasSubstr("cpu-0: paused (by its owner)"));
  EXPECT_THAT(swarm.output("say"), HasSubstr("\\ncpu-1: paused (by its owner)"));
  swarm.start("say", {"--home", swarm.path("home"), "resume"});
  EXPECT_EQ(swarm.exit_code("say"), 0) << swarm.errors("say");
  for (const std::string name : {"both-cpu-0", "both-cpu-1"})
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"serving\""}, 2)) << swarm.errors("both");

  swarm.start("say", {"--home", swarm.path("home"), "finish"});
  EXPECT_EQ(swarm.exit_code("both"), 0) << swarm.errors("both");
  EXPECT_EQ(swarm.exit_code("say"), 0) << swarm.errors("say");
  EXPECT_THAT(swarm.errors("both"), HasSubstr("cpu-1 ended with exit code 0"));
  EXPECT_THAT(swarm.output("both"), HasSubstr("\"schema\": \"shoal.join_each/1\""));
  EXPECT_THAT(swarm.output("both"), HasSubstr("\"device\": \"cpu-1\""));
  EXPECT_THAT(swarm.output("both"), HasSubstr("\"schema\": \"shoal.join/1\""));
}

TEST(LiveJoinEachTest, ASignalReachesAllOfThem) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .replicas = 2, .steps = 100'000}));
  swarm.join("stays");
  join_two(swarm);
  for (const std::string name : {"both-cpu-0", "both-cpu-1", "stays"})
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""})) << swarm.errors("both");
  swarm.process("both").send_signal(SIGTERM);
  EXPECT_EQ(swarm.exit_code("both"), 143) << swarm.errors("both");
  EXPECT_THAT(swarm.errors("both"), HasSubstr("cpu-0 ended with exit code 143"));
  EXPECT_THAT(swarm.errors("both"), HasSubstr("cpu-1 ended with exit code 143"));
  swarm.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  EXPECT_EQ(swarm.exit_code("stays"), 0) << swarm.errors("stays");
  EXPECT_EQ(complaints(swarm.audit_events()), "");
}

TEST(LiveJoinEachTest, WhatIsRefusedOfAllIsSaidWithItsRemedy) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .replicas = 1}));
  swarm.start("list", {"--home", swarm.path("home"), "join", swarm.ticket(), "--device", "cpu,cuda:99"});
  EXPECT_EQ(swarm.exit_code("list"), 69) << swarm.errors("list");
  EXPECT_THAT(swarm.errors("list"), HasSubstr("device cuda:99: "));
  swarm.start("typo", {"--home", swarm.path("home"), "join", "shoal1:hello", "--device", "cpu,cpu"});
  EXPECT_EQ(swarm.exit_code("typo"), 65) << swarm.errors("typo");
  swarm.start("two", {"--home", swarm.path("home"), "join", swarm.ticket(), "--device", "cpu,cpu", "--advertise",
                      "127.0.0.1:5000", "127.0.0.1:6000"});
  EXPECT_EQ(swarm.exit_code("two"), 64) << swarm.errors("two");
  EXPECT_FALSE(std::filesystem::exists(swarm.path("home"))) << "nothing was begun";
  // No stage 9: each of the two is refused for good.
  join_two(swarm, {"--stage", "9"});
  EXPECT_EQ(swarm.exit_code("both"), 77) << swarm.errors("both");
  EXPECT_THAT(swarm.errors("both"), HasSubstr("cpu-0: shoal: the authority refused us"));
  EXPECT_THAT(swarm.errors("both"), HasSubstr("cpu-1: shoal: the authority refused us"));
}

}  // namespace
}  // namespace shoal
