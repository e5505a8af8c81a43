#include "authority/admission_pace.h"

#include <algorithm>

#include "transport/dial_trials.h"

namespace shoal {

namespace {

template <class Map, class At>
void make_room(Map& map, std::size_t most, At at) {
  while (map.size() > most)
    map.erase(std::min_element(map.begin(), map.end(),
                               [&](const auto& a, const auto& b) { return at(a.second) < at(b.second); }));
}

}  // namespace

std::optional<std::string> AdmissionPace::refuse(const PeerId& peer, const std::string& host, TimePoint now) {
  if (const auto rest = rests_.find(peer); rest != rests_.end() && now < rest->second.until)
    return "a session of this machine was ended for what it did to the run; it is admitted again in " +
           std::to_string(static_cast<int>(seconds_of(rest->second.until - now)) + 1) + " s";
  if (host.empty()) return std::nullopt;
  const std::string name = plain_host(host);
  Host& from = hosts_[name];
  from.asked_at = now;
  const bool may = from.joiners.take(now);
  make_room(hosts_, kHostsMax, [](const Host& each) { return each.asked_at; });
  if (!may) return "too many peers of " + name + " join at once; this one is admitted when its turn comes";
  return std::nullopt;
}

Duration AdmissionPace::on_misconduct(const PeerId& peer, TimePoint now) {
  Rest& rest = rests_[peer];
  const Duration length = rest.length.next();
  rest.until = now + length;
  make_room(rests_, kPeersMax, [](const Rest& each) { return each.until; });
  return length;
}

}  // namespace shoal
