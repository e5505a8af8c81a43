// A model goes out as transformers reads it, and comes in again.
#include <cmath>

#include "tests/live/processes.h"

namespace shoal {
namespace {

int run(Processes& swarm, const std::vector<std::string>& words) {
  swarm.start("shoal", words);
  return swarm.exit_code("shoal");
}

double number_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos ? NAN : std::stod(text.substr(at + key.size()));
}

std::string run_from(const std::string& folder, const std::string& executor) {
  return "[model]\nfrom = \"" + folder +
         "\"\n[data]\npath = \"text.bin\"\nsequences = 2\nvalidation_samples = 4\n[optimizer]\nlr = "
         "1e-12\n[sync]\nrule = \"allreduce\"\n"
         "microbatches_per_step = 1\n[end]\nsteps = 1\n[executor]\nkind = \"" +
         executor + "\"\n";
}

class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_file_ = swarm_.write_run({.steps = 2, .executor = "kind = \"torch\""});
    ASSERT_EQ(run(swarm_, {"solo", run_file_, "--save", swarm_.path("saved"), "--device", "cpu", "--threads", "1"}), 0)
        << swarm_.errors("shoal");
  }
  Processes swarm_;
  std::string run_file_;
};

TEST_F(ExportTest, ARunThatBeginsFromAnExportedModelBeginsWithItsLoss) {
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--format", "hf"}), 0)
      << swarm_.errors("shoal");
  EXPECT_NE(swarm_.output("shoal").find("parameters in fp32"), std::string::npos) << swarm_.output("shoal");
  ASSERT_EQ(run(swarm_, {"--json", "eval", swarm_.path("saved"), "--text", swarm_.path("text.bin"), "--device", "cpu"}),
            0)
      << swarm_.errors("shoal");
  const double before = number_after(swarm_.output("shoal"), "\"val_loss\":");
  const std::string again = swarm_.write_file("again.toml", run_from("out", "torch"));
  ASSERT_EQ(run(swarm_, {"--json", "solo", again, "--device", "cpu", "--threads", "1"}), 0) << swarm_.errors("shoal");
  EXPECT_NEAR(number_after(swarm_.output("shoal"), "\"val_loss\": "), before, 1e-6);
}

TEST_F(ExportTest, WhatCannotBeExportedIsNamed) {
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("nothing"), swarm_.path("out")}), 66);
  EXPECT_NE(swarm_.errors("shoal").find("shoal checkpoint export"), std::string::npos) << swarm_.errors("shoal");
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("saved")}), 73) << "it holds a model";
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--tokenizer", run_file_}), 65)
      << "no tokenizer.json";
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--dtype", "int8"}), 64);
}

TEST_F(ExportTest, AnExecutorWithoutAModelBeginsFromNone) {
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--dtype", "bf16"}), 0)
      << swarm_.errors("shoal");
  const std::string again = swarm_.write_file("again.toml", run_from("out", "integer"));
  EXPECT_NE(run(swarm_, {"solo", again}), 0);
  EXPECT_NE(swarm_.errors("shoal").find("holds no model"), std::string::npos) << swarm_.errors("shoal");
}

}  // namespace
}  // namespace shoal
