#pragma once
// Connections that count for nothing yet, so that only so many of them are kept, in all and from one address. When
// there are too many, whoever stands longest gives way: who means it passes in a moment, and who floods pushes out
// himself.
//
// Thread: one.   Bounds: the two it is made with.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/time.h"

namespace shoal {

class Crowd {
 public:
  using Id = std::uint64_t;
  // REQUIRES: both > 0.
  Crowd(std::size_t max, std::size_t per_address_max);

  // `id` comes. Returns who gives way for it, and is no longer here: of its own address when that has too many, else of
  // all. REQUIRES: `id` is not here.
  std::optional<Id> enter(Id id, const std::string& address, TimePoint now);
  void leave(Id id);  // nothing when it is not here
  bool holds(Id id) const { return places_.contains(id); }
  std::size_t size() const { return places_.size(); }
  // Those that came before that time.
  std::vector<Id> here_since_before(TimePoint time) const;

 private:
  struct Standing {
    Id id;
    std::string address;
    TimePoint since;
  };
  std::size_t max_, per_address_max_;
  std::uint64_t next_place_ = 0;
  std::map<std::uint64_t, Standing> standing_;  // in the order in which they came
  std::unordered_map<Id, std::uint64_t> places_;
  std::unordered_map<std::string, std::size_t> of_address_;
};

}  // namespace shoal
