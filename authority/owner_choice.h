#pragma once
// Which members of a round own its parts (sync/round_owners.h). An owner meets every other member, so a member of a
// pair that does not meet owns nothing; what is left is enough where one member at least meets all. Pure. Thread: any.
#include <algorithm>
#include <utility>
#include <vector>

#include "sync/piece_sizes.h"
#include "sync/round_owners.h"

namespace shoal {

// All that anybody can dial (`direct`, by member), filled up by others to as many as can judge a sum. `apart`: pairs of
// members that do not meet. Empty: fewer than `needed` meet all.
inline RoundOwners choose_owners(const std::vector<bool>& direct,
                                 const std::vector<std::pair<std::size_t, std::size_t>>& apart, std::size_t needed) {
  std::vector<bool> met(direct.size(), true);
  for (const auto& [one, other] : apart) met[one] = met[other] = false;
  RoundOwners owners;
  const std::size_t wanted = std::max(needed, kJudged);
  for (const bool first : {true, false})
    for (std::size_t i = 0; i < direct.size(); ++i)
      if (met[i] && direct[i] == first && (first || owners.size() < wanted))
        owners.push_back(static_cast<std::uint16_t>(i));
  std::ranges::sort(owners);
  if (owners.size() < needed) owners.clear();
  return owners;
}

}  // namespace shoal
