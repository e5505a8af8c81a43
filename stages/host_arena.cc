#include "stages/host_arena.h"

#include <utility>

#include "common/check.h"

namespace shoal {

HostArena::Slot& HostArena::slot(ArenaRole role) {
  SHOAL_CHECK(role < ArenaRole::kCount_);
  return slots_[static_cast<std::size_t>(role)];
}

std::span<float> HostArena::span(ArenaRole role) {
  Slot& held = slot(role);
  const std::size_t floats = role == ArenaRole::kRuleState ? rule_state_size_ : size_;
  if (held.memory.size() != floats * sizeof(float)) held.memory = Buffer(floats * sizeof(float));
  return held.memory.as<float>();
}

void HostArena::release(ArenaRole role) { slot(role) = Slot{}; }

void HostArena::copy(ArenaRole from, ArenaRole to) {
  std::ranges::copy(span(from), span(to).begin());
  tag(to) = tag(from);
}

void HostArena::move(ArenaRole from, ArenaRole to) {
  SHOAL_CHECK(is_outer(from) && is_outer(to));
  span(from);  // an array that nobody has used yet is zeros too
  slot(to) = std::exchange(slot(from), Slot{});
}

void HostArena::swap_parameters() { std::swap(slot(ArenaRole::kCurrent), slot(ArenaRole::kOther)); }

std::size_t HostArena::allocated_bytes() const {
  std::size_t bytes = 0;
  for (const Slot& held : slots_) bytes += held.memory.size();
  return bytes;
}

}  // namespace shoal
