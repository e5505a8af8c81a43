#include "common/rng.h"

#include <bit>
#include <numbers>
#include <random>

#include "common/check.h"

namespace shoal {

// The state is filled with SplitMix64, as the generator's authors advise; it is never all zero.
Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {
    word = mix64(seed);
    seed += 0x9e3779b97f4a7c15ull;
  }
}

std::uint64_t Rng::next() {
  const std::uint64_t drawn = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return drawn;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  SHOAL_CHECK(bound > 0);
  // The lowest 2^64 mod bound values are drawn again: what is left is a multiple of the bound.
  const std::uint64_t rejected = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t drawn = next();
    if (drawn >= rejected) return drawn % bound;
  }
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Rng::exponential(double mean) { return -mean * std::log1p(-uniform()); }

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

Rng Rng::fork(std::string_view component) {
  std::uint64_t seed = next();
  for (const char c : component) seed = mix64(seed, static_cast<unsigned char>(c));
  return Rng(seed);
}

std::uint64_t entropy_seed() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

}  // namespace shoal
