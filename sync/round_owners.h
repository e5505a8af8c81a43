#pragma once
// The owners of a round: those of its members that add up parts. A payload is cut into one part an owner; a member that
// owns nothing sends each owner its piece and gets the sum back, so it needs no way to others that own nothing.
// Value. Thread: any.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

namespace shoal {

using RoundOwners = std::vector<std::uint16_t>;  // of each part, by place among the members; ascending

inline RoundOwners all_own(std::size_t members) {
  RoundOwners owners(members);
  std::iota(owners.begin(), owners.end(), std::uint16_t{0});
  return owners;
}

// Some of the members, each once and in their order.
inline bool are_owners(const RoundOwners& owners, std::size_t members) {
  return !owners.empty() && owners.back() < members &&
         std::adjacent_find(owners.begin(), owners.end(), std::greater_equal<>()) == owners.end();
}

// A round as one of its members sees it.
struct RoundShape {
  std::size_t members = 0, self = 0;
  RoundOwners owners;

  std::size_t parts() const { return owners.size(); }
  // The part that this member adds up.
  std::optional<std::size_t> part_of(std::size_t member) const {
    const auto at = std::lower_bound(owners.begin(), owners.end(), member);
    if (at == owners.end() || *at != member) return std::nullopt;
    return static_cast<std::size_t>(at - owners.begin());
  }
  // Bytes of the round go from us to that member, and from it to us.
  bool meets(std::size_t member) const { return member != self && (part_of(self) || part_of(member)); }
};

}  // namespace shoal
