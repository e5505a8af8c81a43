// A swarm with its directory: the DHT's children beside every process, on loopback.
#include <csignal>
#include <map>

#include "tests/live/processes.h"

namespace shoal {
namespace {

TEST(LiveDirectoryTest, ARunThatMovedGoesOnAndAStrangerSeesItsPeers) {
  Processes swarm;
  const std::string run_file = swarm.write_run(
      {.replicas = 1, .steps = 100'000, .executor = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6"});
  swarm.launch_as("launch", {run_file, "--dir", swarm.path("run"), "--listen", "127.0.0.1:0"});
  const std::string ticket = swarm.ticket();
  for (const std::string name : {"a", "b"}) swarm.join_in_dht(name);
  for (const std::string name : {"a", "b"})
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""})) << swarm.errors(name);
  swarm.start("inspect", {"--json", "inspect", ticket, "--seconds", "5"});
  EXPECT_EQ(swarm.exit_code("inspect"), 0) << swarm.errors("inspect");
  EXPECT_NE(swarm.output("inspect").find("\"live\""), std::string::npos) << swarm.output("inspect");

  swarm.process("launch").send_signal(SIGKILL);
  ASSERT_EQ(swarm.exit_code("launch"), 128 + SIGKILL);
  const auto settled = [&](const std::string& name) { return swarm.count_events(name, {"\"event\":\"settled\""}); };
  const std::map<std::string, int> before = {{"a", settled("a")}, {"b", settled("b")}};
  // On another port: the ticket's address is dead.
  swarm.launch_as("launch", {"--resume", swarm.path("run"), "--listen", "127.0.0.1:0"});
  EXPECT_NE(swarm.ticket(), ticket);
  for (const std::string name : {"a", "b"})
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""}, before.at(name) + 20)) << swarm.errors(name);
  swarm.process("launch").send_signal(SIGINT);
  for (const std::string name : {"a", "b"}) EXPECT_EQ(swarm.exit_code(name), 0) << swarm.errors(name);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  EXPECT_EQ(complaints(swarm.audit_events()), "");
}

}  // namespace
}  // namespace shoal
