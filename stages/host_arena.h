#pragma once
// Arenas whose two parameter buffers can trade places, and the one in host memory.
#include <array>

#include "common/bytes.h"
#include "stages/arena.h"

namespace shoal {

class SwappableArena : public Arena {
 public:
  // kCurrent and kOther trade arrays and tags; nothing is copied. Spans taken before now name the other role.
  virtual void swap_parameters() = 0;
};

// Host memory. Thread: one at a time a role. A role costs 4 * size() bytes from its first span() to its release().
class HostArena : public SwappableArena {
 public:
  // `rule_state_size` is the length of kRuleState alone, which each outer rule chooses for itself.
  explicit HostArena(std::size_t size) : HostArena(size, size) {}
  HostArena(std::size_t size, std::size_t rule_state_size) : size_(size), rule_state_size_(rule_state_size) {}

  std::size_t size() const override { return size_; }
  std::span<float> span(ArenaRole role) override;
  void pull(ArenaRole) override {}
  void push(ArenaRole) override {}
  CountTag& tag(ArenaRole role) override { return slot(role).tag; }
  void release(ArenaRole role) override;
  void copy(ArenaRole from, ArenaRole to) override;
  void move(ArenaRole from, ArenaRole to) override;
  void swap_parameters() override;
  std::size_t allocated_bytes() const;

 private:
  struct Slot {
    Buffer memory;
    CountTag tag = 0;
  };
  Slot& slot(ArenaRole role);

  std::size_t size_;
  std::size_t rule_state_size_;
  std::array<Slot, static_cast<std::size_t>(ArenaRole::kCount_)> slots_;
};

}  // namespace shoal
