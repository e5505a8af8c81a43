#include "text/merge_table.h"

#include <bit>

namespace shoal {

MergeTable::MergeTable(const std::vector<MergeRule>& rules)
    : entries_(std::bit_ceil(rules.size() * 2 + 2)), mask_(entries_.size() - 1) {
  for (std::size_t rank = 0; rank < rules.size(); ++rank) {
    const MergeRule& rule = rules[rank];
    const std::uint64_t pair = std::uint64_t{rule.left} << 32 | rule.right;
    std::size_t slot = slot_of(pair);
    while (entries_[slot].pair != kNoPair && entries_[slot].pair != pair) slot = (slot + 1) & mask_;
    entries_[slot] = {pair, static_cast<std::uint32_t>(rank), rule.merged};
  }
}

}  // namespace shoal
