// A narrow boundary in a run file: what is derived, what the manifest has, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/config/config.h"
#include "stages/boundary.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// `model` and `pipeline` are further lines of their sections.
Result<RunConfig> config_of(const std::string& model, const std::string& pipeline = "stages = 4\n") {
  return parse_config("[model]\nlayers = 8\ndim = 128\nheads = 4\npositions = 64\n" + model +
                          "[data]\npath = \"text\"\n[pipeline]\n" + pipeline + "[end]\ntokens = 1000000\n",
                      "run.toml");
}

RunConfig of(const std::string& model, const std::string& pipeline = "stages = 4\n") {
  auto config = config_of(model, pipeline);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return *std::move(config);
}

std::string manifest_of(const RunConfig& config) { return *canonical_text(config); }

std::string refusal_of(const std::string& model, const std::string& pipeline = "stages = 4\n") {
  const auto config = config_of(model, pipeline);
  EXPECT_FALSE(config.ok());
  if (config.ok()) return "";
  EXPECT_EQ(config.code(), ErrorCode::kInput);
  return config.error().message;
}

TEST(BoundaryOptionsTest, CutsAreWhereTheStagesOfThePlainModelMeet) {
  EXPECT_THAT(of("boundary = 16\n").model.cuts, ElementsAre(2, 4, 6));
  EXPECT_THAT(of("boundary = 16\n", "stages = 3\nlayers_per_stage = [1, 2, 5]\n").model.cuts, ElementsAre(1, 3));
  EXPECT_THAT(of("boundary = 16\ncuts = [3, 5]\n", "stages = 2\n").model.cuts, ElementsAre(3, 5));
  EXPECT_THAT(of("").model.cuts, ElementsAre());
}

TEST(BoundaryOptionsTest, TheTokenTableFollowsTheLayersUnlessItIsGiven) {
  const RunConfig derived = of("boundary = 16\n");
  EXPECT_EQ(derived.model_spec().boundary_table, usual_boundary_table(derived.model_spec(), 4));
  EXPECT_EQ(derived.model_spec().boundary_table, 64u);
  EXPECT_EQ(of("boundary = 16\nboundary_table = 128\n").model_spec().boundary_table, 128u);
  EXPECT_EQ(of("boundary = 16\nboundary_table = 0\n").model_spec().boundary_table, 0u);
  EXPECT_EQ(of("").model_spec().boundary_table, 0u);
}

TEST(BoundaryOptionsTest, TheManifestHasTheNumbersAndIsReadBack) {
  const RunConfig config = of("boundary = 16\n");
  EXPECT_THAT(manifest_of(config), HasSubstr("\nboundary = 16\nboundary_table = 64\ncuts = [2, 4, 6]\n"));
  const auto again = parse_manifest(manifest_of(config));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->model_spec(), config.model_spec());
}

TEST(BoundaryOptionsTest, AManifestThatLeavesANumberToItsReaderIsRefused) {
  for (const std::string line : {"boundary_table = 64\n", "cuts = [2, 4, 6]\n"}) {
    std::string text = manifest_of(of("boundary = 16\n"));
    text.erase(text.find(line), line.size());
    EXPECT_FALSE(parse_manifest(text).ok()) << line;
  }
}

// The whole section as programs wrote it that knew of no boundary.
TEST(BoundaryOptionsTest, APlainRunsManifestIsWhatItWas) {
  const std::string plain = manifest_of(of(""));
  EXPECT_THAT(plain,
              HasSubstr("\n[model]\nlayers = 8\ndim = 128\nheads = 4\npositions = 64\nvocabulary = 256\n[data]\n"));
  EXPECT_THAT(plain, AllOf(Not(HasSubstr("boundary")), Not(HasSubstr("cuts"))));
  EXPECT_EQ(manifest_of(of("boundary = 0\nboundary_table = \"auto\"\ncuts = []\n")), plain);
  RunConfig by_hand = of("");
  by_hand.model.boundary_table = {};
  static_cast<ModelSpec&>(by_hand.model).boundary_table = 0;
  EXPECT_EQ(manifest_of(by_hand), plain);
}

TEST(BoundaryOptionsTest, RateAndBatchAreThoseOfThePlainRun) {
  const RunConfig plain = of(""), narrow = of("boundary = 16\n");
  EXPECT_EQ(narrow.optimizer.lr, plain.optimizer.lr);
  EXPECT_EQ(narrow.sync.inner_batch, plain.sync.inner_batch);
}

TEST(BoundaryOptionsTest, WhatDoesNotGoTogetherIsRefusedByNameWithARemedy) {
  EXPECT_THAT(refusal_of("boundary = 128\n"),
              AllOf(HasSubstr("boundary = 128"), HasSubstr("dim = 128"), HasSubstr("HINT")));
  EXPECT_THAT(refusal_of("boundary = 16\nlora_rank = 4\n"), AllOf(HasSubstr("lora_rank"), HasSubstr("HINT")));
  EXPECT_THAT(refusal_of("boundary = 16\n", "stages = 1\n"),
              AllOf(HasSubstr("boundary = 16 without cuts"), HasSubstr("HINT: two stages or more, or cuts = [")));
  EXPECT_THAT(refusal_of("boundary = 16\nboundary_table = 192\n"),
              HasSubstr("boundary_table = 192 is beyond dim = 128"));
  EXPECT_THAT(refusal_of("boundary_table = 64\n"), AllOf(HasSubstr("without boundary"), HasSubstr("HINT")));
  EXPECT_THAT(refusal_of("cuts = [4]\n"), AllOf(HasSubstr("without boundary"), HasSubstr("HINT")));
}

TEST(BoundaryOptionsTest, StagesThatMeetElsewhereThanAtCutsAreRefused) {
  EXPECT_THAT(refusal_of("boundary = 16\ncuts = [2, 4]\n", "stages = 2\nlayers_per_stage = [3, 5]\n"),
              AllOf(HasSubstr("layers_per_stage"), HasSubstr("layer 3"), HasSubstr("HINT")));
  EXPECT_THAT(refusal_of("boundary = 16\ncuts = [4]\n"),
              AllOf(HasSubstr("4 stages"), HasSubstr("cuts"), HasSubstr("HINT")));
}

}  // namespace
}  // namespace shoal
