// What `shoal inspect` answers, and with which exit code.
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/config/ticket.h"
#include "tests/live/processes.h"

namespace shoal {
namespace {

constexpr const char* kPaced = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6";

class LiveInspectTest : public testing::Test {
 protected:
  int inspect(std::vector<std::string> words) {
    words.insert(words.begin(), "inspect");
    swarm_.start("inspect", std::move(words));
    return swarm_.exit_code("inspect");
  }
  bool says(const std::string& text) const { return swarm_.errors("inspect").find(text) != std::string::npos; }
  bool shows(const std::string& text) const { return swarm_.output("inspect").find(text) != std::string::npos; }
  // Of the newest launch.
  Ticket ticket() const { return parse_ticket(swarm_.ticket()).value(); }

  Processes swarm_;
};

TEST_F(LiveInspectTest, WrongNetworkUnreachableHostAndTypingErrorAreThreeAnswers) {
  const std::string run_file = swarm_.write_run({.stages = 1, .replicas = 1, .steps = 100'000, .executor = kPaced});
  swarm_.launch_as("launch", {run_file, "--dir", swarm_.path("run"), "--listen", "127.0.0.1:0"});
  const std::string run = hex_of(ticket().run), at = ticket().contacts.at(0).address;
  const std::string network = std::to_string(ticket().network), other = std::to_string(ticket().network ^ 1);
  int found = -1;  // its records may be on their way yet
  for (int i = 0; i < 10 && !(found == 0 && shows("state: waiting")); ++i) found = inspect({swarm_.ticket()});
  EXPECT_EQ(found, 0) << swarm_.errors("inspect");
  EXPECT_TRUE(shows("state: waiting for 0:00:")) << swarm_.output("inspect");
  EXPECT_TRUE(shows("no peer serves stage 0 yet")) << swarm_.output("inspect");

  std::string mistyped = swarm_.ticket();
  mistyped[20] = mistyped[20] == 'a' ? 'b' : 'a';
  EXPECT_EQ(inspect({mistyped}), 65) << swarm_.errors("inspect");
  EXPECT_EQ(inspect({run, "--network", other, "--bootstrap", at, "--seconds", "1"}), 68) << swarm_.errors("inspect");
  EXPECT_TRUE(says("it is of another network")) << swarm_.errors("inspect");
  swarm_.process("launch").send_signal(SIGKILL);
  ASSERT_EQ(swarm_.exit_code("launch"), 128 + SIGKILL);
  EXPECT_EQ(inspect({run, "--network", network, "--bootstrap", at, "--seconds", "1"}), 69) << swarm_.errors("inspect");
  EXPECT_TRUE(says("nobody listens at " + at)) << swarm_.errors("inspect");
}

TEST_F(LiveInspectTest, ARunThatHasEndedIsAnAnswerOfItsOwn) {
  // A node that outlives the run: with its last process its records would go.
  swarm_.start_in_shell("node", "exec \"$(dirname \"$0\")/shoal-dht\" \"$@\"",
                        {"--serve", "--network", "77", "--bind", "127.0.0.1"});
  ASSERT_TRUE(swarm_.wait_for_line(swarm_.path("node.out"), {"shoal-dht port "})) << swarm_.errors("node");
  const std::string line = swarm_.output("node");
  const std::string node = "127.0.0.1:" + std::to_string(std::stoi(line.substr(line.find("port ") + 5)));
  const std::string run_file = swarm_.write_run({.stages = 1, .replicas = 1, .steps = 100'000, .executor = kPaced});
  swarm_.launch_as("launch", {run_file, "--dir", swarm_.path("run"), "--listen", "127.0.0.1:0", "--network", "77",
                              "--bootstrap", node, "--linger", "0"});
  const std::vector<std::string> question = {hex_of(ticket().run), "--network", "77", "--bootstrap", node};
  swarm_.join_in_dht("a");
  ASSERT_TRUE(swarm_.wait_for_event("launch", {"\"event\":\"commit\""}, 10)) << swarm_.errors("launch");
  int code = -1;
  for (int i = 0; i < 10 && code != 0; ++i) code = inspect(question);
  EXPECT_EQ(code, 0) << swarm_.errors("inspect");
  for (int i = 0; i < 10 && !shows("state: training"); ++i) inspect(question);
  EXPECT_TRUE(shows("serving")) << swarm_.output("inspect");
  EXPECT_TRUE(shows(" to go")) << swarm_.output("inspect");
  swarm_.process("launch").send_signal(SIGINT);
  ASSERT_EQ(swarm_.exit_code("launch"), 130) << swarm_.errors("launch");
  EXPECT_EQ(inspect(question), 3) << swarm_.errors("inspect");
  EXPECT_TRUE(shows("state: ended: stopped by Ctrl-C")) << swarm_.output("inspect");
}

// No other process keeps the DHT's records: the launching process stays for those who ask just then.
TEST_F(LiveInspectTest, TheEndIsToldToWhoeverAsksWhenItCame) {
  const std::string run_file = swarm_.write_run({.stages = 1, .replicas = 1, .steps = 3, .executor = kPaced});
  swarm_.launch_as("launch", {run_file, "--dir", swarm_.path("run"), "--listen", "127.0.0.1:0", "--linger", "60"});
  swarm_.join_in_dht("a");
  ASSERT_EQ(swarm_.exit_code("a"), 0) << swarm_.errors("a");
  ASSERT_TRUE(swarm_.wait_for_line(swarm_.path("launch.err"), {"is told of the end for 60 s more"}))
      << swarm_.errors("launch");
  EXPECT_EQ(inspect({swarm_.ticket()}), 3) << swarm_.errors("inspect");
  EXPECT_TRUE(shows("state: ended: ")) << swarm_.output("inspect");
  swarm_.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm_.exit_code("launch"), 0) << "the run had reached its end";
}

TEST_F(LiveInspectTest, WatchedAsJsonEachLineIsAnObjectAndThePeerSaysWhatItComputesOn) {
  const std::string run_file = swarm_.write_run({.stages = 1, .replicas = 1, .steps = 100'000, .executor = kPaced});
  swarm_.launch_as("launch", {run_file, "--dir", swarm_.path("run"), "--listen", "127.0.0.1:0", "--linger", "0"});
  swarm_.join_in_dht("a");
  ASSERT_TRUE(swarm_.wait_for_event("launch", {"\"event\":\"commit\""}, 10)) << swarm_.errors("launch");
  swarm_.start("watch", {"--json", "inspect", "--watch", swarm_.ticket()});
  ASSERT_TRUE(swarm_.wait_for_line(swarm_.path("watch.out"), {"\"device\":\"cpu\""})) << swarm_.output("watch");
  swarm_.process("watch").send_signal(SIGINT);
  EXPECT_EQ(swarm_.exit_code("watch"), 130);
  std::istringstream lines(swarm_.output("watch"));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    EXPECT_NE(line.find("shoal.inspect/"), std::string::npos) << line;
  }
}

TEST_F(LiveInspectTest, TopFollowsTheFilesOfARunUntilItIsOver) {
  swarm_.launch(swarm_.write_run({.stages = 1, .replicas = 1, .steps = 100'000, .executor = kPaced}));
  swarm_.join("a", {});
  ASSERT_TRUE(swarm_.wait_for_event("launch", {"\"event\":\"commit\""}));
  swarm_.start("top", {"top", swarm_.path("events")});
  swarm_.start("stopped", {"top", swarm_.path("events")});
  swarm_.start("ticket", {"top", swarm_.ticket()});
  ASSERT_TRUE(swarm_.wait_for_line(swarm_.path("top.out"), {" tok/s peers 1 twice 0 lost 0 faults 0"}, 2))
      << swarm_.output("top");
  swarm_.process("stopped").send_signal(SIGINT);
  EXPECT_EQ(swarm_.exit_code("stopped"), 0) << swarm_.errors("stopped");
  EXPECT_EQ(swarm_.exit_code("ticket"), 69) << "a run without a directory";
  swarm_.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm_.exit_code("top"), 0) << swarm_.errors("top");
  EXPECT_NE(swarm_.output("top").find(", ended: stopped by Ctrl-C"), std::string::npos) << swarm_.output("top");
}

TEST_F(LiveInspectTest, ReceiptsAreOfTheRunsKeyAndOfWhatTheyName) {
  swarm_.launch(swarm_.write_run({.stages = 1, .replicas = 1, .steps = 6, .executor = kPaced}));
  swarm_.join("a", {"--name", "Zoe's 4090"});
  ASSERT_EQ(swarm_.exit_code("launch"), 0) << swarm_.errors("launch");
  ASSERT_EQ(swarm_.exit_code("a"), 0);
  const auto receipt = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "receipt");
    swarm_.start("receipt", std::move(words));
    return swarm_.exit_code("receipt");
  };
  ASSERT_EQ(receipt({"write", swarm_.path("events"), swarm_.path("run")}), 0) << swarm_.errors("receipt");
  std::string line = swarm_.output("receipt");
  EXPECT_NE(line.find("\"microbatches\":\"0-47\""), std::string::npos) << line;
  const std::string run = line.substr(line.find("\"run\":\"") + 7, 64), file = swarm_.path("receipts");
  const auto verified = [&](const std::string& text, std::vector<std::string> more = {}) {
    std::ofstream(file, std::ios::binary) << text;
    more.insert(more.begin(), {"verify", file});
    return receipt(std::move(more));
  };
  EXPECT_EQ(verified(line), 0) << swarm_.output("receipt");
  EXPECT_NE(swarm_.output("receipt").find("(Zoe's 4090)"), std::string::npos) << swarm_.output("receipt");
  EXPECT_EQ(verified(line, {"--run", run}), 0);
  EXPECT_EQ(verified(line, {"--run", std::string(64, '0')}), 65);
  std::string changed = line;
  changed.replace(changed.find("0-47"), 4, "0-99");
  EXPECT_EQ(verified(changed), 65) << "what is signed is what stands there";
  std::string renamed = line;
  renamed.replace(renamed.find("Zoe"), 3, "Eve");
  EXPECT_EQ(verified(renamed), 65) << "its name, too";
  EXPECT_NE(swarm_.output("receipt").find("the signature is not that of run"), std::string::npos);
  std::string more = line;
  more.insert(more.rfind('}'), ",\"tokens\":1");
  EXPECT_EQ(verified(more), 65) << "nothing stands behind the signature";
  for (const auto& [part, other] :
       std::vector<std::pair<std::string, std::string>>{{"\"shoal.receipt/1\"", "1"},              // another type
                                                        {"\"peer\":", "\"peer\":\"\",\"peer\":"},  // a key twice
                                                        {"{\"schema\"", " {\"schema\""},  // another text of the same
                                                        {"\"stages\":[", "\"stages\":[{},"}}) {  // one that lacks
    std::string hostile = line;
    hostile.replace(hostile.find(part), part.size(), other);
    EXPECT_EQ(verified(hostile), 65) << hostile << swarm_.errors("receipt");
    EXPECT_NE(swarm_.output("receipt").find("no receipt (shoal.receipt/1)"), std::string::npos) << hostile;
  }
  EXPECT_EQ(verified(line + std::string(std::size_t{17} << 20, ' ') + "\n"), 65);
  EXPECT_NE(swarm_.errors("receipt").find(":2: longer than any receipt"), std::string::npos);
  EXPECT_EQ(receipt({"verify", swarm_.path("events")}), 74) << "a folder";
  EXPECT_EQ(verified(line, {"--run", "0"}), 64);
  EXPECT_EQ(verified("{}\n"), 65);
  EXPECT_EQ(verified(""), 65);
}

TEST_F(LiveInspectTest, TopRefusesWhatIsNeitherFolderNorTicket) {
  const auto top = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "top");
    swarm_.start("inspect", std::move(words));
    return swarm_.exit_code("inspect");
  };
  EXPECT_EQ(top({swarm_.path("none")}), 66);
  EXPECT_TRUE(says("no such folder, and no ticket either")) << swarm_.errors("inspect");
  EXPECT_EQ(top({swarm_.path("events")}), 66);
  EXPECT_TRUE(says("holds no *.jsonl file")) << swarm_.errors("inspect");
  EXPECT_EQ(top({"shoal1:nothing"}), 65);
  EXPECT_EQ(top({"shoal1:nothing", "--run", swarm_.path("run.toml")}), 64);
}

}  // namespace
}  // namespace shoal
