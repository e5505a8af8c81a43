#pragma once
// What became of the contributions: the same sums as `shoal audit` has at the end (docs/EVENTS.md), kept while events
// come. Lines that a resumed process repeats are told apart from new ones. Pure.
// Bounds: a bit for each microbatch, and for each decided entry of the sessions that live and of the kOverKept last
// ones that are over.
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>

#include "events/books/seen_event.h"
#include "events/books/serial_set.h"

namespace shoal {

class Tally {
 public:
  static constexpr std::size_t kOverKept = 256;

  struct Stage {
    std::uint64_t secured = 0, taken_back = 0, lost = 0;
    std::uint64_t rounds = 0, restores = 0, version = 0;
  };

  // What is_new().
  void take(const SeenEvent& event);
  // False for a `commit`, `lost`, `round_commit` or `restored` that was told before, as a resumed process repeats them.
  bool is_new(const EventRecord& record) const;

  std::uint64_t issued() const { return issued_.size(); }
  std::uint64_t committed() const { return committed_.size(); }
  std::uint64_t committed_targets() const { return targets_; }
  // An entry that two rounds named, or a round and a loss; and what the trainer itself calls a contradiction.
  std::uint64_t counted_twice() const { return twice_; }
  const std::map<std::uint16_t, Stage>& stages() const { return stages_; }  // of which something was told
  Stage of_stage(std::uint16_t stage) const;                                // zeros where nothing was told
  // Committed, and neither secured, taken back nor lost.
  std::uint64_t undecided(std::uint16_t stage) const;

 private:
  struct Decided {
    SerialSet secured, lost;
  };
  void take_secured(const EventRecord& round);
  void take_restored(const EventRecord& restore);
  void take_lost(const EventRecord& lost);
  void take_over(const Session& session);

  SerialSet issued_, committed_;
  std::uint64_t targets_ = 0, twice_ = 0;
  std::map<std::uint16_t, Stage> stages_;
  std::unordered_map<Session, Decided> decided_;
  std::deque<Session> over_;  // the newest ones
};

}  // namespace shoal
