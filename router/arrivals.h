#pragma once
// Frames that holders announced and that are on their way here: how long each is waited for, and how many a holder may
// announce. A header costs its sender nothing and takes a credit here.
//
// State machine without I/O or clock. Thread: loop only.   Bounds: the ledger's live entries, and the members that
// claim here.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "transport/links.h"

namespace shoal {

class Arrivals {
 public:
  // Frames are waited for no longer than this since the holder's last ones were whole: kFactor times what its slowest
  // took (those of a stage are all of one size), or was given for it in vain, and at least a lease. Before any came, it
  // is kUnknown.
  static constexpr Duration kUnknown = 20s, kMax = 120s;
  static constexpr int kFactor = 4;
  static constexpr std::uint32_t kLateMax = 8;

  struct Options {
    std::size_t credits = 16;
    std::size_t recovery_credits = 4;
    Duration lease = 4s;
  };

  explicit Arrivals(Options options) : options_(options) {}

  // Half of the credits where others claim too, and less for a holder that let us wait in vain.
  bool may_announce(const Session& holder) const;
  // A holder's session of an earlier life is forgotten: members' sessions end by name, a trainer's do not.
  void await(EntrySerial serial, const Session& holder, TransferId transfer, TimePoint now);
  // None: nothing of the entry is on its way.
  std::optional<TransferId> transfer_of(EntrySerial serial) const;
  // None: nobody waits for these frames.
  std::optional<EntrySerial> serial_of(const Session& holder, TransferId transfer) const;
  void whole(EntrySerial serial, TimePoint now);
  void forget(EntrySerial serial) { awaited_.erase(serial); }
  void forget_holder(const Session& holder) { holders_.erase(holder); }
  // What is waited for in vain: the caller gives it up. Call every few ten milliseconds: after a longer pause, what
  // came meanwhile waits in our own sockets.
  std::vector<EntrySerial> overdue(TimePoint now);

 private:
  struct Holder {
    Duration slowest{};      // from their header, or from when those before were whole
    TimePoint last{};        // were whole
    std::uint32_t late = 0;  // times that they did not come; each arrival takes one off
  };
  struct Awaited {
    Session holder;
    TransferId transfer = 0;
    TimePoint since;
  };
  Duration waited(const Awaited& awaited, TimePoint now) const;
  Duration patience(const Holder& holder) const;

  const Options options_;
  std::map<EntrySerial, Awaited> awaited_;
  std::map<Session, Holder> holders_;
  TimePoint ticked_{};
};

}  // namespace shoal
