#include "transport/crowd.h"

#include <algorithm>

#include "common/check.h"

namespace shoal {

Crowd::Crowd(std::size_t max, std::size_t per_address_max) : max_(max), per_address_max_(per_address_max) {
  SHOAL_CHECK(max > 0 && per_address_max > 0);
}

std::optional<Crowd::Id> Crowd::enter(Id id, const std::string& address, TimePoint now) {
  SHOAL_CHECK(!holds(id));
  auto longest = standing_.end();
  if (const auto from_here = of_address_.find(address);
      from_here != of_address_.end() && from_here->second >= per_address_max_)
    longest = std::find_if(standing_.begin(), standing_.end(),
                           [&](const auto& entry) { return entry.second.address == address; });
  else if (standing_.size() >= max_)
    longest = standing_.begin();
  std::optional<Id> gives_way;
  if (longest != standing_.end()) {
    gives_way = longest->second.id;
    leave(*gives_way);
  }
  places_[id] = next_place_;
  standing_.emplace(next_place_++, Standing{id, address, now});
  ++of_address_[address];
  return gives_way;
}

void Crowd::leave(Id id) {
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  const auto standing = standing_.find(place->second);
  const auto count = of_address_.find(standing->second.address);
  if (--count->second == 0) of_address_.erase(count);
  standing_.erase(standing);
  places_.erase(place);
}

std::vector<Crowd::Id> Crowd::here_since_before(TimePoint time) const {
  std::vector<Id> found;
  for (const auto& [place, standing] : standing_) {
    if (standing.since >= time) break;
    found.push_back(standing.id);
  }
  return found;
}

}  // namespace shoal
