// The loops of packed tiles, compiled once per instruction set and chosen at run time.
#include <array>
#include <bit>
#include <cstring>

#include "kernels/fast_cpu.h"
#include "kernels/packed_rule.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed_tiles_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::fast_cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
// 16 lanes at most, so that every vector width divides half a tile.
using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using U8 = hn::Rebind<std::uint8_t, F32>;
using FloatLanes = hn::Vec<F32>;
using IntLanes = hn::Vec<I32>;

constexpr std::size_t kHalf = kPackedTileElements / 2;
// Vectors whose width only the processor knows have no fixed neighbours: they leave the rotation to the twin.
#define SHOAL_FIXED_LANES (!HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR)

struct LaneTables {
  std::array<std::uint32_t, kPackedTileElements> bit{};
  std::array<std::uint32_t, kHalf> draw{};
  std::array<std::array<float, kHalf>, 4> side{};  // of a butterfly at distance 1, 2, 4, 8: 1, or -1 for the upper one
};
constexpr LaneTables make_lane_tables() {
  LaneTables tables;
  for (std::uint32_t i = 0; i < kPackedTileElements; ++i) tables.bit[i] = 1u << i;
  for (std::uint32_t j = 0; j < kHalf; ++j) tables.draw[j] = (j + 1) * kDrawStep;
  for (std::uint32_t log = 0; log < 4; ++log) {
    for (std::uint32_t j = 0; j < kHalf; ++j) tables.side[log][j] = (j >> log & 1u) != 0 ? -1.0f : 1.0f;
  }
  return tables;
}
constexpr LaneTables kLanes = make_lane_tables();

// HWY_INLINE: a call for every vector would cost more than what it does.
HWY_INLINE IntLanes SetBits(std::uint32_t bits) { return hn::Set(I32(), static_cast<std::int32_t>(bits)); }

HWY_INLINE void StoreScale(std::uint32_t scale, std::uint8_t* out) {
  const auto bytes = static_cast<std::uint16_t>(scale);
  std::memcpy(out, &bytes, 2);
}
HWY_INLINE float ScaleAt(const std::uint8_t* in) {
  std::uint16_t scale;
  std::memcpy(&scale, in, 2);
  return float_of_bf16(scale);
}

HWY_INLINE std::uint32_t TileAbsmaxBits(const float* HWY_RESTRICT values) {
  const F32 f32;
  const I32 i32;
  auto most = hn::Zero(i32);
  for (std::size_t i = 0; i < kPackedTileElements; i += hn::Lanes(f32))
    most = hn::Max(most, hn::And(hn::BitCast(i32, hn::LoadU(f32, values + i)), SetBits(kAbsMask)));
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(i32, most)));
}

// Elements j.. and j + 16.. of a tile, as the low four bits of each.
HWY_INLINE void StoreNibbles(IntLanes low, IntLanes high, std::uint8_t* out) {
  const U8 u8;
  const auto mask = SetBits(15);
  hn::StoreU(hn::DemoteTo(u8, hn::Or(hn::And(low, mask), hn::ShiftLeft<4>(hn::And(high, mask)))), u8, out);
}

HWY_INLINE IntLanes Int4Codes(const float* values, float inverse) {
  const F32 f32;
  const auto most = hn::Set(f32, kInt4Levels);
  const auto scaled = hn::Mul(hn::LoadU(f32, values), hn::Set(f32, inverse));
  return hn::NearestInt(hn::Min(hn::Max(scaled, hn::Neg(most)), most));
}

HWY_INLINE std::uint32_t PackInt4(const float* HWY_RESTRICT values, std::uint8_t* HWY_RESTRICT out) {
  const PackedTileScale rule = int4_tile_scale(TileFormat::kInt4, TileAbsmaxBits(values));
  if (rule.inverse == 0.0f) {
    std::memset(out, 0, kHalf);
    return rule.scale;
  }
  for (std::size_t j = 0; j < kHalf; j += hn::Lanes(F32()))
    StoreNibbles(Int4Codes(values + j, rule.inverse), Int4Codes(values + kHalf + j, rule.inverse), out + j);
  return rule.scale;
}

HWY_INLINE IntLanes SignOf(std::uint32_t signs, std::size_t i) {
  const U32 u32;
  const auto flips = hn::TestBit(hn::Set(u32, signs), hn::LoadU(u32, kLanes.bit.data() + i));
  return hn::BitCast(I32(), hn::IfThenElseZero(flips, hn::Set(u32, 1u << 31)));
}
HWY_INLINE FloatLanes Flip(FloatLanes values, IntLanes signs) {
  return hn::BitCast(F32(), hn::Xor(hn::BitCast(I32(), values), signs));
}

