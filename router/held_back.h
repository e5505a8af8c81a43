#pragma once
// Committed entries that a session leaves out of its rounds: they hold the low-water mark down, and with it the run. It
// tells a session that may not have stepped them yet from one that must have.
//
// A replica steps its windows in order, so when it acknowledged commits of three windows' targets behind an entry, that
// entry is in its parameters, and the next round that it contributes to has it (router/windows.h). Rounds that it left
// it out of since then are counted; those of its stage's other sessions say how many are usual. Where nothing more can
// be issued because of an entry nobody counts rounds any more: then the time that others' entries took is the measure.
//
// Value without I/O and clock. Thread: loop only. Bounds: a line an acknowledged entry above the low-water mark.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "transport/messages.h"

namespace shoal {

class HeldBack {
 public:
  using Culprits = std::vector<std::pair<Session, std::string>>;  // and what they did

  // `window`: the targets at which a replica's window is full, and one microbatch's more. `least`: the least patience
  // with a session.
  HeldBack(std::uint64_t window, Duration least) : window_(window), least_(least) {}

  // It says that it has the commit of this entry. Repeats are passed over.
  void acknowledged(StageId stage, const EntryName& entry, std::uint64_t targets, TimePoint now);
  void forget(const EntryName& entry);  // it is lost: no round will have it
  // Sessions that left an entry out of more rounds than any other session of the stage needed, and one. A round of a
  // step has the microbatches of its step and no others: it tells nothing of the rest.
  Culprits on_round_commit(const RoundCommit& commit, TimePoint now);
  void on_session_over(const Session& session) { holders_.erase(session); }
  // Nothing can be issued, because of entries of these sessions (none: something can). Those of them for which it has
  // been so for longer than entries of any other session ever took from their commit to a round.
  Culprits on_full(const std::vector<Session>& because_of, TimePoint now);

 private:
  struct Held {
    std::uint64_t behind = 0;  // targets that its session had acknowledged before it
    std::uint32_t missed = 0;  // rounds that left it out though it must have been stepped
    TimePoint at{};
  };
  struct Holder {
    StageId stage;
    std::uint64_t targets = 0, targets_at_round = 0;  // acknowledged; by the last round that it contributed to
    std::map<std::uint64_t, Held> held;               // by serial
    std::uint32_t missed_max = 0;                     // of entries that rounds took in the end
    Duration longest{0};                              // that one of these waited
  };
  std::uint32_t usual_missed(StageId stage, const Session& but) const;
  std::optional<Duration> usual_wait(const Session& but) const;

  const std::uint64_t window_;
  const Duration least_;
  std::map<Session, Holder> holders_;
  std::map<Session, TimePoint> full_since_;
};

}  // namespace shoal
