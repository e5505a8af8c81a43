#pragma once
// Whether the two logs of a run belong together. The trainer logs a path before any round can name its entries, and the
// authority logs a round before the trainer marks its entries merged. So a trainer's log that lacks an entry of a round
// is older than its partner, and so is an authority's log that lacks the round of a merged entry. A run that went on
// with either would train microbatches twice or lose them without a word.
// Value; pure.   Bounds: a word and a bit for each entry that a round names.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "sync/authority_log.h"

namespace shoal {

class LogPartners {
 public:
  // The authority's log, whole.
  explicit LogPartners(const std::vector<LogRecord>& authority_log);

  // ---- the trainer's log, record after record ----
  void logged(const EntryName& entry);
  void merged(const EntryName& entry);

  // `trainer_path`, `authority_path`: the files, for people. ERRORS: kCorrupt (the older one by name, and the remedy).
  Status check(const std::string& trainer_path, const std::string& authority_path) const;

 private:
  struct Named {
    std::vector<std::uint64_t> serials;  // sorted
    std::vector<bool> logged;
  };
  struct Finding {
    EntryName first;
    std::uint64_t count = 0;
  };
  Finding never_logged() const;

  std::map<Session, Named> named_;  // by committed rounds
  Finding never_named_;
};

}  // namespace shoal
