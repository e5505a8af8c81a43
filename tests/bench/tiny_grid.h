#pragma once
// What the tests of grids share: the real program, and a tiny model on a text of its own.
#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "tests/common/letters.h"
#include "tests/common/scratch_folder.h"

namespace shoal {

// `Options` are those of `run_bench`.
template <class Options, int (*run_bench)(const Options&)>
class TinyGrid : public testing::Test {
 protected:
  TinyGrid() {
    auto& setting = options_.setting;
    setting.text = folder_.write("text", letters(4000, 2));
    setting.tokens = 512;
    setting.layers = setting.heads = setting.sequences = setting.stages = 2;
    setting.dim = setting.positions = 16;
    setting.inner_batch = 64;
    setting.sets = {"data.validation_samples=4"};
    options_.seeds = {1};
    options_.rows = folder_ / "rows.jsonl";
    options_.shoal = SHOAL_BINARY_DIR "/bin/shoal";
  }

  // The rows' file afterwards, empty where there is none, and what was printed.
  std::pair<std::string, std::string> run(int expected = 0) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_bench(options_), expected);
    const std::string printed = testing::internal::GetCapturedStdout();
    return {ScratchFolder::read(options_.rows), printed};
  }

  ScratchFolder folder_;
  Options options_;
};

}  // namespace shoal