#if SHOAL_FIXED_LANES
constexpr std::size_t kWidth = hn::MaxLanes(F32());

// The neighbour at `kDistance`, plus the lane itself, taken off where that bit of its place is set.
template <std::size_t kDistance>
HWY_INLINE FloatLanes Butterfly(FloatLanes v) {
  FloatLanes other;
  if constexpr (kDistance == 1) other = hn::Shuffle2301(v);
  if constexpr (kDistance == 2) other = hn::Shuffle1032(v);
  if constexpr (kDistance == 4) other = hn::SwapAdjacentBlocks(v);
  if constexpr (kDistance == 8) other = hn::SwapAdjacentBlocks(hn::ReverseBlocks(F32(), v));
  // A product with 1 or -1 is exact, so that a fused sum rounds as the twin's does.
  return hn::MulAdd(v, hn::LoadU(F32(), kLanes.side[std::countr_zero(kDistance)].data()), other);
}

template <std::size_t kDistance>
HWY_INLINE void TransformAt(float* tile) {
  const F32 f32;
  for (std::size_t i = 0; i < kPackedTileElements; i += kWidth) {
    if constexpr (kDistance < kWidth) {
      hn::Store(Butterfly<kDistance>(hn::Load(f32, tile + i)), f32, tile + i);
    } else if ((i & kDistance) == 0) {
      const auto a = hn::Load(f32, tile + i), b = hn::Load(f32, tile + i + kDistance);
      hn::Store(hn::Add(a, b), f32, tile + i);
      hn::Store(hn::Sub(a, b), f32, tile + i + kDistance);
    }
  }
}

HWY_INLINE void Transform(float* tile) {
  TransformAt<16>(tile);
  TransformAt<8>(tile);
  TransformAt<4>(tile);
  TransformAt<2>(tile);
  TransformAt<1>(tile);
}

HWY_INLINE IntLanes DrawnCodes(const float* values, float inverse, IntLanes chance) {
  const F32 f32;
  const auto most = hn::Set(f32, kDrawnMax);
  const auto scaled = hn::Mul(hn::Load(f32, values), hn::Set(f32, inverse));
  const auto drawn = hn::NearestInt(hn::Min(hn::Max(scaled, hn::Neg(most)), most));
  return hn::ShiftRight<kChanceBits>(hn::Add(drawn, chance));
}

HWY_INLINE std::uint32_t PackInt4Hadamard(const float* HWY_RESTRICT values, std::uint64_t key,
                                          std::uint8_t* HWY_RESTRICT out) {
  const F32 f32;
  const I32 i32;
  const U32 u32;
  HWY_ALIGN float tile[kPackedTileElements];
  const auto share = hn::Set(f32, 0.03125f);
  for (std::size_t i = 0; i < kPackedTileElements; i += kWidth) {
    const auto value = hn::Mul(hn::LoadU(f32, values + i), share);
    hn::Store(Flip(value, SignOf(static_cast<std::uint32_t>(key), i)), f32, tile + i);
  }
  Transform(tile);
  // One element that is not finite makes every sum so, and no sum of finite ones is.
  const PackedTileScale rule = int4_tile_scale(TileFormat::kInt4Hadamard, TileAbsmaxBits(tile));
  if (rule.inverse == 0.0f) {
    std::memset(out, 0, kHalf);
    return rule.scale;
  }
  const auto first = hn::Set(u32, kDrawFirst), second = hn::Set(u32, kDrawSecond);
  for (std::size_t j = 0; j < kHalf; j += kWidth) {
    auto draw = hn::Add(hn::Set(u32, static_cast<std::uint32_t>(key >> 32)), hn::LoadU(u32, kLanes.draw.data() + j));
    draw = hn::Mul(hn::Xor(draw, hn::ShiftRight<16>(draw)), first);
    draw = hn::Mul(hn::Xor(draw, hn::ShiftRight<13>(draw)), second);
    draw = hn::Xor(draw, hn::ShiftRight<16>(draw));
    const auto low = hn::BitCast(i32, hn::And(draw, hn::Set(u32, 0xfffu)));
    const auto high = hn::BitCast(i32, hn::ShiftRight<20>(draw));
    StoreNibbles(DrawnCodes(tile + j, rule.inverse * kChances, low),
                 DrawnCodes(tile + kHalf + j, rule.inverse * kChances, high), out + j);
  }
  return rule.scale;
}

