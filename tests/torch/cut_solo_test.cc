// A step learns the same however its sequences are cut into microbatches.
#include "tests/common/letters.h"
#include "tests/torch/tiny_solo.h"

namespace shoal {
namespace {

constexpr std::uint64_t kSteps = 8;

// Four windows are all of the training text, so that each step reads the same ones.
SoloResult trained(const ScratchFolder& folder, std::uint32_t sequences) {
  SoloOptions options;
  options.config = tiny_solo(folder, letters(4 * 16 + 1, 3), 2, 16, "[end]\nsteps = " + std::to_string(kSteps) + "\n");
  options.config.data.validation = folder.write("validation.bin", letters(4 * 16 + 1, 5));
  options.config.data.sequences = sequences;
  options.factory = tiny_factory();
  return solo_of(options);
}

TEST(CutSoloTest, AStepOfFourMicrobatchesLearnsWhatOneOfTheirSequencesDoes) {
  ScratchFolder folder;
  const SoloResult whole = trained(folder, 4), cut = trained(folder, 1);
  EXPECT_EQ(whole.steps, kSteps);
  EXPECT_EQ(cut.steps, kSteps);
  EXPECT_EQ(cut.tokens, whole.tokens);
  EXPECT_EQ(cut.validation_targets, whole.validation_targets);
  EXPECT_LT(whole.losses.last(), 0.95 * whole.losses.first()) << "it learns";
  EXPECT_NEAR(cut.losses.first(), whole.losses.first(), 1e-5);
  EXPECT_NEAR(cut.losses.last(), whole.losses.last(), 1e-3);
  EXPECT_NEAR(cut.validation_loss, whole.validation_loss, 1e-3);
}

}  // namespace
}  // namespace shoal
