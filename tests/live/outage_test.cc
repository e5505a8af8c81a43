// The whole DHT goes away under a running swarm.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/live/processes.h"

namespace shoal {
namespace {

// The processes that any thread of `parent` started.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(parent) + "/task")) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

TEST(LiveOutageTest, WithEveryDhtChildDeadTheSwarmGoesOnAndTakesAPeerIn) {
  Processes swarm;
  const std::string run_file = swarm.write_run(
      {.replicas = 1, .steps = 100'000, .executor = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6"});
  const std::vector<std::string> no_second_start = {"--fault", "dht.spawn=hold:600@2"};
  swarm.launch_as("launch",
                  {run_file, "--dir", swarm.path("run"), "--listen", "127.0.0.1:0", "--fault", no_second_start[1]});
  for (const std::string name : {"a", "b"}) swarm.join_in_dht(name, no_second_start);
  for (const std::string name : {"a", "b"})
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""})) << swarm.errors(name);

  for (const std::string name : {"launch", "a", "b"}) {
    const std::vector<pid_t> children = children_of(swarm.process(name).pid());
    ASSERT_EQ(children.size(), 1u) << name;
    ASSERT_EQ(kill(children.front(), SIGKILL), 0);
  }
  for (const std::string name : {"launch", "a", "b"})
    ASSERT_TRUE(swarm.wait_for_line(swarm.path(name + ".err"), {"fault point dht.spawn strikes"}))
        << swarm.errors(name);

  swarm.join_in_dht("late", {"--fault", "dht.spawn=hold:600"});  // it never has a DHT at all
  ASSERT_TRUE(swarm.wait_for_event("late", {"\"event\":\"settled\""}, 3)) << swarm.errors("late");
  const int committed = swarm.count_events("launch", {"\"event\":\"commit\""});
  ASSERT_TRUE(swarm.wait_for_event("launch", {"\"event\":\"commit\""}, committed + 50)) << swarm.errors("launch");
  for (const std::string name : {"launch", "a", "b", "late"})
    EXPECT_TRUE(children_of(swarm.process(name).pid()).empty()) << name;

  swarm.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  for (const std::string name : {"a", "b", "late"}) EXPECT_EQ(swarm.exit_code(name), 0) << swarm.errors(name);
  EXPECT_EQ(complaints(swarm.audit_events()), "");
}

}  // namespace
}  // namespace shoal
