// launch --standby: real processes that wait for a run's folder, and what they say.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "router/commit_book.h"
#include "tests/live/processes.h"

namespace shoal {
namespace {

constexpr char kStart[] = "\"event\":\"start\"", kCommit[] = "\"event\":\"commit\"";

bool tells(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class LiveStandbyTest : public testing::Test {
 protected:
  void begin(int steps) {
    swarm_.launch(swarm_.write_run(
        {.replicas = 1, .steps = steps, .executor = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6"}));
    first_ticket_ = swarm_.ticket();
    for (const std::string name : {"a", "b"}) swarm_.join(name);
    ASSERT_TRUE(swarm_.wait_for_event("launch", {kCommit}, 10)) << swarm_.errors("launch");
  }
  // All write into the first one's events. Waits until it says that it waits.
  void stand_by(const std::string& name) {
    swarm_.start(name, {"--json", "launch", "--standby", swarm_.path("run"), "--no-dht", "--events", events()});
    ASSERT_TRUE(swarm_.wait_for_line(swarm_.path(name + ".err"), {"standing by: ", " is in use by process "}))
        << swarm_.errors(name);
  }
  bool wait_for_life(int number) { return swarm_.wait_for_event("launch", {kStart}, number); }
  int once(std::vector<std::string> words) {
    swarm_.start("once", std::move(words));
    return swarm_.exit_code("once");
  }
  std::string events() const { return swarm_.path("events/launch.jsonl"); }
  std::string run_folder() const { return swarm_.path("run"); }

  Processes swarm_;
  std::string first_ticket_;
};

// Lines are appended, so the order of the file is the order in which its processes wrote.
TEST_F(LiveStandbyTest, OfTwoOneTakesOverWhatAKilledProcessLeftAndNeverDoTwoDecide) {
  begin(150);
  for (const std::string name : {"one", "other"}) stand_by(name);
  const std::string said = swarm_.errors("one");
  EXPECT_TRUE(tells(said, "process " + std::to_string(swarm_.process("launch").pid()) + " on ")) << said;
  EXPECT_TRUE(tells(said, "which wrote its logs 0:0")) << said;

  swarm_.process("launch").send_signal(SIGKILL);
  ASSERT_EQ(swarm_.exit_code("launch"), 128 + SIGKILL);
  ASSERT_TRUE(wait_for_life(2)) << swarm_.errors("one") << swarm_.errors("other");
  const bool one_first = !swarm_.output("one").empty();
  const std::string second = one_first ? "one" : "other", third = one_first ? "other" : "one";
  EXPECT_EQ(swarm_.output(third), "") << "it waits on";
  EXPECT_TRUE(tells(swarm_.output(second), first_ticket_)) << "the same address, so that peers find it again";
  const int committed = swarm_.count_events("launch", {kCommit});
  ASSERT_TRUE(swarm_.wait_for_event("launch", {kCommit}, committed + 10)) << swarm_.errors(second);
  swarm_.process(second).send_signal(SIGKILL);
  ASSERT_EQ(swarm_.exit_code(second), 128 + SIGKILL);

  ASSERT_TRUE(wait_for_life(3)) << swarm_.errors(third);
  for (const std::string& name : {third, std::string("a"), std::string("b")})
    EXPECT_EQ(swarm_.exit_code(name), 0) << swarm_.errors(name);
  EXPECT_TRUE(tells(swarm_.output(third), first_ticket_));
  const AuditReport report = swarm_.audit_events();
  EXPECT_EQ(complaints(report), "");
  EXPECT_EQ(report.unfinished, 0u);

  std::ifstream lines(events());
  std::vector<std::string> lives;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_discarded() || !event.contains("session")) continue;  // torn by the kill
    const std::string session = event["session"];
    if (event["event"] == "start") lives.push_back(session);
    EXPECT_TRUE(lives.empty() || session == lives.back()) << "an earlier life wrote behind a later one: " << line;
  }
  EXPECT_EQ(lives.size(), 3u);
}

TEST_F(LiveStandbyTest, AFrozenProcessKeepsItsRunAndOneThatEndsInOrderLeavesNothingToTakeOver) {
  begin(100'000);
  swarm_.process("launch").send_signal(SIGSTOP);
  stand_by("second");
  const std::string elsewhere = swarm_.path("events/once.jsonl");
  EXPECT_EQ(once({"launch", "--resume", run_folder(), "--no-dht", "--listen", "127.0.0.1:0", "--events", elsewhere}),
            75);
  EXPECT_TRUE(tells(swarm_.errors("once"), "another process goes on with this run: ")) << swarm_.errors("once");
  EXPECT_FALSE(std::filesystem::exists(elsewhere)) << "what may not go on writes nothing";
  swarm_.process("launch").send_signal(SIGCONT);
  const int committed = swarm_.count_events("launch", {kCommit});
  ASSERT_TRUE(swarm_.wait_for_event("launch", {kCommit}, committed + 50)) << swarm_.errors("launch");
  EXPECT_EQ(swarm_.output("second"), "");

  swarm_.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm_.exit_code("launch"), 130) << swarm_.errors("launch");
  EXPECT_EQ(swarm_.exit_code("second"), 0) << swarm_.errors("second");
  EXPECT_TRUE(tells(swarm_.errors("second"), "this run has ended already")) << swarm_.errors("second");
  EXPECT_FALSE(tells(swarm_.errors("second"), "training begins")) << swarm_.errors("second");
  for (const std::string name : {"a", "b"}) EXPECT_EQ(swarm_.exit_code(name), 0) << swarm_.errors(name);
  EXPECT_EQ(complaints(swarm_.audit_events()), "");
}

TEST_F(LiveStandbyTest, CtrlCEndsTheWaitAndLeavesTheRunAlone) {
  begin(100'000);
  for (const int signal : {SIGINT, SIGTERM}) {
    stand_by("second");
    swarm_.process("second").send_signal(signal);
    EXPECT_EQ(swarm_.exit_code("second"), 128 + signal) << swarm_.errors("second");
  }
  const int committed = swarm_.count_events("launch", {kCommit});
  EXPECT_TRUE(swarm_.wait_for_event("launch", {kCommit}, committed + 10)) << swarm_.errors("launch");
  EXPECT_EQ(swarm_.count_events("launch", {kStart}), 1);
}

TEST_F(LiveStandbyTest, WhatItCannotGoOnWithIsNamedAtOnceAndNotWhenItIsNeeded) {
  begin(100'000);
  const auto stand_by_of = [&](const std::string& folder, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"launch", "--standby", folder, "--no-dht"};
    words.insert(words.end(), more.begin(), more.end());
    return once(std::move(words));
  };
  EXPECT_EQ(stand_by_of(swarm_.path("nowhere")), 66);
  EXPECT_TRUE(tells(swarm_.errors("once"), "nowhere does not exist: a standby waits beside a run that has begun"))
      << swarm_.errors("once");
  EXPECT_EQ(stand_by_of(swarm_.path("events")), 66);
  EXPECT_TRUE(tells(swarm_.errors("once"), "events holds no run")) << swarm_.errors("once");
  EXPECT_EQ(stand_by_of(run_folder(), {"--resume"}), 64);
  EXPECT_EQ(stand_by_of(run_folder(), {"--events", swarm_.path("nowhere/e.jsonl")}), 73);

  std::filesystem::copy(run_folder(), swarm_.path("copy"), std::filesystem::copy_options::recursive);
  LogFormat newer = kTrainerLog;
  newer.version = 99;
  const Bytes head = RecordFramer(newer).frame(Bytes::copy_of(std::string_view("x")));
  swarm_.write_file("copy/trainer.log", {reinterpret_cast<const char*>(head.data()), head.size()});
  EXPECT_EQ(stand_by_of(swarm_.path("copy")), 76);
  EXPECT_TRUE(tells(swarm_.errors("once"), "copy/trainer.log: the trainer's log has version 99"))
      << swarm_.errors("once");
  std::filesystem::remove(swarm_.path("copy/run.key"));
  swarm_.write_file("copy/trainer.log", "");
  EXPECT_EQ(stand_by_of(swarm_.path("copy")), 66);
  EXPECT_TRUE(tells(swarm_.errors("once"), "copy/run.key is missing")) << swarm_.errors("once");
}

TEST_F(LiveStandbyTest, AFolderThatThisUserCannotWriteIsNamedAtOnce) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  begin(100'000);
  for (const std::string name : {"/authority.log", ""}) {
    const std::string path = run_folder() + name;
    const auto before = std::filesystem::status(path).permissions();
    std::filesystem::permissions(path, std::filesystem::perms::owner_write, std::filesystem::perm_options::remove);
    EXPECT_EQ(once({"launch", "--standby", run_folder(), "--no-dht"}), 74);
    EXPECT_TRUE(tells(swarm_.errors("once"), "cannot write " + path)) << swarm_.errors("once");
    std::filesystem::permissions(path, before);
  }
}

}  // namespace
}  // namespace shoal
