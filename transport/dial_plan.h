#pragma once
// Where and when one peer is dialled: its addresses one after the other, and pauses between the attempts that double.
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

  void follow(Whereabouts whereabouts);  // the signed list's word
  void hear(Whereabouts whereabouts);    // its own, or that of a ticket or record
  bool dialable() const { return whereabouts_.dialable(); }

  // ---- one attempt; REQUIRES: dialable() ----
  void begin() { tried_ = 0; }
  bool has_next() const { return tried_ < whereabouts_.addresses.size(); }
  const std::string& next();
  void worked();  // the address that came last: the next attempt begins with it

  // ---- when the next one may begin ----
  TimePoint retry_at() const { return retry_at_; }
  void failed(TimePoint now);  // an attempt, or a link that did not last
  void lasted(TimePoint now);  // a link that is over did

 private:
  void replace(Whereabouts whereabouts);

  const std::uint64_t salt_;
  Whereabouts whereabouts_;
  bool on_list_ = false;
  std::size_t tried_ = 0;       // in this attempt
  std::size_t first_ = 0;       // the one that worked last
  std::uint32_t failures_ = 0;  // since a link that lasted
  Backoff pause_{limits::kRedialMin, limits::kRedialMax};
  TimePoint retry_at_{};
};

}  // namespace shoal
