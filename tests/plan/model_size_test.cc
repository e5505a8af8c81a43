#include "runtime/plan/model_size.h"

#include <gmock/gmock.h>

#include <cmath>

#include "stages/stage_spec.h"

namespace shoal {
namespace {

using testing::HasSubstr;

TEST(ModelSizeTest, AModelHasAboutTheSizeThatWasAskedForAndCanBeCut) {
  for (const std::uint32_t vocabulary : {256u, 2048u, 50257u}) {
    for (const double size : {5e6, 1e7, 1.24e8, 1e9, 7e9}) {
      if (size < 200.0 * vocabulary) continue;
      const auto model = model_of_size(size, vocabulary, 4);
      ASSERT_TRUE(model.ok()) << model.error().message;
      EXPECT_LT(std::abs(std::log(static_cast<double>(parameters_of_model(*model)) / size)), std::log(1.25));
      EXPECT_EQ(model->vocabulary, vocabulary);
      EXPECT_GE(model->dim / model->heads, 32u);
      EXPECT_LE(model->dim / model->heads, 64u);
      EXPECT_TRUE(split_model(*model, 4).ok());
    }
  }
}

// 12 layers of width 768 with 50257 ids are GPT-2's smallest model, with a head of its own.
TEST(ModelSizeTest, WidthAndDepthAreNearThoseOfGpt2) {
  const auto model = model_of_size(1.63e8, 50257, 1);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->dim, 768u);
  EXPECT_EQ(model->layers, 12u);
  EXPECT_EQ(model->heads, 12u);
}

TEST(ModelSizeTest, TheSmallestModelsAreNarrow) {
  const auto model = model_of_size(40e3, 256, 1);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->dim, 32u);
  EXPECT_EQ(model->heads, 1u);
  EXPECT_EQ(model->positions, 64u);
}

TEST(ModelSizeTest, ASizeThatNoModelHasIsRefusedWithTheNearest) {
  const auto small = model_of_size(1e6, 50257, 1);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.code(), ErrorCode::kInput);
  EXPECT_THAT(small.error().message, HasSubstr("no model of 1000000 parameters with 50257 ids in 1 stages"));
  EXPECT_THAT(small.error().message, HasSubstr("HINT: another size"));
  EXPECT_FALSE(model_of_size(1e5, 256, 200).ok()) << "a stage without a layer";
}

}  // namespace
}  // namespace shoal
