#pragma once
// The hot loops of gradient accumulation: the screen for non-finite values, and the signed sum.
// Thread-safe: no state.   Ownership: borrows all spans for the call; they must not overlap.
// Elements are independent and each is one correctly rounded fp32 addition, so the result does not depend on the vector
// width: every variant returns the bits of the scalar twin.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/result.h"

namespace shoal {

// Adds all of sign * gradient to sum, or nothing at all. A sum of finite values may still overflow to infinity.
// REQUIRES: equal sizes; sign is +1 (count) or -1 (undo).
// ERRORS: kNonFinite (a NaN or infinity in `gradient`: the first one's index and how many there are; sum is untouched).
Status accumulate_checked(std::span<float> sum, std::span<const float> gradient, float sign);

// What a screen found: how many values are not finite, and where the first of them is.
inline constexpr std::uint64_t kNothingFound = UINT64_MAX;
struct NonFinite {
  std::uint64_t count = 0;
  std::uint64_t first = kNothingFound;
};

bool all_finite(std::span<const float> values);
// Index of the first NaN or infinity.
std::optional<std::size_t> first_non_finite(std::span<const float> values);

// The scalar twins: the specification.
bool all_finite_twin(std::span<const float> values);
NonFinite screen_twin(std::span<const float> values);
// REQUIRES: as accumulate_checked. Does not screen.
void accumulate_twin(std::span<float> sum, std::span<const float> gradient, float sign);

}  // namespace shoal
