// A command that fails leaves nothing new: each step of each file that it writes fails in turn.
#include <filesystem>
#include <set>

#include "tests/live/processes.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr char kTokenizer[] = SHOAL_SOURCE_DIR "/tests/text/golden/gpt2.json";
constexpr int kStepsMost = 80;

class FailedCommandsTest : public testing::Test {
 protected:
  int run(std::vector<std::string> words) {
    swarm_.start("command", std::move(words));
    return swarm_.exit_code("command");
  }
  std::string path(const std::string& name) const { return swarm_.path(name); }
  // All that is there but what the command says.
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(swarm_.path(".")))
      if (!entry.path().filename().string().starts_with("command.")) found.insert(entry.path().string());
    return found;
  }
  // With step 1 failing, then step 2, until it ends well.
  void sweep(const std::vector<std::string>& words, int steps_least) {
    SCOPED_TRACE(words.front() + " " + words[1]);
    const std::set<std::string> before = names();
    for (int step = 1; step < kStepsMost; ++step) {
      std::vector<std::string> failing = {"--fault", "output.step=error@" + std::to_string(step)};
      failing.insert(failing.end(), words.begin(), words.end());
      const int code = run(failing);
      if (code == 0) {
        EXPECT_GT(step, steps_least);
        EXPECT_NE(names(), before);
        return;
      }
      EXPECT_TRUE(code == 73 || code == 74) << code << swarm_.errors("command");
      EXPECT_EQ(names(), before) << step;
    }
    ADD_FAILURE() << "it never ends well";
  }
  std::string write_text() {
    std::string text;
    for (int i = 0; i < 4000; ++i) text += "word " + std::to_string(i % 97 * (i % 89)) + (i % 9 == 0 ? ".\n" : " and ");
    return swarm_.write_file("book.txt", text);
  }
  Processes swarm_;
};

TEST_F(FailedCommandsTest, WhateverStepFailsNothingNewStays) {
  const std::string text = write_text();
  sweep({"data", "prepare", text, "--tokenizer", kTokenizer, "--out", path("a.bin")}, 7);
  sweep({"data", "train-tokenizer", text, "--vocabulary", "300", "--out", path("tok.json")}, 3);
  sweep(
      {"init", "--text", text, "--tokenizer", kTokenizer, "--size", "60k", "--tokens", "1k", "--out", path("new.toml")},
      11);
  const std::string file = swarm_.write_file(
      "run.toml",
      "[model]\nlayers = 2\ndim = 16\nheads = 2\npositions = 16\n[data]\npath = \"book.txt\"\nsequences = "
      "2\n[sync]\nrule = \"allreduce\"\nmicrobatches_per_step = 1\n[pipeline]\nstages = 2\n[end]\nsteps = 1\n");
  sweep({"solo", file, "--save", path("saved/model"), "--device", "cpu", "--threads", "1"}, 20);
  sweep({"export", path("saved/model"), path("out/model")}, 15);
  fs::create_directories(path("there"));
  swarm_.write_file("there/of-another", "stays");
  sweep({"export", path("saved/model"), path("there"), "--dtype", "bf16"}, 15);
}

// What fails behind the files that it wrote, not in writing them.
TEST_F(FailedCommandsTest, AModelThatDoesNotFitLeavesNoTokenFile) {
  const std::string text = write_text();
  const auto init = [&](const std::string& size) {
    return run({"init", "--text", text, "--tokenizer", kTokenizer, "--size", size, "--tokens", "1k", "--out",
                path("new.toml")});
  };
  const std::set<std::string> before = names();
  ASSERT_NE(init("10k"), 0) << "smaller than the vocabulary allows";
  EXPECT_EQ(names(), before);
  EXPECT_EQ(init("60k"), 0) << swarm_.errors("command");
}

}  // namespace
}  // namespace shoal