HWY_INLINE void UnpackInt4Hadamard(const std::uint8_t* HWY_RESTRICT codes, float scale, std::uint64_t key,
                                   float* HWY_RESTRICT values) {
  const F32 f32;
  const I32 i32;
  const U8 u8;
  HWY_ALIGN float tile[kPackedTileElements];
  const auto eight = SetBits(8);
  for (std::size_t j = 0; j < kHalf; j += kWidth) {
    const auto byte = hn::PromoteTo(i32, hn::LoadU(u8, codes + j));
    const auto low = hn::And(byte, SetBits(15)), high = hn::ShiftRight<4>(byte);
    hn::Store(hn::ConvertTo(f32, hn::Sub(hn::Xor(low, eight), eight)), f32, tile + j);
    hn::Store(hn::ConvertTo(f32, hn::Sub(hn::Xor(high, eight), eight)), f32, tile + kHalf + j);
  }
  Transform(tile);
  for (std::size_t i = 0; i < kPackedTileElements; i += kWidth) {
    const auto value = hn::Mul(hn::Load(f32, tile + i), hn::Set(f32, scale));
    hn::StoreU(Flip(value, SignOf(static_cast<std::uint32_t>(key), i)), f32, values + i);
  }
}
#endif  // SHOAL_FIXED_LANES

HWY_INLINE void UnpackInt4(const std::uint8_t* HWY_RESTRICT codes, float scale, float* HWY_RESTRICT values) {
  const F32 f32;
  const I32 i32;
  const U8 u8;
  const auto eight = SetBits(8);
  const auto factor = hn::Set(f32, scale);
  for (std::size_t j = 0; j < kHalf; j += hn::Lanes(f32)) {
    const auto byte = hn::PromoteTo(i32, hn::LoadU(u8, codes + j));
    const auto low = hn::And(byte, SetBits(15)), high = hn::ShiftRight<4>(byte);
    hn::StoreU(hn::Mul(hn::ConvertTo(f32, hn::Sub(hn::Xor(low, eight), eight)), factor), f32, values + j);
    hn::StoreU(hn::Mul(hn::ConvertTo(f32, hn::Sub(hn::Xor(high, eight), eight)), factor), f32, values + kHalf + j);
  }
}

// The inner level, in units, of the choice with the least squared error; the first of equals.
HWY_INLINE float BestInner(const float* units) {
  const F32 f32;
  float best = 0, least = 0;
  for (int choice = 0; choice < kInt2Choices; ++choice) {
    const float inner_units = int2_units(choice);
    const auto inner = hn::Set(f32, inner_units), outer = hn::Set(f32, 3 * inner_units);
    const auto middle = hn::Set(f32, 2 * inner_units);
    auto sum = hn::Zero(f32);
    for (std::size_t i = 0; i < kPackedTileElements; i += hn::Lanes(f32)) {
      const auto count = hn::LoadU(f32, units + i);
      const auto error = hn::Sub(count, hn::IfThenElse(hn::Gt(count, middle), outer, inner));
      sum = hn::MulAdd(error, error, sum);
    }
    const float error = hn::GetLane(hn::SumOfLanes(f32, sum));
    if (choice > 0 && error >= least) continue;
    least = error;
    best = inner_units;
  }
  return best;
}

// Two bits of the elements i..
HWY_INLINE IntLanes Int2Codes(const float* values, const float* units, float best) {
  const F32 f32;
  const I32 i32;
  const auto outer = hn::RebindMask(i32, hn::Gt(hn::LoadU(f32, units), hn::Set(f32, 2 * best)));
  const auto sign = hn::And(hn::ShiftRight<30>(hn::BitCast(i32, hn::LoadU(f32, values))), SetBits(2));
  return hn::Or(hn::IfThenElseZero(outer, SetBits(1)), sign);
}

HWY_INLINE std::uint32_t PackInt2(const float* HWY_RESTRICT values, std::uint8_t* HWY_RESTRICT out) {
  const F32 f32;
  const U8 u8;
  const std::uint32_t absmax_bits = TileAbsmaxBits(values);
  const PackedTileScale rule = int2_tile_units(absmax_bits);
  if (rule.inverse == 0.0f) {
    std::memset(out, 0, packed_tile_bytes(TileFormat::kInt2));
    return rule.scale;
  }
  HWY_ALIGN float units[kPackedTileElements];
  const auto inverse = hn::Set(f32, rule.inverse);
  for (std::size_t i = 0; i < kPackedTileElements; i += hn::Lanes(f32)) {
    const auto scaled = hn::Mul(hn::Abs(hn::LoadU(f32, values + i)), inverse);
    hn::Store(hn::ConvertTo(f32, hn::NearestInt(scaled)), f32, units + i);
  }
  const float best = BestInner(units);
  HWY_ALIGN std::uint8_t pairs[kHalf];
  for (std::size_t j = 0; j < kHalf; j += hn::Lanes(f32)) {
    const auto high = hn::ShiftLeft<4>(Int2Codes(values + kHalf + j, units + kHalf + j, best));
    hn::StoreU(hn::DemoteTo(u8, hn::Or(Int2Codes(values + j, units + j, best), high)), u8, pairs + j);
  }
  std::uint64_t low, high;
  std::memcpy(&low, pairs, 8);
  std::memcpy(&high, pairs + 8, 8);
  low |= high << 2;
  std::memcpy(out, &low, 8);
  return int2_tile_scale(absmax_bits, best);
}

