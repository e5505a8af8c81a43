// The grid with the real program and a tiny model.
#include "bench/convergence_bench.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/ids.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

class ConvergenceBenchTest : public testing::Test {
 protected:
  ConvergenceBenchTest() {
    std::string text(4000, ' '), other(4000, ' ');
    for (std::size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<char>('a' + mix64(i / 2) % 20);
      other[i] = static_cast<char>('A' + mix64(i / 3) % 20);
    }
    options_.setting = {.text = folder_.write("text", text),
                        .tune_text = folder_.write("other", other),
                        .tokens = 512,
                        .tune_tokens = 256,
                        .layers = 2,
                        .dim = 16,
                        .heads = 2,
                        .positions = 16,
                        .sequences = 2,
                        .stages = 2,
                        .inner_batch = 64,
                        .points = 4,
                        .sets = {"data.validation_samples=4"}};
    options_.codecs = {"raw", "int2/int4"};
    options_.seeds = {1};
    options_.rows = folder_ / "rows.jsonl";
    options_.models = folder_ / "models";
  }

  // The rows' file afterwards, and what was printed.
  std::pair<std::string, std::string> run(int expected = 0) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_convergence_bench(options_, SHOAL_BINARY_DIR "/bin/shoal"), expected);
    const std::string printed = testing::internal::GetCapturedStdout();
    return {std::filesystem::exists(options_.rows) ? ScratchFolder::read(options_.rows) : "", printed};
  }

  static std::vector<ConvergenceRow> rows_of(const std::string& text) {
    std::vector<ConvergenceRow> rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (auto row = parse_convergence_row(line)) rows.push_back(*std::move(row));
    return rows;
  }

  ScratchFolder folder_;
  ConvergenceOptions options_;
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
