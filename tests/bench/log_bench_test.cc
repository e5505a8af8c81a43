#include "bench/log_bench.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shoal {
namespace {

TEST(LogBenchTest, ARunIsFedToBothLogsAndResumed) {
  testing::internal::CaptureStdout();
  const Status done =
      run_log_bench({.microbatches = 20'000, .stages = 2, .round = 64, .session = 4, .folder = {}, .json = true});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(done.ok()) << "what was resumed is compared there with what was written";
  const auto line = nlohmann::json::parse(text);
  EXPECT_GE(line["rounds"].get<int>(), 8);
  EXPECT_GE(line["sessions"].get<int>(), 2);
  EXPECT_GT(line["file_bytes"].get<int>(), 0);
}

}  // namespace
}  // namespace shoal
