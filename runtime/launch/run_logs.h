#pragma once
// The two logs of a run: opened and locked together, compared with each other and with what the run goes on with, and
// kept small. The trainer's is kept here with the book that it was replayed into; the authority takes its own.
//
// Thread: loop only.   Borrows: storage and samples in open(), the rest as each call says.
#include <memory>
#include <string>

#include "authority/authority.h"
#include "authority/authority_log.h"
#include "common/lifetime.h"
#include "router/commit_book.h"
#include "runtime/launch/launch_port.h"

namespace shoal {

class RunLogs {
 public:
  // ERRORS: kInput (the folder holds a run and resume is false, or holds none and it is true; another token file),
  // kBusy (locked), kMissing (one log of the two), kCorrupt (also: one is older than the other), kIo, kForeign,
  // kVersion (logs of an older program), those of LaunchOptions::keep.
  static Result<std::unique_ptr<RunLogs>> open(const LaunchOptions& options, Storage& storage, const Samples& samples);

  CommitBook& book() { return book_; }
  const CommitBook& book() const { return book_; }
  RecordLog& trainer() { return *trainer_; }
  AuthorityLog take_authority() { return std::move(authority_); }  // once

  // A life of the trainer begins: its first record.
  void begin_life(const Session& session, const Samples& samples);
  // Compacts what is due, and warns where a log grows towards its limit. `loop` and `owner` outlive this object.
  void tend(Authority& authority, EventLoop& loop, LaunchOwner& owner, bool may_compact);

 private:
  RunLogs(const LaunchOptions& options, const Samples& samples);
  Status check_both_there() const;
  Status check_text(const Samples& samples) const;

  std::string folder_;
  Digest text_;  // of the token file
  CommitBook book_;
  std::unique_ptr<RecordLog> trainer_;
  AuthorityLog authority_;
  LogSpace trainer_space_, authority_space_;
  Lifetime lifetime_;
};

// Whether the two logs belong together. The trainer logs a path before any round can name its entries, and the record
// of a round says how many microbatches were logged by then: a trainer's log with fewer is older than its partner. The
// authority logs a round before the trainer marks its entries merged, and that mark says which versions it had heard
// of: an authority's log without one of them is older. A run that went on with either would train microbatches twice or
// lose them without a word. Pure. `book`: as the trainer's log says it. The paths are for people. ERRORS: kCorrupt (the
// older one by name, and the remedy).
Status check_log_partners(const LogReach& authority, const CommitBook& book, const std::string& trainer_path,
                          const std::string& authority_path);

}  // namespace shoal
