// The owner's words to a `shoal join`: pause, resume, finish, by real processes.
#include <sys/stat.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/os/owner_socket.h"
#include "tests/live/processes.h"

namespace shoal {
namespace {

// Says a word to the join `name`, and what came back.
nlohmann::json say(Processes& swarm, const std::string& name, const std::string& word) {
  swarm.start("say", {"--json", "--home", swarm.path("home-" + name), word});
  EXPECT_EQ(swarm.exit_code("say"), 0) << swarm.errors("say");
  return nlohmann::json::parse(swarm.output("say"), nullptr, false);
}

TEST(LivePauseTest, APausedJoinLeavesTheRunFreesTheDeviceAndComesBackUnderItsKey) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 2, .replicas = 2, .steps = 400, .executor = "kind = \"integer\""}));
  for (const std::string name : {"a", "b", "c", "d"}) swarm.join(name, {"--no-checkpoints"});
  ASSERT_TRUE(swarm.wait_for_event("launch", {"\"event\":\"round_commit\""}, 4)) << swarm.errors("launch");

  const std::string socket = swarm.path("home-a/control");
  struct stat facts {};
  ASSERT_EQ(::stat(socket.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);

  const auto unknown = ask_line(socket, "\xff");
  ASSERT_TRUE(unknown.ok());
  EXPECT_EQ(nlohmann::json::parse(*unknown, nullptr, false)["state"], "unknown") << "a word of any bytes is answered";

  const auto paused = say(swarm, "a", "pause");
  EXPECT_EQ(paused["schema"], "shoal.control/1");
  EXPECT_EQ(paused["state"], "paused") << paused;
  EXPECT_LE(paused["took_s"], 2.0) << paused;
  EXPECT_EQ(paused["process"], swarm.process("a").pid());
  EXPECT_NE(swarm.errors("a").find("paused (by its owner): the device is free"), std::string::npos);
  EXPECT_EQ(say(swarm, "a", "pause")["text"], "it is paused already");
  const int before = swarm.count_events("a", {"\"event\":\"serving\""});
  const auto resumed = say(swarm, "a", "resume");
  EXPECT_EQ(resumed["state"], "resumed");
  ASSERT_TRUE(swarm.wait_for_event("a", {"\"event\":\"serving\""}, before + 1)) << swarm.errors("a");
  EXPECT_EQ(say(swarm, "a", "resume")["text"], "it was not paused");

  EXPECT_EQ(say(swarm, "b", "finish")["state"], "over");
  EXPECT_EQ(swarm.exit_code("b"), 0) << swarm.errors("b");
  EXPECT_FALSE(std::filesystem::exists(swarm.path("home-b/control")));

  swarm.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  EXPECT_EQ(swarm.exit_code("a"), 0) << swarm.errors("a");
  EXPECT_EQ(nlohmann::json::parse(swarm.output("a"))["sessions"], 2);
  EXPECT_EQ(complaints(swarm.audit_events()), "");
}

TEST(LivePauseTest, OutsideItsHoursAJoinPausesUntilItsOwnerWantsItAllTheSame) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .replicas = 1, .steps = 100000}));
  const std::time_t now = std::time(nullptr);
  const int hour = std::gmtime(&now)->tm_hour;  // that of the processes too: TZ is UTC below
  const std::string hours = std::to_string((hour + 2) % 24) + "-" + std::to_string((hour + 3) % 24);
  swarm.start_in_shell("a", "export TZ=UTC0; exec \"$0\" \"$@\"",
                       {"--home", swarm.path("home-a"), "join", swarm.ticket(), "--listen", "127.0.0.1:0", "--no-dht",
                        "--no-checkpoints", "--hours", hours});
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("a.err"), {"paused (outside the hours " + hours + ")"}))
      << swarm.errors("a");
  EXPECT_EQ(say(swarm, "a", "resume")["text"], "resumed: joining again");
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("a.err"), {"serving stage 0"})) << swarm.errors("a");
  EXPECT_EQ(say(swarm, "a", "pause")["state"], "paused");
  EXPECT_EQ(say(swarm, "a", "finish")["state"], "over");
  EXPECT_EQ(swarm.exit_code("a"), 0) << swarm.errors("a");
  swarm.join("b", {"--hours", "8-8"});
  EXPECT_EQ(swarm.exit_code("b"), 65) << swarm.errors("b");
}

TEST(LivePauseTest, ASocketThatADeadJoinLeftIsNoJoinAndTheNextOneReplacesIt) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .replicas = 1, .steps = 100000}));
  swarm.join("a", {"--no-checkpoints"});
  ASSERT_TRUE(swarm.wait_for_event("a", {"\"event\":\"serving\""})) << swarm.errors("a");
  swarm.process("a").send_signal(SIGKILL);
  EXPECT_EQ(swarm.exit_code("a"), 137);
  ASSERT_TRUE(std::filesystem::exists(swarm.path("home-a/control")));
  for (const std::string word : {"pause", "resume", "finish"}) {
    swarm.start("say", {"--home", swarm.path("home-a"), word});
    EXPECT_EQ(swarm.exit_code("say"), 69);
    EXPECT_NE(swarm.errors("say").find("no `shoal join` runs with the home"), std::string::npos) << swarm.errors("say");
  }
  swarm.join("b", {"--no-checkpoints"}, "a");
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("b.err"), {"this machine is peer"})) << swarm.errors("b");
  EXPECT_EQ(say(swarm, "a", "pause")["state"], "paused");
  swarm.process("b").send_signal(SIGTERM);
  EXPECT_EQ(swarm.exit_code("b"), 143) << swarm.errors("b");
}

}  // namespace
}  // namespace shoal
