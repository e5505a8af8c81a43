// The grid with the real program and a tiny model.
#include "bench/staleness_bench.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/bench/tiny_grid.h"

namespace shoal {
namespace {

class StalenessBenchTest : public TinyGrid<StalenessOptions, run_staleness_bench> {
 protected:
  StalenessBenchTest() {
    options_.delays = {"0", "1.5"};
    options_.look_aheads = {"0"};
    options_.rates = {1e-2};
  }
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
