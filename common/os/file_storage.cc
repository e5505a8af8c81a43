#include "common/os/file_storage.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "common/check.h"
#include "common/fault.h"
#include "common/os/posix_file.h"

namespace shoal {
namespace {

using Done = std::function<void(Status)>;

// A folder that was removed meanwhile is made again.
Status replace_in_folder(const std::string& path, const std::vector<Bytes>& parts) {
  Status written = replace_file(path, parts);
  if (written.ok() || written.code() != ErrorCode::kMissing) return written;
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failure);
  return failure ? written : replace_file(path, parts);
}

// What loop and writer share of one open file.
struct OpenFile {
  std::string path;
  Descriptor descriptor;                      // the writer's, until it closed it
  Status status;                              // the writer's; sticky
  std::vector<Bytes> batch;                   // the writer's: appended and not yet written
  bool sync_wanted = false;                   // the writer's
  std::atomic<std::size_t> pending_bytes{0};  // queued by the loop, not yet written
  bool overflowed = false;                    // the loop's
};

struct Request {
  enum class Kind { kAppend, kSync, kClose, kReplace, kRestart } kind;
  std::shared_ptr<OpenFile> file;
  std::string path;
  std::vector<Bytes> parts;
  Done done;
};

}  // namespace

// One thread takes everything that is queued at once: all appends are written, then every file that was asked for is
// synced once, then the callbacks go to the loop in the order of the calls.
class FileStorage::Writer {
 public:
  explicit Writer(EventLoop& loop) : loop_(loop), thread_([this] { run(); }) {}

  ~Writer() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void queue(Request request) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(request));
    }
    wake_.notify_one();
  }

  void post_result(Done done, Status status) {
    loop_.post([&loop = loop_, done = std::move(done), status = std::move(status)] {
      loop.name_callback("disk");
      done(status);
    });
  }

 private:
  void run() {
    for (;;) {
      std::deque<Request> batch;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
        if (queue_.empty()) return;
        std::swap(batch, queue_);
      }
      write_batch(batch);
    }
  }

  void write_batch(std::deque<Request>& batch) {
    for (Request& request : batch) {
      if (request.kind == Request::Kind::kAppend) {
        for (Bytes& part : request.parts) request.file->batch.push_back(std::move(part));
      } else if (request.kind == Request::Kind::kSync) {
        request.file->sync_wanted = true;
      }
    }
    for (Request& request : batch) {
      if (request.kind == Request::Kind::kReplace) {
        post_result(std::move(request.done), replace_in_folder(request.path, request.parts));
        continue;
      }
      settle(*request.file);
      if (request.kind == Request::Kind::kRestart)
        post_result(std::move(request.done), restart(*request.file, request.parts));
      if (request.kind == Request::Kind::kSync) post_result(std::move(request.done), request.file->status);
      if (request.kind == Request::Kind::kClose) {
        request.file->descriptor = Descriptor();
        request.done(Status::success());
      }
    }
  }

  // Writes and syncs what the batch asked of this file; nothing the second time.
  void settle(OpenFile& file) {
    std::size_t bytes = 0;
    for (const Bytes& part : file.batch) bytes += part.size();
    if (file.status.ok() && bytes > 0) file.status = write_all(file.descriptor, file.path, file.batch);
    file.batch.clear();
    file.pending_bytes -= bytes;
    if (!std::exchange(file.sync_wanted, false) || !file.status.ok()) return;
    file.status = SHOAL_FAULT("storage.sync") ? make_error(ErrorCode::kIo, "fault point storage.sync")
                                              : sync_file(file.descriptor, file.path);
  }

  static Status restart(OpenFile& file, const std::vector<Bytes>& parts) {
    if (!file.status.ok()) return file.status;
    SHOAL_ASSIGN(file.descriptor, replace_locked(file.path, parts));
    file.status = sync_folder_of(file.path);
    return file.status;
  }

  EventLoop& loop_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Request> queue_;  // guarded by mutex_
  bool ending_ = false;        // guarded by mutex_
  std::thread thread_;         // last: starts when the rest is ready
};

