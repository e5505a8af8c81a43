// The grid with the real program and a tiny model.
#include "bench/staleness_bench.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "common/ids.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

class StalenessBenchTest : public testing::Test {
 protected:
  StalenessBenchTest() {
    std::string text(4000, ' ');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + mix64(i / 2) % 20);
    options_.setting = {.text = folder_.write("text", text),
                        .tokens = 512,
                        .layers = 2,
                        .dim = 16,
                        .heads = 2,
                        .positions = 16,
                        .sequences = 2,
                        .stages = 2,
                        .inner_batch = 64,
                        .sets = {"data.validation_samples=4"}};
    options_.delays = {"0", "1.5"};
    options_.look_aheads = {"0"};
    options_.rates = {1e-2};
    options_.rows = folder_ / "rows.jsonl";
  }

  // The rows' file afterwards, and what was printed.
  std::pair<std::string, std::string> run(int expected = 0) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_staleness_bench(options_, SHOAL_BINARY_DIR "/bin/shoal"), expected);
    const std::string printed = testing::internal::GetCapturedStdout();
    return {ScratchFolder::read(options_.rows), printed};
  }

  ScratchFolder folder_;
  StalenessOptions options_;
};

TEST_F(StalenessBenchTest, TrainsEachCellOnceAndGoesOnWhereItWasKilled) {
  const auto [rows, table] = run();
  ASSERT_EQ(std::count(rows.begin(), rows.end(), '\n'), 2);
  EXPECT_THAT(table, testing::HasSubstr("1.5"));
  EXPECT_THAT(table, testing::HasSubstr("recovered"));
  const auto first = parse_row(rows.substr(0, rows.find('\n'))), second = parse_row(rows.substr(rows.find('\n') + 1));
  ASSERT_TRUE(first && second);
  EXPECT_GT(first->validation, 1.0);
  EXPECT_NE(first->validation, second->validation);  // late gradients are not the same training

  EXPECT_EQ(run(), std::pair(rows, table));  // nothing is trained again

  folder_.write("rows.jsonl", rows.substr(0, rows.size() - 10));  // killed while it wrote the second row
  const auto [mended, again] = run();
  EXPECT_EQ(mended.substr(0, rows.size() - 10), rows.substr(0, rows.size() - 10));
  EXPECT_EQ(std::count(mended.begin(), mended.end(), '\n'), 3);
  const auto retrained = parse_row(mended.substr(mended.rfind('\n', mended.size() - 2) + 1));
  ASSERT_TRUE(retrained.has_value());
  EXPECT_EQ(retrained->validation, second->validation);
  EXPECT_EQ(again, table);
}

TEST_F(StalenessBenchTest, SaysWhatSoloSaid) {
  options_.setting.sets = {"model.heads=3"};
  testing::internal::CaptureStderr();
  const auto [rows, table] = run(1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("heads"));
  EXPECT_EQ(rows, "");
  EXPECT_EQ(table, "");
}

}  // namespace
}  // namespace shoal
