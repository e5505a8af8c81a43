#include "demo/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demo/demo.h"
#include "runtime/config/config.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;

DemoRun example() {
  DemoRun run;
  run.text = "../build/deps/text/jargon.txt";
  run.schedule_tokens = 2'000'000;
  run.end_tokens = 2'000'000;
  return run;
}

TEST(DemoSetupTest, TheExampleIsWhatTheDemoRuns) {
  EXPECT_EQ(ScratchFolder::read(SHOAL_SOURCE_DIR "/examples/demo.toml"), demo_toml(example()));
}

TEST(DemoSetupTest, EveryChoiceMakesARunFileThatIsAccepted) {
  for (const RuleId rule : {RuleId::kDiloco, RuleId::kAllreduce}) {
    for (const std::uint16_t stages : {1, 2, 3, 4, 7, 16}) {
      for (const std::uint16_t replicas : {1, 2, 16}) {
        for (const std::uint64_t tokens : {std::uint64_t{1}, std::uint64_t{1} << 40}) {
          DemoRun run = example();
          run.rule = rule;
          run.stages = stages;
          run.replicas = replicas;
          run.schedule_tokens = tokens;
          run.end_tokens = 0;
          run.seed = 7;
          const auto config = parse_config(demo_toml(run), "demo");
          ASSERT_TRUE(config.ok()) << config.error().message;
          EXPECT_EQ(config->pipeline.stages, stages);
          EXPECT_EQ(config->pipeline.replicas, replicas);
          EXPECT_EQ(config->sync.rule, rule);
          EXPECT_EQ(config->run.seed, 7u);
          EXPECT_EQ(config->end_targets(), 0u);
          EXPECT_EQ(config->wire.forward.at(StageId(0)), CodecId::kInt8);
          EXPECT_EQ(config->wire.backward.at(StageId(0)), CodecId::kInt8);
        }
      }
    }
  }
}

TEST(DemoSetupTest, MatrixProductsAreOfTheTypeThatIsNamed) {
  DemoRun run = example();
  EXPECT_EQ(parse_config(demo_toml(run), "demo")->compute.dtype, ComputeType::kFp32);
  run.dtype = "bf16";
  const auto config = parse_config(demo_toml(run), "demo");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->compute.dtype, ComputeType::kBf16);
}

TEST(DemoSetupTest, ALlamaHasKeysAndValuesOfHalfAsManyHeads) {
  for (const std::uint16_t stages : {1, 4, 16}) {
    DemoRun run = example();
    run.family = "llama";
    run.stages = stages;
    const auto config = parse_config(demo_toml(run), "demo");
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->model.family, ModelFamily::kLlama);
    EXPECT_EQ(config->model.heads, 4u);
    EXPECT_EQ(config->model.kv_heads, 2u);
    EXPECT_EQ(config->model.dim, parse_config(demo_toml(example()), "demo")->model.dim);
  }
}

TEST(DemoSetupTest, APathWithQuotesAndBackslashesStaysWhatItIs) {
  DemoRun run = example();
  run.text = "/a \"b\"\\c.txt";
  const auto config = parse_config(demo_toml(run), "demo");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->data.paths.front(), run.text);
}

class DemoOptionsTest : public ::testing::Test {
 protected:
  DemoOptionsTest() {
    options_.text = folder_.write("text", "text");
    options_.program = options_.dht_program = options_.text;
    options_.say = [](const std::string&) {};
  }
  void expect_refused(ErrorCode code, const std::string& part) {
    const auto result = run_demo(options_);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.code(), code);
    EXPECT_THAT(result.error().message, HasSubstr(part));
  }
  ScratchFolder folder_;
  DemoOptions options_;
};

TEST_F(DemoOptionsTest, FaultsNeedSomebodyWhoStays) {
  options_.replicas = 1;
  expect_refused(ErrorCode::kInput, "--replicas");
}

TEST_F(DemoOptionsTest, FaultsNeedTime) {
  options_.seconds = 44;
  expect_refused(ErrorCode::kInput, "--seconds 45");
}

TEST_F(DemoOptionsTest, AMissingTextIsNamed) {
  options_.text = folder_ / "absent";
  expect_refused(ErrorCode::kMissing, "absent");
}

TEST_F(DemoOptionsTest, NothingIsWrittenIntoAFolderInUse) {
  options_.keep = folder_.path();
  expect_refused(ErrorCode::kInput, "not empty");
}

}  // namespace
}  // namespace shoal