namespace {

class RealAppendFile final : public AppendFile {
 public:
  RealAppendFile(FileStorage::Writer& writer, std::shared_ptr<OpenFile> file)
      : writer_(writer), file_(std::move(file)) {}

  ~RealAppendFile() override {
    std::mutex mutex;
    std::condition_variable closed_signal;
    bool closed = false;
    writer_.queue({Request::Kind::kClose, file_, {}, {}, [&](Status) {
                     const std::lock_guard lock(mutex);
                     closed = true;
                     closed_signal.notify_one();
                   }});
    std::unique_lock lock(mutex);
    closed_signal.wait(lock, [&] { return closed; });
  }

  void append(Bytes bytes) override {
    if (file_->overflowed) return;
    if (file_->pending_bytes + bytes.size() > kAppendPendingBytesMax) {
      file_->overflowed = true;
      return;
    }
    file_->pending_bytes += bytes.size();
    std::vector<Bytes> parts;
    parts.push_back(std::move(bytes));
    writer_.queue({Request::Kind::kAppend, file_, {}, std::move(parts), {}});
  }

  void sync(Done done) override {
    if (!file_->overflowed) {
      writer_.queue({Request::Kind::kSync, file_, {}, {}, std::move(done)});
      return;
    }
    // Behind the syncs that still go through, so that callbacks keep the order of the calls.
    writer_.queue({Request::Kind::kSync, file_, {}, {}, [done = std::move(done), path = file_->path](Status status) {
                     if (!status.ok()) return done(status);
                     done(make_error(ErrorCode::kIo, "cannot write " + path + ": the disk is too slow, over " +
                                                         std::to_string(kAppendPendingBytesMax >> 20) +
                                                         " MiB were waiting for it"));
                   }});
  }

  void restart(std::vector<Bytes> parts, Done done) override {
    writer_.queue({Request::Kind::kRestart, file_, {}, std::move(parts), std::move(done)});
  }

 private:
  FileStorage::Writer& writer_;
  std::shared_ptr<OpenFile> file_;
};

}  // namespace

FileStorage::FileStorage(EventLoop& loop) : writer_(std::make_unique<Writer>(loop)) {}
FileStorage::~FileStorage() = default;

Result<std::unique_ptr<AppendFile>> FileStorage::open_append(const std::string& path) {
  auto file = std::make_shared<OpenFile>();
  file->path = path;
  SHOAL_ASSIGN(file->descriptor, open_locked(path));
  SHOAL_TRY(sync_folder_of(path));  // the entry may be new
  return std::unique_ptr<AppendFile>(std::make_unique<RealAppendFile>(*writer_, std::move(file)));
}

Result<Bytes> FileStorage::read(const std::string& path, std::size_t limit_bytes) {
  return read_file(path, limit_bytes);
}

Result<std::uint64_t> FileStorage::read_at(const std::string& path, std::uint64_t at, MutableByteView into) {
  return read_file_at(path, at, into);
}

void FileStorage::replace(const std::string& path, std::vector<Bytes> parts, Done done) {
  writer_->queue({Request::Kind::kReplace, nullptr, path, std::move(parts), std::move(done)});
}

Status FileStorage::truncate(const std::string& path, std::size_t size) {
  SHOAL_ASSIGN(const Descriptor file, open_file(path, O_WRONLY));
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) return error_of_errno("cut", path, errno);
  return sync_file(file, path);
}

Status FileStorage::rewrite(const std::string& path, std::size_t at, Bytes bytes) {
  SHOAL_ASSIGN(const Descriptor file, open_file(path, O_WRONLY));
  if (::lseek(file.get(), static_cast<off_t>(at), SEEK_SET) < 0) return error_of_errno("write", path, errno);
  return write_all(file, path, {std::move(bytes)});
}

Result<FileLock> FileLock::take(const std::string& path) {
  SHOAL_ASSIGN(Descriptor file, open_file(path, O_RDWR | O_CREAT));
  SHOAL_TRY(lock_file(file, path));
  return FileLock(std::move(file));
}

}  // namespace shoal
