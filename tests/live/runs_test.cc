// Whole runs of real processes: to the end, through kills, departures and a restart of the launching process.
#include <csignal>
#include <filesystem>

#include "tests/live/processes.h"

namespace shoal {
namespace {

constexpr char kPaced[] = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6";
const std::vector<std::string> kPeers = {"a", "b", "c", "d"};

// Two for each stage: every joiner goes where there are fewest. All of them have worked when it returns.
void join_all(Processes& swarm) {
  for (const std::string& peer : kPeers) swarm.join(peer);
  for (const std::string& peer : kPeers)
    ASSERT_TRUE(swarm.wait_for_event(peer, {"\"event\":\"settled\""})) << peer << swarm.errors(peer);
}

TEST(LiveRunTest, EndsWithEveryMicrobatchCountedOnce) {
  for (const std::string rule : {"allreduce", "diloco"}) {
    SCOPED_TRACE(rule);
    Processes swarm;
    swarm.launch(swarm.write_run({.steps = 60, .rule = rule, .executor = kPaced}));
    join_all(swarm);
    EXPECT_EQ(swarm.exit_code("launch"), 0) << swarm.errors("launch");
    for (const std::string& peer : kPeers) EXPECT_EQ(swarm.exit_code(peer), 0) << swarm.errors(peer);
    const AuditReport report = swarm.audit_events();
    EXPECT_EQ(complaints(report), "");
    EXPECT_EQ(report.unfinished, 0u);
    EXPECT_EQ(report.lost, 0u);
    EXPECT_GE(report.committed, 60u * 2);
    EXPECT_NE(swarm.output("launch").find("\"schema\": \"shoal.launch/2\""), std::string::npos);
    EXPECT_NE(swarm.errors("launch").find("validation loss"), std::string::npos);
  }
}

// Neither the text nor anybody else is needed, and nothing is left behind.
TEST(LiveRunTest, APlanSaysWhatANumberInFlightCosts) {
  Processes swarm;
  std::string text =
      ScratchFolder::read(swarm.write_run({.rule = "diloco", .executor = "kind = \"torch\"", .in_flight = 64}));
  text.replace(text.find("[sync]"), 6, "[sync]\nmode = \"overlap\"");  // with "auto" none would be late
  const std::string file = swarm.write_file("overlap.toml", text);
  std::filesystem::remove(swarm.path("text.bin"));
  swarm.start("table", {"plan", file});
  EXPECT_EQ(swarm.exit_code("table"), 0) << swarm.errors("table");
  EXPECT_NE(swarm.output("table").find("in_flight = 64 is given; \"auto\" would take"), std::string::npos);
  EXPECT_NE(swarm.errors("table").find("with 64 microbatches in flight"), std::string::npos) << swarm.errors("table");
  swarm.start("json", {"plan", file, "--json"});
  EXPECT_EQ(swarm.exit_code("json"), 0) << swarm.errors("json");
  EXPECT_NE(swarm.output("json").find("\"schema\": \"shoal.plan/1\""), std::string::npos) << swarm.output("json");
  EXPECT_NE(swarm.output("json").find("\"in_flight\": 64"), std::string::npos) << swarm.output("json");
}

TEST(LiveRunTest, AKilledReplicaIsFencedItsLossesAreNamedAndItsHomeComesBack) {
  Processes swarm;
  swarm.launch(swarm.write_run({.steps = 70, .executor = kPaced}));
  join_all(swarm);
  swarm.process("a").send_signal(SIGKILL);
  EXPECT_EQ(swarm.exit_code("a"), 128 + SIGKILL);
  ASSERT_TRUE(swarm.wait_for_event("launch", {"\"event\":\"session_over\""})) << swarm.errors("launch");
  swarm.join("a");  // its home, a new session
  ASSERT_TRUE(swarm.wait_for_event("a", {"\"event\":\"serving\""}, 2)) << swarm.errors("a");
  for (const std::string name : {"launch", "a", "b", "c", "d"})
    EXPECT_EQ(swarm.exit_code(name), 0) << name << swarm.errors(name);
  EXPECT_LE(swarm.count_events("a", {"\"event\":\"serving\"", "\"version\":0"}), 1)
      << "the second life fetched its state";
  const AuditReport report = swarm.audit_events();
  EXPECT_EQ(complaints(report), "");
  EXPECT_EQ(report.unfinished, 0u);
  EXPECT_EQ(report.counted_twice, 0u);
}

TEST(LiveRunTest, TheLastHolderOfAStageStaysUntilItsStateIsHandedOn) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .steps = 100'000, .executor = kPaced}));
  swarm.join("a");
  ASSERT_TRUE(swarm.wait_for_event("a", {"\"event\":\"anchor\""})) << swarm.errors("a");
  swarm.process("a").send_signal(SIGINT);
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("a.err"), {"last holder"})) << swarm.errors("a");
  swarm.join("b");
  EXPECT_EQ(swarm.exit_code("a"), 130) << swarm.errors("a") << swarm.errors("b");
  ASSERT_TRUE(swarm.wait_for_event("b", {"\"event\":\"settled\""})) << swarm.errors("b");
  EXPECT_EQ(swarm.count_events("b", {"\"event\":\"serving\"", "\"version\":0"}), 0) << "it fetched its state";
  swarm.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  EXPECT_EQ(swarm.exit_code("b"), 0) << swarm.errors("b");
  EXPECT_EQ(complaints(swarm.audit_events()), "");
}

