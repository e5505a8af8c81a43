#include "kernels/adamw.h"

#include <gtest/gtest.h>

#include "kernels/adamw_rule.h"
#include "tests/kernels/adamw_arrays.h"
#include "tests/kernels/same_bits.h"

namespace shoal {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// Each line is one operation of the rule, kept from the next by volatile: no compiler can fuse or reorder these.
TEST(AdamWRuleTest, IsTheseOperationsInThisOrder) {
  const std::size_t count = 2000;
  const AdamWInput in = adamw_input(count, 5);
  for (const bool gives_back : {false, true}) {
    for (const bool shifts : {false, true}) {
      const AdamWRates f = rates_of(gives_back);
      AdamWOutput out(count);
      adamw_range_twin(f, kKeep, flat_of(in, out, shifts, true), 0, count);
      for (std::size_t i = 0; i < count; ++i) {
        volatile float g = in.gradient_sum[i] * f.gradient_scale;
        volatile float rest1 = 1 - f.beta1, rest2 = 1 - f.beta2;
        volatile float kept1 = f.beta1 * in.moment1[i], new1 = rest1 * g, m = kept1 + new1;
        volatile float kept2 = f.beta2 * in.moment2[i], part = rest2 * g, square = part * g, v = kept2 + square;
        volatile float root = std::sqrt(v), scaled = root * f.root_scale, below = scaled + f.eps;
        volatile float above = f.rate * m;
        if (gives_back) {
          volatile float back = f.rate_before * in.moment1[i];
          above = above - back;
        }
        volatile float step = above / below, kept = kKeep * in.parameters[i], p = kept - step;
        if (shifts) p = p + in.shift[i];
        const float got[] = {out.parameters[i], out.moment1[i], out.moment2[i]}, wanted[] = {p, m, v};
        for (int k = 0; k < 3; ++k) {
          if (std::isnan(got[k]) && std::isnan(wanted[k])) continue;
          ASSERT_EQ(bits(got[k]), bits(wanted[k])) << i << " of array " << k << " " << gives_back << shifts;
        }
        ASSERT_EQ(out.halves[i], bf16_of(out.parameters[i]));
      }
    }
  }
}

TEST(AdamWRuleTest, TouchesOnlyItsRange) {
  const AdamWInput in = adamw_input(100, 1);
  AdamWOutput whole(100);
  adamw_range_twin(rates_of(true), kKeep, flat_of(in, whole, true, true), 0, 100);
  for (const std::size_t end : {20, 21, 37, 99}) {
    AdamWOutput out(100), expected(100);
    for (std::size_t i = 20; i < end; ++i) {
      expected.parameters[i] = whole.parameters[i];
      expected.moment1[i] = whole.moment1[i];
      expected.moment2[i] = whole.moment2[i];
      expected.halves[i] = whole.halves[i];
    }
    adamw_range(rates_of(true), kKeep, flat_of(in, out, true, true), 20, end);
    expect_same_floats(out.parameters, expected.parameters, "parameters");
    expect_same_floats(out.moment1, expected.moment1, "first moment");
    expect_same_floats(out.moment2, expected.moment2, "second moment");
    EXPECT_EQ(out.halves, expected.halves);
  }
}

TEST(StepScaleTest, ClipsAndRefusesWhatAMomentCannotHold) {
  EXPECT_EQ(step_scale(64, 4, 0).norm, 2);
  EXPECT_EQ(step_scale(64, 4, 0).gradient_scale, 0.25f);
  EXPECT_EQ(step_scale(64, 4, 1).gradient_scale, 0.125f);
  EXPECT_EQ(step_scale(64, 4, 3).gradient_scale, 0.25f);
  EXPECT_EQ(step_scale(1e36, 1, 1).usable, 1u);
  EXPECT_EQ(step_scale(1.001e36, 1, 1).usable, 0u);
  EXPECT_EQ(step_scale(INFINITY, 1, 1).usable, 0u);
  EXPECT_EQ(step_scale(NAN, 1, 1).usable, 0u);
}

}  // namespace
}  // namespace shoal