HWY_INLINE FloatLanes Int2Values(IntLanes code, float scale) {
  const F32 f32;
  const I32 i32;
  const auto outer = hn::RebindMask(f32, hn::TestBit(code, SetBits(1)));
  const auto magnitude = hn::IfThenElse(outer, hn::Set(f32, 3 * scale), hn::Set(f32, scale));
  return Flip(magnitude, hn::ShiftLeft<30>(hn::And(code, hn::Set(i32, 2))));
}

HWY_INLINE void UnpackInt2(const std::uint8_t* HWY_RESTRICT codes, float scale, float* HWY_RESTRICT values) {
  const F32 f32;
  const I32 i32;
  const U8 u8;
  std::uint64_t low;
  std::memcpy(&low, codes, 8);
  const std::uint64_t high = low >> 2;
  HWY_ALIGN std::uint8_t pairs[kHalf];
  std::memcpy(pairs, &low, 8);
  std::memcpy(pairs + 8, &high, 8);
  for (std::size_t j = 0; j < kHalf; j += hn::Lanes(f32)) {
    const auto pair = hn::PromoteTo(i32, hn::LoadU(u8, pairs + j));
    hn::StoreU(Int2Values(pair, scale), f32, values + j);
    hn::StoreU(Int2Values(hn::ShiftRight<4>(pair), scale), f32, values + kHalf + j);
  }
}

void PackTiles(TileFormat format, TileSeed seed, const float* values, std::size_t tiles, std::uint8_t* scales,
               std::uint8_t* codes) {
  const std::size_t bytes = packed_tile_bytes(format);
#if !SHOAL_FIXED_LANES
  if (format == TileFormat::kInt4Hadamard)
    return pack_tiles_twin(format, seed, {values, tiles * kPackedTileElements}, {scales, 2 * tiles},
                           {codes, bytes * tiles});
#endif
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const float* in = values + tile * kPackedTileElements;
    std::uint8_t* out = codes + tile * bytes;
    std::uint32_t scale = 0;
    if (format == TileFormat::kInt4) scale = PackInt4(in, out);
    if (format == TileFormat::kInt2) scale = PackInt2(in, out);
#if SHOAL_FIXED_LANES
    if (format == TileFormat::kInt4Hadamard) scale = PackInt4Hadamard(in, tile_key(seed, tile), out);
#endif
    StoreScale(scale, scales + 2 * tile);
  }
}

void UnpackTiles(TileFormat format, TileSeed seed, const std::uint8_t* scales, const std::uint8_t* codes,
                 std::size_t tiles, float* values) {
  const std::size_t bytes = packed_tile_bytes(format);
#if !SHOAL_FIXED_LANES
  if (format == TileFormat::kInt4Hadamard)
    return unpack_tiles_twin(format, seed, {scales, 2 * tiles}, {codes, bytes * tiles},
                             {values, tiles * kPackedTileElements});
#endif
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::uint8_t* in = codes + tile * bytes;
    float* out = values + tile * kPackedTileElements;
    const float scale = ScaleAt(scales + 2 * tile);
    if (format == TileFormat::kInt4) UnpackInt4(in, scale, out);
    if (format == TileFormat::kInt2) UnpackInt2(in, scale, out);
#if SHOAL_FIXED_LANES
    if (format == TileFormat::kInt4Hadamard) UnpackInt4Hadamard(in, scale, tile_key(seed, tile), out);
#endif
  }
}

}  // namespace shoal::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::fast_cpu {

HWY_EXPORT(PackTiles);
HWY_EXPORT(UnpackTiles);

void pack_tiles(TileFormat format, TileSeed seed, const float* values, std::size_t tiles, std::uint8_t* scales,
                std::uint8_t* codes) {
  HWY_DYNAMIC_DISPATCH(PackTiles)(format, seed, values, tiles, scales, codes);
}

void unpack_tiles(TileFormat format, TileSeed seed, const std::uint8_t* scales, const std::uint8_t* codes,
                  std::size_t tiles, float* values) {
  HWY_DYNAMIC_DISPATCH(UnpackTiles)(format, seed, scales, codes, tiles, values);
}

}  // namespace shoal::fast_cpu
#endif
