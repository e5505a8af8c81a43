// Real processes: a peer kills itself with a microbatch in its hands. Only its own stage computes the forward again,
// and nothing is counted twice. Judged from the event files, the killed one's included.
#include <algorithm>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "demo/file_tail.h"
#include "tests/live/processes.h"

namespace shoal {
namespace {

constexpr int kStages = 3;
constexpr char kVictim[] = "victim", kReplacement[] = "replacement";

struct Seen {
  int forwards = 0;       // executions of the forward
  int counted = 0;        // of the entry that won
  bool in_hands = false;  // the victim had run its forward and not counted it
};

// What the event files say of the microbatches that were issued: [microbatch][stage].
class Story {
 public:
  explicit Story(const Processes& swarm, const std::vector<std::string>& peers) {
    for (const auto& line : lines(swarm, "launch"))
      if (line["event"] == "commit") paths_[line["microbatch"]] = line["entries"];
    for (const std::string& peer : peers) read(swarm, peer);
  }

  const std::map<std::string, std::vector<std::string>>& paths() const { return paths_; }
  const Seen& seen(const std::string& microbatch, int stage) { return seen_[microbatch][stage]; }
  std::vector<std::string> in_hands(int stage) {
    std::vector<std::string> all;
    for (const auto& [microbatch, path] : paths_)
      if (seen(microbatch, stage).in_hands) all.push_back(microbatch);
    return all;
  }

 private:
  static std::vector<nlohmann::json> lines(const Processes& swarm, const std::string& name) {
    std::vector<nlohmann::json> all;
    for (const std::string& line : FileTail(swarm.path("events/" + name + ".jsonl")).new_lines())
      all.push_back(nlohmann::json::parse(line));
    return all;
  }
  void read(const Processes& swarm, const std::string& peer) {
    for (const auto& line : lines(swarm, peer)) {
      const std::string event = line["event"];
      if (event != "forward" && event != "counted") continue;
      const std::string microbatch = line["microbatch"];
      const auto path = paths_.find(microbatch);
      if (path == paths_.end()) continue;  // of the validation
      Seen& seen = seen_[microbatch][line["stage"]];
      if (event == "forward") {
        ++seen.forwards;
        if (peer == kVictim) seen.in_hands = true;
      } else {
        if (peer == kVictim) seen.in_hands = false;
        if (path->second.at(line["stage"].get<std::size_t>()) == line["entry"]) ++seen.counted;
      }
    }
  }

  std::map<std::string, std::vector<std::string>> paths_;
  std::map<std::string, std::map<int, Seen>> seen_;
};

struct Case {
  int stage;
  std::string fault;
  int in_flight;
};

void PrintTo(const Case& now, std::ostream* out) { *out << now.fault << " at stage " << now.stage; }

class RecoveryTest : public testing::TestWithParam<Case> {
 protected:
  // Each stage's first peer, then the others, the one that dies last: when it is there, everybody is.
  void start() {
    // A claim must live as long as it waits for the replacement, which is slow. And on a loaded machine no healthy
    // process is silent for so long, else what it holds would be computed again.
    constexpr int kLease = 10;
    swarm_.launch(swarm_.write_run({.stages = kStages,
                                    .steps = 100'000,
                                    .in_flight = GetParam().in_flight,
                                    .lease_s = kLease,
                                    .membership_s = kLease}));
    const int dying = GetParam().stage;
    for (int stage = 0; stage < kStages; ++stage) {
      if (stage == dying)
        join(kReplacement, stage, "peer.forward=delay:200");
      else
        join("first-" + std::to_string(stage), stage, "");
    }
    for (int stage = 0; stage < kStages; ++stage)
      if (stage != dying) join("second-" + std::to_string(stage), stage, "");
    join(kVictim, dying, GetParam().fault);
  }
  void join(const std::string& name, int stage, const std::string& fault) {
    std::vector<std::string> words = {"--stage", std::to_string(stage)};
    if (!fault.empty()) words.insert(words.end(), {"--fault", fault});
    swarm_.join(name, words);
    peers_.push_back(name);
    ASSERT_TRUE(swarm_.wait_for_event(name, {"\"event\":\"serving\"", "\"stage\":" + std::to_string(stage)}))
        << swarm_.errors(name);
  }
  Processes swarm_;
  std::vector<std::string> peers_;
};

TEST_P(RecoveryTest, OnlyTheStageOfTheDeadPeerComputesAgain) {
  const int stage = GetParam().stage;
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(swarm_.exit_code(kVictim), 128 + SIGKILL) << swarm_.errors(kVictim);
  ASSERT_TRUE(swarm_.wait_for_event("launch", {"\"event\":\"session_over\""})) << swarm_.errors("launch");
  swarm_.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm_.exit_code("launch"), 130) << swarm_.errors("launch");
  for (const std::string& peer : peers_)
    EXPECT_EQ(swarm_.exit_code(peer), peer == kVictim ? 128 + SIGKILL : 0) << peer << swarm_.errors(peer);

  Story story(swarm_, peers_);
  const auto recovered = story.in_hands(stage);
  ASSERT_FALSE(recovered.empty());
  if (GetParam().in_flight == 1) {
    EXPECT_EQ(recovered.size(), 1u);
  }
  for (const auto& [microbatch, path] : story.paths()) {
    const bool again = std::find(recovered.begin(), recovered.end(), microbatch) != recovered.end();
    for (int k = 0; k < kStages; ++k) {
      SCOPED_TRACE("microbatch " + microbatch + ", stage " + std::to_string(k));
      EXPECT_EQ(story.seen(microbatch, k).forwards, again && k == stage ? 2 : 1);
      EXPECT_EQ(story.seen(microbatch, k).counted, 1);
    }
  }
  const AuditReport report = swarm_.audit_events();
  EXPECT_EQ(complaints(report), "");
  EXPECT_EQ(report.unfinished, 0u);
  EXPECT_EQ(report.lost, 0u) << "it had counted nothing";
}

constexpr char kAtGradient[] = "peer.gradient_arrives=kill@1";
INSTANTIATE_TEST_SUITE_P(Stages, RecoveryTest,
                         testing::Values(Case{0, kAtGradient, 1}, Case{1, kAtGradient, 1},
                                         Case{2, "peer.after_forward=kill@1", 1}, Case{1, kAtGradient, 8}),
                         [](const auto& info) {
                           return "Stage" + std::to_string(info.param.stage) + "With" +
                                  std::to_string(info.param.in_flight) + "InFlight";
                         });

}  // namespace
}  // namespace shoal
