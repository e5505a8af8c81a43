#pragma once
// Seeded generator (xoshiro256**, Blackman and Vigna 2018) with portable distributions: the standard library's differ
// by vendor.
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ids.h"

namespace shoal {

// Value type; not thread-safe. Every component forks its own, so that one component's draws do not shift another's.
class Rng {
 public:
  explicit Rng(std::uint64_t seed);
  std::uint64_t next();                      // uniform over 64 bits
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound); REQUIRES bound > 0
  double uniform();                          // [0, 1)
  double exponential(double mean);
  double normal();  // Box-Muller, mean 0, variance 1
  bool chance(double probability) { return uniform() < probability; }
  Rng fork(std::string_view component);  // independent stream named by `component`

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

std::uint64_t entropy_seed();  // from the operating system

}  // namespace shoal
