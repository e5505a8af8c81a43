#pragma once
// Durable files: write, sync, rename, sync of the directory; asynchronous, with errors.
// Production: common/os/file_storage.h (own thread). Simulation: sim/sim_storage.h (faults, loss of what was not
// synced). One contract suite.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"

namespace shoal {

// An append-only file. Thread: loop only; callbacks run on the loop, in the order of the calls.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // Queues bytes behind what was appended before. Nothing is durable before sync's callback.
  virtual void append(Bytes bytes) = 0;
  // fdatasync of everything appended so far; calls that wait at the same time share one. After an error (kIo: disk
  // full, EIO) the file takes nothing more and every later sync reports the same error: a later sync that succeeded
  // would say nothing of what the failed one was asked for.
  virtual void sync(std::function<void(Status)> done) = 0;
  // The file is these bytes from then on, and what is appended later stands behind them: written beside it, synced and
  // locked, renamed over it, its folder synced. A reader that opens the path finds the old content or the new one,
  // whole. An error before the rename (disk full) leaves the file as it was, and it goes on; one after it is as one of
  // sync. REQUIRES: nothing is appended and no sync asked for before `done` is called.
  virtual void restart(std::vector<Bytes> parts, std::function<void(Status)> done) = 0;
};

class Storage {
 public:
  virtual ~Storage() = default;
  // Opens for appending, creates when absent; takes an exclusive lock. ERRORS: kBusy (locked by another process), kIo.
  virtual Result<std::unique_ptr<AppendFile>> open_append(const std::string& path) = 0;
  // Whole content. ERRORS: kMissing, kTooLarge (over limit_bytes), kIo.
  virtual Result<Bytes> read(const std::string& path, std::size_t limit_bytes) = 0;
  // Fills `into` with what stands from `at` on, as far as the file goes. The size of the file. ERRORS: kMissing, kIo.
  virtual Result<std::uint64_t> read_at(const std::string& path, std::uint64_t at, MutableByteView into) = 0;
  // Atomic replacement: temporary file, fsync, rename, fsync of the directory, which is made where it is gone.
  virtual void replace(const std::string& path, std::vector<Bytes> parts, std::function<void(Status)> done) = 0;
  // Cuts a torn tail off: while the caller holds the file open for appending and has appended nothing, so that nobody
  // else does. ERRORS: kMissing, kIo.
  virtual Status truncate(const std::string& path, std::size_t size) = 0;
  // Writes what stands there from `at` on once more, under truncate's condition. After a sync that failed, Linux takes
  // pages for written that never reached the disk: who reads them back and syncs them is told that they are durable.
  // Written anew they are, and a sync means them. Nothing is lost where the process ends in between. ERRORS: kMissing,
  // kIo.
  virtual Status rewrite(const std::string& path, std::size_t at, Bytes bytes) = 0;
};

}  // namespace shoal
