#include "bench/stage_bench.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace shoal {
namespace {

StageBenchOptions tiny() {
  StageBenchOptions options;
  options.shapes = {"1x64"};
  options.threads = options.steps = 1;
  options.python = "no-such-python";
  options.json = true;
  return options;
}

TEST(StageBenchTest, ARowForEachType) {
  testing::internal::CaptureStdout();
  ASSERT_TRUE(run_stage_bench(tiny()).ok());
  std::istringstream rows(testing::internal::GetCapturedStdout());
  std::vector<nlohmann::json> found;
  for (std::string row; std::getline(rows, row);) found.push_back(nlohmann::json::parse(row));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["dtype"], "fp32");
  EXPECT_EQ(found[1]["dtype"], "bf16");
  for (const auto& row : found) {
    EXPECT_GT(row["tokens_per_s"].get<double>(), 0);
    EXPECT_TRUE(row["torch_tokens_per_s"].is_null());
  }
  EXPECT_NE(found[0]["loss"], found[1]["loss"]) << "each computes in its own";
  EXPECT_NEAR(found[0]["loss"].get<double>(), found[1]["loss"].get<double>(), 0.02);
}

TEST(StageBenchTest, AShapeThatIsNoneIsRefused) {
  StageBenchOptions options = tiny();
  options.shapes = {"4x100"};
  testing::internal::CaptureStderr();
  const Status done = run_stage_bench(options);
  testing::internal::GetCapturedStderr();
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("4x100 is not LAYERSxDIM"), std::string::npos);
}

}  // namespace
}  // namespace shoal
