// docs/REPRODUCE.md is enough to train the same model: examples/plain_pytorch.py, which was written from it, gets the
// losses of `shoal solo`.
#include <cmath>
#include <sstream>

#include "tests/live/processes.h"

namespace shoal {
namespace {

constexpr int kSteps = 20;
constexpr double kAgrees = 1e-6;  // of a loss: what the order of float32 additions changes in so many steps

// Numbers behind `key` in a text, in order.
std::vector<double> numbers_after(const std::string& text, const std::string& key) {
  std::vector<double> numbers;
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
    numbers.push_back(std::stod(text.substr(at + key.size())));
  return numbers;
}

// scripts/verify-hf installs a torch here; SHOAL_PYTHON names another Python.
const std::string kPython = "PYTHONPATH=\"" SHOAL_SOURCE_DIR
                            "/build/python-2.11.0${PYTHONPATH:+:$PYTHONPATH}\" exec \"${SHOAL_PYTHON:-python3}\" ";

constexpr char kScript[] = "'" SHOAL_SOURCE_DIR "/examples/plain_pytorch.py' ";

TEST(ReferenceTest, WhatItDoesNotMakeIsRefused) {
  Processes swarm;
  swarm.start_words("probe", {"/bin/sh", "-c", kPython + "-c 'import tomllib, torch'"});
  if (swarm.exit_code("probe") != 0) GTEST_SKIP() << "this machine's Python has no torch: " << swarm.errors("probe");
  const std::string run =
      swarm.write_run({.steps = 2, .executor = "kind = \"torch\"", .more = "[optimizer]\ninner = \"muon\"\n"});
  swarm.start("solo", {"solo", run, "--save", swarm.path("saved"), "--device", "cpu", "--threads", "1"});
  ASSERT_EQ(swarm.exit_code("solo"), 0) << swarm.errors("solo");
  swarm.start_words("reference", {"/bin/sh", "-c",
                                  kPython + kScript + "'" + swarm.path("saved/run.toml") + "' '" +
                                      swarm.path("text.bin") + "' --steps 2"});
  EXPECT_EQ(swarm.exit_code("reference"), 1);
  EXPECT_EQ(swarm.output("reference"), "") << "no losses of another rule";
  EXPECT_NE(swarm.errors("reference").find("[optimizer] inner = \"muon\" is not made here"), std::string::npos)
      << swarm.errors("reference");
}

struct ReferenceModel {
  std::string name, lines;  // of [model]
};

class ReferenceModelTest : public ::testing::TestWithParam<ReferenceModel> {};

TEST_P(ReferenceModelTest, ThePageAloneGivesTheLossesOfSolo) {
  Processes swarm;
  swarm.start_words("probe", {"/bin/sh", "-c", kPython + "-c 'import tomllib, torch'"});
  if (swarm.exit_code("probe") != 0)
    GTEST_SKIP() << "this machine's Python has no torch (SHOAL_PYTHON=PROGRAM names one that has): "
                 << swarm.errors("probe");
  for (const std::string rule : {"allreduce", "diloco"}) {
    SCOPED_TRACE(rule);
    const std::string run =
        swarm.write_run({.steps = kSteps,
                         .rule = rule,
                         .executor = "kind = \"torch\"",
                         .more = "[optimizer]\nlr = 2e-3\nlook_ahead = 1\n[schedule]\nwarmup_tokens = 1024\n",
                         .model = GetParam().lines});
    swarm.start("solo", {"solo", run, "--save", swarm.path("saved"), "--events", swarm.path("solo-" + rule + ".jsonl"),
                         "--device", "cpu", "--threads", "1"});
    ASSERT_EQ(swarm.exit_code("solo"), 0) << swarm.errors("solo");
    swarm.start_words("reference", {"/bin/sh", "-c",
                                    kPython + kScript + "'" + swarm.path("saved/run.toml") + "' '" +
                                        swarm.path("text.bin") + "' --steps " + std::to_string(kSteps)});
    ASSERT_EQ(swarm.exit_code("reference"), 0) << swarm.errors("reference");
    std::istringstream lines(ScratchFolder::read(swarm.path("solo-" + rule + ".jsonl")));
    std::vector<double> ours;
    for (std::string line; std::getline(lines, line);)
      if (line.find("\"event\":\"train\"") != std::string::npos) ours.push_back(numbers_after(line, "\"loss\":").at(0));
    const std::vector<double> theirs = numbers_after(swarm.output("reference"), " loss ");
    ASSERT_EQ(ours.size(), static_cast<std::size_t>(kSteps));
    ASSERT_EQ(theirs.size(), ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_NEAR(theirs[i], ours[i], kAgrees * ours[i]) << "step " << i + 1;
    EXPECT_LT(ours.back(), ours.front()) << "it learned";
  }
}

// Of width 16, so that a table of 16 needs no factor behind it.
INSTANTIATE_TEST_SUITE_P(
    Families, ReferenceModelTest,
    ::testing::Values(ReferenceModel{"gpt2", ""}, ReferenceModel{"llama", "family = \"llama\"\nkv_heads = 1\n"},
                      ReferenceModel{"gpt2_boundary", "boundary = 4\nboundary_table = 8\n"},
                      ReferenceModel{"gpt2_boundary_whole_table", "boundary = 4\nboundary_table = 16\n"},
                      ReferenceModel{"llama_boundary", "family = \"llama\"\nboundary = 4\nboundary_table = 8\n"},
                      ReferenceModel{"llama_boundary_whole_table",
                                     "family = \"llama\"\nboundary = 4\nboundary_table = 16\n"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace shoal
