#pragma once
// Which two tokens become which one, and how early: a hash table that is read millions of times a second.
// Immutable once filled; thread-safe then.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal {

struct MergeRule {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::uint32_t merged = 0;
};

class MergeTable {
 public:
  struct Entry {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = 0;  // a lower one merges earlier
    std::uint32_t merged = 0;
  };

  // The rank of a rule is its place. A pair that stands twice has its last rank, as in `tokenizers`.
  explicit MergeTable(const std::vector<MergeRule>& rules);

  // Nullptr when the two do not merge.
  const Entry* find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t pair = std::uint64_t{left} << 32 | right;
    for (std::size_t slot = slot_of(pair);; slot = (slot + 1) & mask_) {
      const Entry& entry = entries_[slot];
      if (entry.pair == pair) return &entry;
      if (entry.pair == kNoPair) return nullptr;
    }
  }

 private:
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};  // ids are below 2^32 - 1
  std::size_t slot_of(std::uint64_t pair) const {
    return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15u) >> 32 ^ (pair * 0x9E3779B97F4A7C15u)) & mask_;
  }
  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
};

}  // namespace shoal
