#pragma once
// Inputs that every variant of the int8 kernels is fed, so that "the same bits" is judged on the same ground.
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/rng.h"

namespace shoal {

struct TileInput {
  std::string name;
  std::vector<float> values;
};

inline std::vector<float> normal_values(std::size_t count, float deviation, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = deviation * static_cast<float>(rng.normal());
  return values;
}

inline std::vector<float> any_bits(std::size_t count, bool finite_only, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    do {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(rng.next()));
    } while (finite_only && !std::isfinite(value));
  }
  return values;
}

// Every code boundary of a tile whose scale is 1: k + 0.5 and its two neighbours.
inline std::vector<float> halves() {
  std::vector<float> values;
  for (int k = -127; k < 127; ++k) {
    const float half = static_cast<float>(k) + 0.5f;
    for (const float value : {half, std::nextafterf(half, -1e9f), std::nextafterf(half, 1e9f)}) {
      if (values.size() % 64 == 0) values.push_back(127.0f);
      values.push_back(value);
    }
  }
  return values;
}

inline std::vector<TileInput> finite_tile_inputs() {
  const float tiny = FLT_TRUE_MIN;
  std::vector<TileInput> inputs = {
      {"empty", {}},
      {"one element", {-3.5f}},
      {"zeros of both signs", {0.0f, -0.0f, 0.0f}},
      {"subnormals", {tiny, -tiny, 190 * tiny, -FLT_MIN / 2}},
      {"below the tiny bound", {std::nextafterf(127 * FLT_MIN, 0.0f), FLT_MIN}},
      {"at the tiny bound", {127 * FLT_MIN, -63.5f * FLT_MIN, tiny}},
      {"largest", {FLT_MAX, -FLT_MAX, FLT_MAX / 2, 1.0f}},
      {"large beside small", {1e30f, 1e-30f, -1e30f, 1.0f}},
      {"ties", halves()},
  };
  for (const std::size_t count : {1, 2, 3, 15, 16, 63, 64, 65, 127, 128, 129, 191, 1000, 4096 + 17}) {
    inputs.push_back({"normal " + std::to_string(count), normal_values(count, 2.5f, count)});
    inputs.push_back({"finite bits " + std::to_string(count), any_bits(count, true, count)});
  }
  return inputs;
}

// NaN and infinities too.
inline std::vector<TileInput> all_tile_inputs() {
  std::vector<TileInput> inputs = finite_tile_inputs();
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> third_tile = normal_values(300, 1.0f, 5);
  third_tile[130] = nan;
  inputs.push_back({"NaN in one tile", third_tile});
  third_tile[130] = -inf;
  inputs.push_back({"infinity in one tile", third_tile});
  inputs.push_back({"NaN in the tail", {1.0f, nan, 2.0f}});
  inputs.push_back({"NaN after infinity", {inf, nan, -nan}});
  inputs.push_back({"any bits", any_bits(64 * 50 + 9, false, 77)});
  return inputs;
}

}  // namespace shoal