TEST(LiveRunTest, APeerThatIsAskedToGoSettlesFirstAndLosesNothing) {
  Processes swarm;
  swarm.launch(swarm.write_run({.steps = 60, .executor = kPaced}));
  join_all(swarm);
  swarm.process("a").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("a"), 130) << swarm.errors("a");
  for (const std::string name : {"launch", "b", "c", "d"})
    EXPECT_EQ(swarm.exit_code(name), 0) << name << swarm.errors(name);
  const AuditReport report = swarm.audit_events();
  EXPECT_EQ(complaints(report), "");
  EXPECT_EQ(report.lost, 0u) << swarm.errors("a");
}

TEST(LiveRunTest, APeerWhoseDeviceHangsGoesAtASecondCtrlC) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .steps = 100'000}));
  swarm.join("a", {"--fault", "peer.forward=delay:3600000"});
  ASSERT_TRUE(swarm.wait_for_event("a", {"\"event\":\"entry\""})) << swarm.errors("a");
  swarm.process("a").send_signal(SIGINT);
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("a.err"), {"leaving"})) << swarm.errors("a");
  swarm.process("a").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("a"), 130) << swarm.errors("a");
}

TEST(LiveRunTest, CtrlCAtTheLaunchingProcessEndsTheRunInOrder) {
  Processes swarm;
  swarm.launch(swarm.write_run({.steps = 100'000, .executor = kPaced}));
  join_all(swarm);
  ASSERT_TRUE(swarm.wait_for_event("launch", {"\"event\":\"commit\""}, 20)) << swarm.errors("launch");
  swarm.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  for (const std::string& peer : kPeers) EXPECT_EQ(swarm.exit_code(peer), 0) << swarm.errors(peer);
  const AuditReport report = swarm.audit_events();
  EXPECT_EQ(complaints(report), "");
  EXPECT_EQ(report.unfinished, 0u);
  EXPECT_EQ(report.lost, 0u);
}

TEST(LiveRunTest, AKilledLaunchGoesOnWhereItsLogEnds) {
  Processes swarm;
  swarm.launch(swarm.write_run({.steps = 70, .executor = kPaced}));
  const std::string ticket = swarm.ticket();
  join_all(swarm);
  ASSERT_TRUE(swarm.wait_for_event("launch", {"\"event\":\"commit\""}, 40)) << swarm.errors("launch");
  swarm.process("launch").send_signal(SIGKILL);
  EXPECT_EQ(swarm.exit_code("launch"), 128 + SIGKILL);
  swarm.launch_as("launch", {"--resume", swarm.path("run"), "--no-dht"});
  EXPECT_EQ(swarm.ticket(), ticket) << "the same address, so that peers find it again";
  for (const std::string name : {"launch", "a", "b", "c", "d"})
    EXPECT_EQ(swarm.exit_code(name), 0) << name << swarm.errors(name);
  const AuditReport report = swarm.audit_events();
  EXPECT_EQ(complaints(report), "");
  EXPECT_EQ(report.unfinished, 0u);
}

TEST(LiveRunTest, WhatIsSavedHasTheLossThatWasValidated) {
  for (const std::string codec : {"raw", "int8"}) {
    SCOPED_TRACE(codec);
    Processes swarm;
    std::string file = ScratchFolder::read(
        swarm.write_run({.replicas = 1,
                         .steps = 3,
                         .executor = "kind = \"torch\"",
                         .more = "[wire]\nforward = \"" + codec + "\"\nbackward = \"" + codec + "\"\n"}));
    file.erase(file.find("validation_samples = 4\n"), 23);  // all of them, as eval judges
    swarm.launch(swarm.write_file("run.toml", file), {"--save", swarm.path("saved")});
    for (const std::string name : {"a", "b"}) swarm.join(name, {"--device", "cpu"});
    for (const std::string name : {"launch", "a", "b"})
      EXPECT_EQ(swarm.exit_code(name), 0) << name << swarm.errors(name);
    swarm.start("eval", {"--json", "eval", swarm.path("saved"), "--text", swarm.path("text.bin"), "--threads", "1",
                         "--device", "cpu"});
    ASSERT_EQ(swarm.exit_code("eval"), 0) << swarm.errors("eval");
    const auto number_after = [](const std::string& text, const std::string& key) {
      const std::size_t at = text.find("\"" + key + "\":");
      return at == std::string::npos ? -1.0 : std::stod(text.substr(at + key.size() + 3));
    };
    const double validated = number_after(swarm.output("launch"), "val_loss");
    EXPECT_GT(validated, 0);
    // What crosses in a swarm takes the codec's noise, about one part in a million here; in eval nothing crosses.
    const double within = codec == "raw" ? 1e-6 : 1e-5;
    EXPECT_NEAR(number_after(swarm.output("eval"), "val_loss"), validated, within * validated);
    EXPECT_EQ(number_after(ScratchFolder::read(swarm.path("saved/config.json")), "n_layer"), 4);
    const std::string part = "saved/model-00002-of-00002.safetensors";
    std::string damaged = ScratchFolder::read(swarm.path(part));
    damaged.back() = static_cast<char>(damaged.back() ^ 1);  // still a number, and another loss
    swarm.write_file(part, damaged);
    swarm.start("eval", {"eval", swarm.path("saved"), "--text", swarm.path("text.bin"), "--device", "cpu"});
    EXPECT_EQ(swarm.exit_code("eval"), 65);
    EXPECT_NE(swarm.errors("eval").find(part + " is not as it was saved"), std::string::npos) << swarm.errors("eval");
  }
}

TEST(LiveRunTest, ARunThatEndedAndWasSavedSaysSoWhenItIsResumedAndKnowsItsModelFromAnothers) {
  Processes swarm;
  const std::string file = swarm.write_run({.stages = 1, .replicas = 1, .steps = 3, .executor = "kind = \"torch\""});
  swarm.launch(file, {"--save", swarm.path("saved")});
  swarm.join("a", {"--device", "cpu"});
  for (const std::string name : {"launch", "a"}) ASSERT_EQ(swarm.exit_code(name), 0) << name << swarm.errors(name);
  const std::string model = ScratchFolder::read(swarm.path("saved/model-00001-of-00001.safetensors"));

  swarm.launch_as("again", {"--resume", swarm.path("run"), "--no-dht", "--save", swarm.path("saved")});
  EXPECT_EQ(swarm.exit_code("again"), 0) << swarm.errors("again");
  EXPECT_TRUE(swarm.wait_for_line(swarm.path("again.err"), {"its model lies where it was saved, whole"}))
      << swarm.errors("again");
  EXPECT_EQ(ScratchFolder::read(swarm.path("saved/model-00001-of-00001.safetensors")), model);

  swarm.start("solo", {"solo", file, "--save", swarm.path("other"), "--device", "cpu"});
  ASSERT_EQ(swarm.exit_code("solo"), 0) << swarm.errors("solo");
  swarm.launch_as("other", {"--resume", swarm.path("run"), "--no-dht", "--save", swarm.path("other")});
  EXPECT_EQ(swarm.exit_code("other"), 69) << "a model of the same manifest, and not this run's";
  EXPECT_TRUE(
      swarm.wait_for_line(swarm.path("other.err"), {"nothing was saved", "it was saved to", swarm.path("saved")}))
      << swarm.errors("other");
}

}  // namespace
}  // namespace shoal
