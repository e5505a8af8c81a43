#pragma once
// What the Highway sources offer to the rest of kernels/ and to nobody else. Built only when Highway is there.
// Thread-safe.   No alignment is required beyond the element's own.   Each gives the bits of the scalar twin named
// beside it.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shoal::fast_cpu {

// `tiles` whole tiles of 64 elements each.
void int8_quantise_tiles(const float* values, std::size_t tiles, std::int8_t* codes,
                         float* scales);  // int8_quantise_twin
void int8_dequantise_tiles(const std::int8_t* codes, const float* scales, std::size_t tiles,
                           float* values);  // ..._twin

bool all_finite(const float* values, std::size_t count);  // all_finite_twin
// sum[i] += sign * gradient[i].
void accumulate(float* sum, const float* gradient, std::size_t count, float sign);  // accumulate_twin

std::string_view target_name();

}  // namespace shoal::fast_cpu
