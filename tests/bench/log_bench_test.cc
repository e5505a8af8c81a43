#include "bench/log_bench.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

TEST(LogBenchTest, ARunIsFedToBothLogsAndResumed) {
  testing::internal::CaptureStdout();
  const int code = run_log_bench({.microbatches = 20'000, .stages = 2, .round = 64, .session = 4, .folder = {}, .json = true});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_EQ(code, 0) << "what was resumed is compared there with what was written";
  const auto line = nlohmann::json::parse(text);
  EXPECT_GE(line["rounds"], 2 * 20'000 / 64 * 9 / 10);
  EXPECT_GT(line["sessions"], 10u);
  EXPECT_GT(line["file_bytes"], 0u);
}

}  // namespace
}  // namespace shoal
