// The int8 tile loops, compiled once per instruction set and chosen at run time.
#include "kernels/fast_cpu.h"
#include "kernels/int8_rule.h"
#include "kernels/int8_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8_tiles_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::fast_cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
// 16 lanes at most, so that every vector width divides a tile.
using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
using I8 = hn::Rebind<std::int8_t, F32>;

void QuantiseTiles(const float* HWY_RESTRICT values, std::size_t tiles, std::int8_t* HWY_RESTRICT codes,
                   float* HWY_RESTRICT scales) {
  const F32 f32;
  const I32 i32;
  const I8 i8;
  const std::size_t lanes = hn::Lanes(f32);
  const auto abs_mask = hn::Set(i32, static_cast<std::int32_t>(kAbsMask));
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const float* in = values + tile * kInt8TileElements;
    std::int8_t* out = codes + tile * kInt8TileElements;
    // Magnitudes compare as integers: subnormals and NaN are ordered too, whatever the flush-to-zero mode.
    auto absmax = hn::Zero(i32);
    for (std::size_t i = 0; i < kInt8TileElements; i += lanes) {
      absmax = hn::Max(absmax, hn::And(hn::BitCast(i32, hn::LoadU(f32, in + i)), abs_mask));
    }
    const Int8TileScale rule = int8_tile_scale(static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, absmax))));
    scales[tile] = rule.scale;
    if (rule.inverse == 0.0f) {
      for (std::size_t i = 0; i < kInt8TileElements; i += lanes) hn::StoreU(hn::Zero(i8), i8, out + i);
      continue;
    }
    const auto inverse = hn::Set(f32, rule.inverse);
    for (std::size_t i = 0; i < kInt8TileElements; i += lanes) {
      const auto rounded = hn::NearestInt(hn::Mul(hn::LoadU(f32, in + i), inverse));
      hn::StoreU(hn::DemoteTo(i8, rounded), i8, out + i);
    }
  }
}

void DequantiseTiles(const std::int8_t* HWY_RESTRICT codes, const float* HWY_RESTRICT scales, std::size_t tiles,
                     float* HWY_RESTRICT values) {
  const F32 f32;
  const I32 i32;
  const I8 i8;
  const std::size_t lanes = hn::Lanes(f32);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::int8_t* in = codes + tile * kInt8TileElements;
    float* out = values + tile * kInt8TileElements;
    const auto scale = hn::Set(f32, scales[tile]);
    for (std::size_t i = 0; i < kInt8TileElements; i += lanes) {
      const auto code = hn::ConvertTo(f32, hn::PromoteTo(i32, hn::LoadU(i8, in + i)));
      hn::StoreU(hn::Mul(code, scale), f32, out + i);
    }
  }
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace shoal::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::fast_cpu {

HWY_EXPORT(QuantiseTiles);
HWY_EXPORT(DequantiseTiles);
HWY_EXPORT(TargetName);

void int8_quantise_tiles(const float* values, std::size_t tiles, std::int8_t* codes, float* scales) {
  HWY_DYNAMIC_DISPATCH(QuantiseTiles)(values, tiles, codes, scales);
}

void int8_dequantise_tiles(const std::int8_t* codes, const float* scales, std::size_t tiles, float* values) {
  HWY_DYNAMIC_DISPATCH(DequantiseTiles)(codes, scales, tiles, values);
}

std::string_view target_name() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace shoal::fast_cpu
#endif
