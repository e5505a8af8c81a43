#include "transport/zmq/doorway.h"

#include "common/os/tcp_place.h"

namespace shoal {
namespace {
Crowd::Id crowd_id(int fd) { return static_cast<Crowd::Id>(fd); }
}  // namespace

Doorway::Doorway(const ConnectionBounds& bounds, RefusalBook& refusals, RelayBehind relay_behind)
    : accepted_max_(bounds.accepted),
      refusals_(refusals),
      relay_behind_(std::move(relay_behind)),
      ungreeted_{Crowd(bounds.ungreeted, bounds.ungreeted_per_address),
                 Crowd(bounds.ungreeted, bounds.ungreeted_per_address)} {}

void Doorway::opened(Lane lane, int fd, TimePoint now) {
  if (fd < 0) return;
  watchdog(lane).opened(fd);
  if (watchdog(lane).size() > accepted_max_)
    return turn_away(lane, fd, Refusal::kCrowd,
                     "this process keeps " + std::to_string(accepted_max_) + " connections at most");
  ungreeted(lane).leave(crowd_id(fd));
  const std::string party = party_of(fd);
  if (!pace_.take(party, now))
    return turn_away(lane, fd, Refusal::kCrowd, "its address opens more connections than are taken from one");
  if (const auto longest = ungreeted(lane).enter(crowd_id(fd), party, now))
    turn_away(lane, static_cast<int>(*longest), Refusal::kCrowd,
              "more connections that have not greeted than are kept");
}

void Doorway::greeted(Lane lane, int fd) {
  message(lane, fd);
  ungreeted(lane).leave(crowd_id(fd));
}

void Doorway::closed(Lane lane, int fd) {
  watchdog(lane).closed(fd);
  ungreeted(lane).leave(crowd_id(fd));
  std::erase_if(cut_later_, [&](const Cut& cut) { return cut.lane == lane && cut.fd == fd; });
}

void Doorway::check(TimePoint now) {
  std::erase_if(cut_later_, [&](const Cut& one) {
    if (now >= one.when) cut(one.lane, one.fd);
    return now >= one.when;
  });
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
    for (const Crowd::Id id : ungreeted(lane).here_since_before(now - limits::kGreetingTime))
      turn_away(lane, static_cast<int>(id), Refusal::kGreeting,
                "did not greet within " + std::to_string(limits::kGreetingTime / 1s) + " s");
    note_cut_off(refusals_, watchdog(lane).check());
  }
}

void Doorway::turn_away(Lane lane, int fd, Refusal cause, const std::string& why) {
  const std::string relay = relay_of(fd);
  refusals_.note(cause, relay.empty() ? remote_text(fd) : "somebody over relay " + relay, why);
  ungreeted(lane).leave(crowd_id(fd));
  cut(lane, fd);
}

std::string Doorway::relay_of(int fd) const { return relay_behind_(remote_text(fd)); }

std::string Doorway::party_of(int fd) const {
  const std::string remote = remote_text(fd), relay = relay_behind_(remote);
  const auto place = parse_host_port(relay.empty() ? remote : relay);
  return place.ok() ? shoal::party_of(*place) : "?";
}

}  // namespace shoal
