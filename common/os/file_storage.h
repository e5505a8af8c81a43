#pragma once
// Storage on the file system, written by a thread of its own. Calls that wait for a sync at the same time share one
// fdatasync.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/os/posix_file.h"
#include "common/storage.h"

namespace shoal {

// At most this much may wait for the disk in one file; a disk that is slower for longer is an error (kIo), not a
// growing queue.
inline constexpr std::size_t kAppendPendingBytesMax = 256u << 20;

// Thread: loop only; callbacks are posted to the loop. Borrows the loop, which outlives it. read(), read_at(),
// truncate() and open_append() block the loop for the time of the system calls (start-up only); append, sync and
// replace never do. The destructor writes what is queued, joins the thread, and posts the last callbacks. Files must be
// destroyed before it; a file's destructor waits until its bytes are written (not synced) and gives the lock up.
class FileStorage final : public Storage {
 public:
  explicit FileStorage(EventLoop& loop);
  ~FileStorage() override;
  FileStorage(const FileStorage&) = delete;
  FileStorage& operator=(const FileStorage&) = delete;

  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path) override;
  Result<Bytes> read(const std::string& path, std::size_t limit_bytes) override;
  Result<std::uint64_t> read_at(const std::string& path, std::uint64_t at, MutableByteView into) override;
  void replace(const std::string& path, std::vector<Bytes> parts, std::function<void(Status)> done) override;
  Status truncate(const std::string& path, std::size_t size) override;
  Status rewrite(const std::string& path, std::size_t at, Bytes bytes) override;

  class Writer;  // the thread; internal

 private:
  std::unique_ptr<Writer> writer_;
};

// An exclusive lock on a file (created when absent) that dies with the process: one process per home.
class FileLock {
 public:
  // ERRORS: kBusy (another process holds it), kIo, kMissing (no such folder).
  static Result<FileLock> take(const std::string& path);

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace shoal
