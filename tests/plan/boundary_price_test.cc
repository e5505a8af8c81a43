#include "runtime/plan/boundary_price.h"

#include <gmock/gmock.h>

#include "tests/plan/narrow_run.h"

namespace shoal {
namespace {

using testing::HasSubstr;

double price_of(std::uint32_t boundary) { return boundary_price(narrow_run(boundary))->price; }
std::string beyond(const RunConfig& config) { return boundary_price(config)->beyond; }

TEST(BoundaryPriceTest, IsWhatWasMeasuredAtItsShares) {
  EXPECT_NEAR(price_of(8), 0.072, 1e-12);
  EXPECT_NEAR(price_of(16), 0.061, 1e-12);
  EXPECT_NEAR(price_of(32), 0.051, 1e-12);
}

TEST(BoundaryPriceTest, GoesInAStraightLineOverTheLogarithmBetweenThem) {
  EXPECT_NEAR(price_of(12), 0.072 - 0.011 * std::log2(1.5), 1e-12);
  EXPECT_GT(price_of(10), price_of(12));
  EXPECT_GT(price_of(12), price_of(15));
}

TEST(BoundaryPriceTest, WhatWasMeasuredIsSaidWithoutADoubt) {
  for (const std::uint32_t boundary : {8, 16, 32}) EXPECT_EQ(beyond(narrow_run(boundary)), "");
  EXPECT_EQ(beyond(narrow_run(8, 64)), "");
}

TEST(BoundaryPriceTest, OutsideOfItIsSaidInWhat) {
  EXPECT_EQ(beyond(narrow_run(4)), "less than a sixteenth of the width, which costs more");
  EXPECT_NEAR(price_of(4), 0.072, 1e-12) << "as at the end";
  EXPECT_EQ(beyond(narrow_run(64)), "more than a fourth of the width");
  EXPECT_EQ(beyond(narrow_run(256, 2048)), "a width of 2048");
  RunConfig config = narrow_run(16);
  config.end.tokens = 10'000'000;
  config.pipeline.replicas = 2;
  EXPECT_EQ(beyond(config), "replicas, more than 5.0 M tokens");
  config = narrow_run(16);
  config.wire.forward.codecs = {CodecId::kInt4};
  config.model.boundary_table = 0;
  EXPECT_EQ(beyond(config), "a token table of 0, codecs coarser than int8");
  config = narrow_run(16);
  config.model.layers = 16;
  config.model.cuts = {2, 4, 6, 8};
  EXPECT_EQ(beyond(config), "16 layers, 4 cuts, a token table of 64");
  config = narrow_run(16);
  config.end.tokens = 0;
  EXPECT_THAT(beyond(config), HasSubstr("tokens")) << "nobody knows how many";
}

TEST(BoundaryPriceTest, AModelThatExistsPaysLess) {
  RunConfig config = narrow_run(16);
  config.model.from = "folder";
  EXPECT_NEAR(boundary_price(config)->price, 0.012, 1e-12);
  EXPECT_EQ(beyond(config), "");
  config = narrow_run(32);
  config.model.from = "folder";
  EXPECT_EQ(beyond(config), "another part of the width than an eighth");
}

TEST(BoundaryPriceTest, AWarningIsOfWhatIsTrainedFromNothing) {
  EXPECT_THAT(*boundary_warning(narrow_run(16)),
              testing::AllOf(HasSubstr("boundary = 16"), HasSubstr("6.1 %"), HasSubstr("shoal fit")));
  EXPECT_FALSE(boundary_warning(narrow_run(0)));
  RunConfig config = narrow_run(16);
  config.model.from = "folder";
  EXPECT_FALSE(boundary_warning(config));
}

TEST(BoundaryPriceTest, WithoutABoundaryOrALossThereIsNone) {
  EXPECT_FALSE(boundary_price(narrow_run(0)));
  RunConfig config = narrow_run(16);
  config.executor.kind = ExecutorKind::kPaced;
  EXPECT_FALSE(boundary_price(config));
}

}  // namespace
}  // namespace shoal
