// Peers of unequal memory, and memory that ends in the middle of passes, by real processes.
#include <gmock/gmock.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/live/processes.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr char kPacedPasses[] = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6";

nlohmann::json told_by(const Processes& swarm, const std::string& name) {
  return nlohmann::json::parse(swarm.output(name), nullptr, false);
}

// A first stage whose graphs, of microbatches in flight, take more than its layers.
TEST(LiveMemoryTest, PeersOfUnequalMemoryKeepUnlikeGraphsAndAgree) {
  Processes swarm;
  swarm.write_run({});  // its text
  const std::string file = swarm.write_file("unlike.toml",
                                            "[run]\nname = \"unlike\"\n[model]\nlayers = 4\ndim = 64\nheads = 4\n"
                                            "positions = 64\n[data]\npath = \"text.bin\"\nsequences = 8\n"
                                            "validation_samples = 4\n[pipeline]\nstages = 2\nreplicas = 2\n"
                                            "in_flight = 16\nrebalance = \"off\"\n[sync]\nrule = \"allreduce\"\n"
                                            "microbatches_per_step = 8\n[end]\nsteps = 100000\n");
  const auto planned = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--json", "plan", file});
    swarm.start("plan", std::move(more));
    EXPECT_EQ(swarm.exit_code("plan"), 0) << swarm.errors("plan");
    return told_by(swarm, "plan")["by_stage"];
  };
  const auto free = planned({});
  EXPECT_EQ(free[0]["recompute"], "none");
  const auto needed = free[0]["bytes"]["needed"].get<std::uint64_t>();
  const auto graphs = free[0]["microbatches"].get<std::uint64_t>() * free[0]["bytes"]["graph"].get<std::uint64_t>();
  const auto short_of_it = planned({"--memory", std::to_string(needed - graphs / 2)});
  EXPECT_NE(short_of_it[0]["recompute"], "none") << short_of_it;
  EXPECT_EQ(short_of_it[0]["microbatches"], free[0]["microbatches"]) << short_of_it;
  EXPECT_EQ(short_of_it[1]["recompute"], "none") << short_of_it;

  swarm.launch(file);
  swarm.join("little", {"--stage", "0", "--memory", "40", "--no-checkpoints"});
  swarm.join("much", {"--stage", "0", "--memory", "1000", "--no-checkpoints"});
  swarm.join("last", {"--stage", "1", "--no-checkpoints"});
  for (const std::string name : {"little", "much"}) {
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""})) << swarm.errors(name);
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"anchor\""}, 4)) << swarm.errors(name);
  }
  swarm.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  for (const std::string name : {"little", "much", "last"})
    EXPECT_EQ(swarm.exit_code(name), 0) << name << swarm.errors(name);
  EXPECT_THAT(swarm.errors("little"),
              HasSubstr("--memory allows 40 MiB beside the program; recompute = \"auto\" takes \""));
  EXPECT_THAT(swarm.errors("little"), HasSubstr("\", since \"none\" needs "));
  EXPECT_THAT(swarm.errors("much"), HasSubstr("recompute = \"auto\" takes \"none\""));
  for (const std::string name : {"little", "much"}) {
    EXPECT_EQ(told_by(swarm, name)["sessions"], 1) << "its anchor differed: " << swarm.errors(name);
    EXPECT_GT(told_by(swarm, name)["counted"], 0) << swarm.output(name);
  }
  EXPECT_EQ(complaints(swarm.audit_events()), "");
}

TEST(LiveMemoryTest, WhereItEndsInAPassFewerAreTakenAndTheRunGoesOn) {
  Processes swarm;
  swarm.launch(swarm.write_run({.steps = 60, .executor = kPacedPasses}));
  swarm.join("short", {"--fault", "peer.memory=error@40"});
  for (const std::string name : {"b", "c", "d"}) swarm.join(name);
  for (const std::string name : {"launch", "short", "b", "c", "d"})
    EXPECT_EQ(swarm.exit_code(name), 0) << name << swarm.errors(name);
  EXPECT_THAT(swarm.errors("short"), HasSubstr("memory ended in a pass: from now on it takes "));
  EXPECT_EQ(swarm.count_events("short", {"\"event\":\"refused\"", "too_large"}), 1) << swarm.errors("short");
  const AuditReport report = swarm.audit_events();
  EXPECT_EQ(complaints(report), "");
  EXPECT_EQ(report.counted_twice, 0u);
  EXPECT_EQ(report.lost, 0u);
}

TEST(LiveMemoryTest, WhereNotOneMicrobatchFitsItLeavesInOrderAndTheRunGoesOn) {
  Processes swarm;
  swarm.launch(swarm.write_run({.steps = 60, .executor = kPacedPasses}));
  swarm.join("short", {"--fault", "peer.memory=error@60+"});
  for (const std::string name : {"b", "c", "d"}) swarm.join(name);
  EXPECT_EQ(swarm.exit_code("short"), 65) << swarm.errors("short");
  EXPECT_THAT(swarm.errors("short"), HasSubstr("memory does not hold one microbatch at a time"));
  for (const std::string name : {"launch", "b", "c", "d"})
    EXPECT_EQ(swarm.exit_code(name), 0) << name << swarm.errors(name);
  EXPECT_EQ(swarm.count_events("launch", {"\"event\":\"session_over\""}),
            swarm.count_events("launch", {"\"event\":\"session_over\"", "\"cause\":\"left"}));
  const AuditReport report = swarm.audit_events();
  EXPECT_EQ(complaints(report), "");
  EXPECT_EQ(report.counted_twice, 0u);
  EXPECT_EQ(report.lost, 0u);
}

}  // namespace
}  // namespace shoal
