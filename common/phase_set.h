#pragma once
// Tables of which phase may follow which, and the one way from one to another. Values.
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "common/check.h"

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

// A row of such a table, which has one for each phase, in their order.
template <class Phase>
struct PhaseRow {
  std::string_view name;  // for people
  PhaseSet<Phase> next;
};

// A move that is not in the table is a bug and stops the process.
template <class Phase>
void move_phase(Phase& at, Phase to, const PhaseRow<Phase>& (*row_of)(Phase)) {
  if (!row_of(at).next.has(to))
    check_failed(__FILE__, __LINE__, "may_follow(phase, to)", check_operands(row_of(at).name, row_of(to).name));
  at = to;
}

}  // namespace shoal
