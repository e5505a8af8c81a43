#pragma once
// A set of an enum's values, for tables of which phase may follow which. Value; constexpr.
#include <cstdint>
#include <initializer_list>

namespace shoal {

// REQUIRES: Phase has at most 32 values, from 0 on.
template <class Phase>
class PhaseSet {
 public:
  constexpr PhaseSet(std::initializer_list<Phase> phases) {
    for (const Phase phase : phases) bits_ |= bit_of(phase);
  }
  constexpr bool has(Phase phase) const { return (bits_ & bit_of(phase)) != 0; }

 private:
  static constexpr std::uint32_t bit_of(Phase phase) { return 1u << static_cast<unsigned>(phase); }
  std::uint32_t bits_ = 0;
};

}  // namespace shoal
