#pragma once
// Which process a run belongs to: the one that holds the lock of the run's folder, from before it reads anything there
// that changes until nothing of it writes there any more. It covers all that a launching process decides by (both logs)
// and all that it writes beside them (listen, saved, summary.json, the file of --events). Both logs have locks of their
// own besides, taken in one order (run_logs.h): a process that knows nothing of this one still decides nothing.
//
// The operating system takes a lock from a process that ended and from no other. One that is stopped (SIGSTOP), waits
// for a disk or hangs keeps it.
//
// Thread: loop only.   Borrows: the storage, which outlives it.   Owns: the open file.
#include <memory>
#include <string>

#include "common/result.h"
#include "common/storage.h"

namespace shoal {

inline std::string run_lock_path(const std::string& folder) { return folder + "/lock"; }

class RunLock {
 public:
  // `holder`: what others are told of this process, one line, of which 256 bytes are kept. ERRORS: kBusy (another
  // process has it; the message has that one's `holder`), kMissing (no such folder), kIo.
  static Result<RunLock> take(Storage& storage, const std::string& folder, const std::string& holder);

 private:
  explicit RunLock(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}
  std::unique_ptr<AppendFile> file_;
};

}  // namespace shoal
