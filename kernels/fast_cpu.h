#pragma once
// What the Highway sources offer to the rest of kernels/ and to nobody else. Built only when Highway is there.
// Thread-safe.   No alignment is required beyond the element's own.   Each gives the bits of the scalar twin named
// beside it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/adamw.h"
#include "kernels/half.h"
#include "kernels/nesterov.h"
#include "kernels/packed_tiles.h"

namespace shoal::fast_cpu {

// `tiles` whole tiles of 64 elements each.
void int8_quantise_tiles(const float* values, std::size_t tiles, std::int8_t* codes,
                         float* scales);  // int8_quantise_twin
void int8_dequantise_tiles(const std::int8_t* codes, const float* scales, std::size_t tiles,
                           float* values);  // ..._twin

// `count`: a multiple of 16. Whether all are finite.
bool narrow_to_half(HalfFormat format, const float* values, std::size_t count,
                    std::uint8_t* halves);  // narrow_to_half_twin
bool widen_half(HalfFormat format, const std::uint8_t* halves, std::size_t count, float* values);  // widen_half_twin

// `tiles` whole tiles of 32 elements each.
void pack_tiles(TileFormat format, TileSeed seed, const float* values, std::size_t tiles, std::uint8_t* scales,
                std::uint8_t* codes);  // pack_tiles_twin
void unpack_tiles(TileFormat format, TileSeed seed, const std::uint8_t* scales, const std::uint8_t* codes,
                  std::size_t tiles, float* values);  // unpack_tiles_twin

bool all_finite(const float* values, std::size_t count);  // all_finite_twin
// sum[i] += sign * gradient[i].
void accumulate(float* sum, const float* gradient, std::size_t count, float sign);  // accumulate_twin

// Without the halves. Returns where it stopped: what is left is less than a vector.
std::size_t adamw_range(const AdamWRates& rates, float keep, const AdamWFlat& arrays, std::size_t begin,
                        std::size_t end);  // adamw_range_twin

// Returns where it stopped: what is left is less than a vector.
std::size_t nesterov(const NesterovRates& rates, const NesterovArrays& arrays);  // nesterov_apply_twin

std::string_view target_name();

}  // namespace shoal::fast_cpu
