#pragma once
// Where and when one peer is dialled: its addresses one after the other, then the relays that it is called at, and
// pauses between the attempts that double.
// What the run's signed list says of it goes before its own word, which serves until a list names it: a member that
// says another address in its Hello sends nobody there.
//
// Value without I/O: the time is handed in. Thread: loop only. Bounds: one Whereabouts that is usable().
#include <cstdint>
#include <string>

#include "common/backoff.h"
#include "common/ids.h"
#include "transport/limits.h"
#include "transport/whereabouts.h"

namespace shoal {

class DialPlan {
 public:
  DialPlan(const PeerId& self, const PeerId& peer);

  void follow(Whereabouts whereabouts);                      // the signed list's word
  void hear(Whereabouts whereabouts);                        // its own, or that of a ticket or record
  bool dialable() const { return whereabouts_.dialable(); }  // without its homes
  bool reachable() const { return whereabouts_.reachable(); }

  // ---- one attempt ----
  // `by_relay`: its homes too, behind all addresses. REQUIRES: reachable(); dialable() where these are left out.
  void begin(bool by_relay = true) {
    tried_ = 0;
    by_relay_ = by_relay;
  }
  bool has_next() const { return tried_ < whereabouts_.addresses.size() + (by_relay_ ? whereabouts_.homes.size() : 0); }
  std::string next();                                                          // an address; "via/" and a home
  void add_relays() { by_relay_ = true; }                                      // to the attempt under way
  bool at_address() const { return tried_ <= whereabouts_.addresses.size(); }  // what came last is one
  // And homes are behind it.
  bool has_relay() const { return by_relay_ && at_address() && !whereabouts_.homes.empty(); }
  void worked();  // what came last: the next attempt begins with it, among addresses or among homes

  // ---- when the next one may begin ----
  TimePoint retry_at() const { return retry_at_; }
  void failed(TimePoint now);  // an attempt, or a link that did not last
  void lasted(TimePoint now);  // a link that is over did

 private:
  void replace(Whereabouts whereabouts);

  const std::uint64_t salt_;
  Whereabouts whereabouts_;
  bool on_list_ = false;
  bool by_relay_ = true;
  std::size_t tried_ = 0;       // in this attempt
  std::size_t first_ = 0;       // the address that worked last
  std::size_t first_home_ = 0;  // and the home
  std::uint32_t failures_ = 0;  // since a link that lasted
  Backoff pause_{limits::kRedialMin, limits::kRedialMax};
  TimePoint retry_at_{};
};

}  // namespace shoal
