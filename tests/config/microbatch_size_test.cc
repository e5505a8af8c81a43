// Into how many microbatches a step is cut where [data] sequences is "auto".
#include "runtime/config/microbatch_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/config/derived_options.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

struct World {
  int stages = 4, replicas = 1, positions = 256;
  std::uint64_t tokens = 1'000'000;
  std::string data{}, more{};
};

Result<RunConfig> config_of(const World& w) {
  const std::string end = w.tokens > 0 ? "[end]\ntokens = " + std::to_string(w.tokens) + "\n" : "";
  return parse_config("[model]\nlayers = " + std::to_string(w.stages) +
                          "\ndim = 64\nheads = 4\npositions = " + std::to_string(w.positions) +
                          "\n[data]\npath = \"text\"\n" + w.data + "[pipeline]\nstages = " + std::to_string(w.stages) +
                          "\nreplicas = " + std::to_string(w.replicas) + "\n" + end + w.more,
                      "run.toml");
}

RunConfig of(const World& world) {
  const auto config = config_of(world);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return *config;
}

std::uint64_t fill_of(const RunConfig& c) { return 2ull * c.pipeline.stages * c.pipeline.replicas; }

TEST(MicrobatchSizeTest, AStepIsCutIntoWhatFillsThePipe) {
  struct Row {
    World world;
    std::uint32_t sequences;
    std::uint64_t microbatches;  // of a step of all replicas
  };
  const std::string allreduce = "[sync]\nrule = \"allreduce\"\n";
  for (const auto& [world, sequences, microbatches] : {
           Row{{.tokens = 500'000}, 1, 4},  // no more than there are sequences
           Row{{}, 1, 6},
           Row{{.tokens = 0}, 1, 32},  // 8 fill the pipe, and are a quarter of a step
           Row{{.tokens = 0, .more = allreduce}, 1, 32},
           Row{{.replicas = 2, .tokens = 100'000'000}, 1, 84},
           Row{{.tokens = 1'000'000'000}, 4, 78},
           Row{{.stages = 1, .tokens = 0}, 4, 8},
           Row{{.positions = 1024, .tokens = 0}, 1, 8},
           Row{{.positions = 64}, 3, 8},                // larger ones would leave a step without what fills the pipe
           Row{{.positions = 64, .tokens = 0}, 4, 32},  // 256 targets
           Row{{.positions = 16, .tokens = 0}, 16, 32},
           Row{{.positions = 128, .tokens = 0}, 2, 32},
           Row{{.more = "[sync]\ninner_batch = 8192\n"}, 1, 32},
           Row{{.more = "[sync]\ninner_batch = 65536\n"}, 4, 64},
       }) {
    const RunConfig config = of(world);
    EXPECT_EQ(config.data.sequences, sequences) << world.positions << ' ' << world.tokens << world.more;
    EXPECT_EQ(config.microbatches_of_step(0), microbatches) << world.positions << ' ' << world.tokens << world.more;
  }
}

TEST(MicrobatchSizeTest, IsTheUsualWhereNothingIsLearnedOrAStepIsGivenInMicrobatches) {
  EXPECT_EQ(of({.more = "[executor]\nkind = \"paced\"\n"}).data.sequences, kSequencesUsual);
  EXPECT_EQ(of({.more = "[executor]\nkind = \"integer\"\n"}).data.sequences, kSequencesUsual);
  const std::string given = "microbatches_per_step = 8\n";
  EXPECT_EQ(of({.more = "[sync]\nrule = \"allreduce\"\n" + given}).data.sequences, kSequencesUsual);
  EXPECT_EQ(of({.more = "[sync]\nwarm_steps = 3\n" + given}).data.sequences, kSequencesUsual);
  EXPECT_EQ(of({.more = "[sync]\n" + given}).data.sequences, 1u) << "no step of this run is made of them";
}

// As large as the batch would be without microbatches, to half of one for each replica, unless a message or the window
// of ids holds no more of them.
void expect_kept(const RunConfig& config, double batch, const std::string& name) {
  const std::uint64_t replicas = config.pipeline.replicas, microbatches = config.microbatches_of_step(0);
  const std::uint64_t room =
      traits_of(config.sync.rule).every_step
          ? std::min(RunConfig::kStepMicrobatchesMax, RunConfig::paths_in_message(config.pipeline.stages))
          : RunConfig::kRoundMicrobatchesMax / config.sync.inner_steps;
  const double one = static_cast<double>(config.targets_per_microbatch());
  if (microbatches > replicas && microbatches + replicas < room) {
    EXPECT_NEAR(static_cast<double>(microbatches) * one, batch, one / 2 * static_cast<double>(replicas) + 1) << name;
  }
  if (config.data.sequences > kSequencesUsual) {
    EXPECT_LT(one, kTargetsLeast + config.model.positions) << name;
  }
  if (config.data.sequences > 1 && 2 * fill_of(config) <= room) {
    EXPECT_GE(microbatches + replicas, fill_of(config)) << name;
  }
}

TEST(MicrobatchSizeTest, AnyRunIsOneThatTheChecksTakeAndKeepsItsBatch) {
  for (const int stages : {1, 2, 7, 16})
    for (const int replicas : {1, 2, 256})
      for (const int positions : {1, 31, 256, 4096})
        for (const std::uint64_t tokens : {0ull, 100'000ull, 1'000'000'000ull})
          for (const char* rule : {"[sync]\nrule = \"diloco\"\n", "[sync]\nrule = \"allreduce\"\n"}) {
            const std::string name = std::to_string(stages) + " x " + std::to_string(replicas) + ", " +
                                     std::to_string(positions) + " positions, " + std::to_string(tokens) + " " + rule;
            const auto config = config_of({stages, replicas, positions, tokens, "", rule});
            ASSERT_TRUE(config.ok()) << name << config.error().message;
            const double targets = static_cast<double>(tokens);
            expect_kept(*config, tokens == 0 ? 8192.0 * replicas : 0.58 * std::pow(targets, 0.571), name);
          }
}

TEST(MicrobatchSizeTest, ALongRoundThatFitsInUsualMicrobatchesFits) {
  const RunConfig config = of({.more = "[sync]\ninner_batch = 8192\ninner_steps = 10000\n"});
  EXPECT_EQ(config.data.sequences, 3u) << "131072 microbatches of a round";
}

TEST(MicrobatchSizeTest, AsManyTargetsAreValidated) {
  EXPECT_EQ(of({.data = "validation_samples = 8\n"}).data.validation_samples, 32u) << "of one sequence";
  EXPECT_EQ(of({.data = "validation_samples = 8\nsequences = 1\n"}).data.validation_samples, 8u);
  EXPECT_EQ(of({.positions = 16, .tokens = 0, .data = "validation_samples = 9\n"}).data.validation_samples, 3u);
  EXPECT_EQ(of({}).data.validation_samples, 0u) << "all";
  EXPECT_EQ(of({.data = "validation_samples = 1000000000000000000\n"}).data.validation_samples, 1000000000000000000u);
  EXPECT_EQ(of({}).estimate_samples(), 256u);
  EXPECT_EQ(of({.data = "sequences = 4\n"}).estimate_samples(), 64u);
  EXPECT_EQ(of({.data = "sequences = 16\n"}).estimate_samples(), 64u);
}

TEST(MicrobatchSizeTest, AManifestHasTheNumberAndAGivenOneIsLeftAlone) {
  const auto text = canonical_text(of({.data = "validation_samples = 8\n"}));
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("\nsequences = 1\nvalidation_samples = 32\n"));
  const auto read = parse_manifest(*text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->data.validation_samples, 32u);
  const RunConfig given = of({.data = "sequences = 4\n"});
  EXPECT_EQ(given.data.sequences, 4u);
  EXPECT_EQ(given.sync.inner_batch, 2048u) << "whole microbatches";
}

}  // namespace
}  // namespace shoal
