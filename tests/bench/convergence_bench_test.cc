// The grid with the real program and a tiny model.
#include "bench/convergence_bench.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/bench/tiny_grid.h"

namespace shoal {
namespace {

class ConvergenceBenchTest : public TinyGrid<ConvergenceOptions, run_convergence_bench> {
 protected:
  ConvergenceBenchTest() {
    options_.setting.tune_text = folder_.write("other", letters(4000, 3, 'A'));
    options_.setting.tune_tokens = 256;
    options_.setting.points = 4;
    options_.codecs = {"raw", "int2/int4"};
    options_.models = folder_ / "models";
  }

  static std::vector<ConvergenceRow> rows_of(const std::string& text) {
    std::vector<ConvergenceRow> rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (auto row = parse_convergence_row(line)) rows.push_back(*std::move(row));
    return rows;
  }
};

TEST_F(ConvergenceBenchTest, TrainsAndFineTunesEachCellOnceAndGoesOnWhereItWasKilled) {
  const auto [text, table] = run();
  const auto rows = rows_of(text);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_THAT(table, testing::HasSubstr("fine-tune: other, 256 tokens, 1 seed"));
  for (const ConvergenceRow& row : rows) {
    EXPECT_GT(row.validation, 1.0);
    EXPECT_GE(row.curve.size(), 4u);
    EXPECT_EQ(row.curve.back().tokens, static_cast<double>(row.tokens));
  }
  EXPECT_NE(rows[0].validation, rows[1].validation);
  EXPECT_NE(rows[2].validation, rows[3].validation);
  EXPECT_LT(rows[1].forward_bytes, 0.2 * rows[0].forward_bytes);

  EXPECT_EQ(run(), std::pair(text, table));  // nothing is trained again

  // Killed while it wrote the last row, and what fine-tuning began from is gone.
  folder_.write("rows.jsonl", text.substr(0, text.size() - 10));
  std::filesystem::remove_all(options_.models);
  const auto [mended, again] = run();
  const auto retrained = rows_of(mended);
  ASSERT_EQ(retrained.size(), 4u);
  EXPECT_EQ(std::count(mended.begin(), mended.end(), '\n'), 5);
  EXPECT_EQ(retrained[3].validation, rows[3].validation);
  EXPECT_EQ(again, table);
}

TEST_F(ConvergenceBenchTest, SaysWhatSoloSaid) {
  options_.setting.sets = {"model.heads=3"};
  testing::internal::CaptureStderr();
  const auto [rows, table] = run(1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(testing::HasSubstr("train raw/raw, seed 1"), testing::HasSubstr("heads")));
  EXPECT_EQ(rows, "");
  EXPECT_EQ(table, "");
}

TEST_F(ConvergenceBenchTest, ACodecThatThereIsNotIsNamedBeforeAnythingIsTrained) {
  options_.codecs = {"raw", "aq3/int8"};
  testing::internal::CaptureStderr();
  const auto [rows, table] = run(1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("\"aq3\" is none of raw, int8"));
  EXPECT_EQ(rows, "");
}

}  // namespace
}  // namespace shoal
