#pragma once
// What peers say of the trainer's decisions. A peer passes a COMMIT on in front of a Release that would undo the
// winner; it proves nothing, so it only buys the time in which the trainer is asked: once an entry, the entry is kept
// without a claim for a lease, or until the trainer decides.
//
// State machine without I/O or clock. Thread: loop only.   Bounds: the ledger's counted entries.
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class Hearsay {
 public:
  explicit Hearsay(Duration lease) : lease_(lease) {}

  // A peer passed on a COMMIT that names this entry. The first such word of an entry counts alone.
  void hear(EntrySerial serial, TimePoint now);
  void heard_trainer(TimePoint now) { trainer_heard_ = now; }
  void forget(EntrySerial serial) { words_.erase(serial); }  // it is not counted any more
  bool keeps(EntrySerial serial) const;                      // it stands without a claim
  // `ask` puts the question to the trainer; false: there is no link to it. Returns what is kept no longer.
  std::vector<EntrySerial> tick(TimePoint now, const std::function<bool(EntrySerial)>& ask);

 private:
  struct Word {
    TimePoint until;                 // a lease after the trainer was heard behind the first question
    TimePoint ask_at;                // the trainer's own COMMIT is on its way, so it is not asked at once
    std::optional<TimePoint> asked;  // for the first time
    bool over = false;
  };

  const Duration lease_;
  std::map<EntrySerial, Word> words_;
  TimePoint trainer_heard_{};  // the last message that came from the trainer itself
};

}  // namespace shoal
