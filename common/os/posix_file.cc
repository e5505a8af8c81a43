#include "common/os/posix_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/fault.h"

namespace shoal {
namespace {

Error no_regular_file(const std::string& path, const struct stat& facts, ErrorCode code = ErrorCode::kInput) {
  const char* kind = S_ISDIR(facts.st_mode)                             ? "a folder"
                     : S_ISFIFO(facts.st_mode)                          ? "a FIFO"
                     : S_ISSOCK(facts.st_mode)                          ? "a socket"
                     : S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode) ? "a device"
                                                                        : "of an unknown kind";
  return make_error(code, path + " is no regular file: it is " + kind);
}

constexpr std::string_view kTemporary = ".tmp.";

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// What a step of writing a file comes to; fault point "output.step" counts the steps of all files.
Status step(bool done, const std::string& verb, const std::string& path) {
  if (SHOAL_FAULT("output.step")) return error_of_errno(verb, path, ENOSPC);
  return done ? Status() : error_of_errno(verb, path, errno);
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Error error_of_errno(const std::string& verb, const std::string& path, int error_number) {
  std::string message = "cannot " + verb + " " + path + ": " + std::strerror(error_number);
  if (error_number == ENOSPC || error_number == EDQUOT) message += ". HINT: free space on that file system (df)";
  if (error_number == EACCES || error_number == EROFS) message += ". HINT: choose a folder that this user can write";
  return make_error(error_number == ENOENT ? ErrorCode::kMissing : ErrorCode::kIo, std::move(message));
}

Error cannot_make(Error error) {
  if (error.code == ErrorCode::kMissing) error.message += ". HINT: make its folder first (mkdir -p)";
  return make_error(ErrorCode::kOutput, std::move(error.message));
}

Result<Descriptor> open_file(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return error_of_errno("open", path, errno);
  return Descriptor(fd);
}

Result<Descriptor> open_regular_file(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return error_of_errno("open", path, errno);
  if (!S_ISREG(facts.st_mode)) return no_regular_file(path, facts);
  // Between the two calls another one may have taken the name: such a file does not keep us waiting either.
  SHOAL_ASSIGN(Descriptor file, open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (::fstat(file.get(), &facts) != 0) return error_of_errno("examine", path, errno);
  if (!S_ISREG(facts.st_mode)) return no_regular_file(path, facts);
  return file;
}

Status lock_file(const Descriptor& file, const std::string& path) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) return make_error(ErrorCode::kBusy, path + " is in use by another process");
  return error_of_errno("lock", path, errno);
}

Status write_all(const Descriptor& file, const std::string& path, const std::vector<Bytes>& parts) {
  std::vector<iovec> left;
  for (const Bytes& part : parts) {
    if (!part.empty()) left.push_back({const_cast<std::uint8_t*>(part.data()), part.size()});
  }
  std::size_t first = 0;
  while (first < left.size()) {
    constexpr std::size_t kPiecesMax = 512;  // below IOV_MAX
    const auto pieces = static_cast<int>(std::min(left.size() - first, kPiecesMax));
    const ssize_t written = ::writev(file.get(), left.data() + first, pieces);
    if (written < 0) {
      if (errno == EINTR) continue;
      return error_of_errno("write", path, errno);
    }
    auto done = static_cast<std::size_t>(written);
    while (first < left.size() && done >= left[first].iov_len) done -= left[first++].iov_len;
    if (first < left.size()) {
      left[first].iov_base = static_cast<std::uint8_t*>(left[first].iov_base) + done;
      left[first].iov_len -= done;
    }
  }
  return {};
}

Status sync_file(const Descriptor& file, const std::string& path) {
  if (::fdatasync(file.get()) == 0) return {};
  return error_of_errno("sync", path, errno);
}

Status sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  SHOAL_ASSIGN(const Descriptor opened, open_file(folder, O_RDONLY | O_DIRECTORY));
  if (::fsync(opened.get()) != 0) return error_of_errno("sync", folder, errno);
  return {};
}

namespace {

Result<std::uint64_t> size_of(const Descriptor& file, const std::string& path) {
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return error_of_errno("read", path, errno);
  return static_cast<std::uint64_t>(facts.st_size);
}

// How many bytes it has read: fewer at its end, or when it was cut shorter meanwhile.
Result<std::size_t> fill(const Descriptor& file, const std::string& path, std::uint64_t at, MutableByteView into) {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t count = ::pread(file.get(), into.data() + got, into.size() - got, static_cast<off_t>(at + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return error_of_errno("read", path, errno);
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

}  // namespace

Result<std::uint64_t> read_file_at(const std::string& path, std::uint64_t at, MutableByteView into) {
  SHOAL_ASSIGN(const Descriptor file, open_regular_file(path));
  SHOAL_TRY(fill(file, path, at, into));
  return size_of(file, path);
}

Result<Bytes> read_file(const std::string& path, std::size_t limit_bytes) {
  SHOAL_ASSIGN(const Descriptor file, open_regular_file(path));
  SHOAL_ASSIGN(const std::uint64_t size, size_of(file, path));
  if (size > limit_bytes) {
    return make_error(ErrorCode::kTooLarge,
                      path + " has " + std::to_string(size) + " bytes; the limit is " + std::to_string(limit_bytes));
  }
  Buffer buffer(size);
  SHOAL_ASSIGN(const std::size_t got, fill(file, path, 0, buffer.view()));
  return std::move(buffer).freeze().slice(0, got);
}

Result<std::string> output_path(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return no_regular_file(path, facts, ErrorCode::kOutput);
  constexpr int kLinksMax = 40;  // as many as the kernel follows
  std::string at = path;
  for (int links = 0; links <= kLinksMax; ++links) {
    std::error_code failure;
    const std::string folder = std::filesystem::canonical(folder_of(at), failure).string() + "/";
    // /dev/stdout leads there: what stands in that folder is an open file, whatever name it shows.
    if (folder.starts_with("/proc/"))
      return make_error(ErrorCode::kOutput,
                        path + " is no regular file: it is an open file of a process. HINT: name a file");
    const std::filesystem::path next = std::filesystem::read_symlink(at, failure);
    if (failure) return at;  // no link
    at = next.is_absolute() ? next.string() : folder_of(at) + "/" + next.string();
  }
  return make_error(ErrorCode::kOutput, path + " is a link without end. HINT: name a file");
}

Status check_output_file(const std::string& path, const std::vector<std::string>& read) {
  if (path.empty()) return make_error(ErrorCode::kOutput, "the output has no name. HINT: name a file");
  SHOAL_ASSIGN(const std::string target, output_path(path));
  const std::string folder = folder_of(target);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return cannot_make(error_of_errno("write into", folder, errno));
  struct stat there {
  }, input{};
  if (::stat(path.c_str(), &there) != 0) return {};
  for (const std::string& name : read) {
    if (::stat(name.c_str(), &input) == 0 && input.st_ino == there.st_ino && input.st_dev == there.st_dev)
      return make_error(ErrorCode::kInput,
                        path + " is an input, and would be replaced. HINT: give the output another name");
  }
  return {};
}

Result<OutputFile> OutputFile::begin(const std::string& path) {
  OutputFile output;
  SHOAL_ASSIGN(output.path_, output_path(path));
  output.temporary_ = output.path_ + std::string(kTemporary) + std::to_string(::getpid());
  SHOAL_TRY(step(true, "open", output.temporary_));
  SHOAL_ASSIGN(output.file_, open_file(output.temporary_, O_WRONLY | O_CREAT | O_TRUNC));
  // A file system without locks takes it all the same: there nobody takes the file for one that was left.
  static_cast<void>(lock_file(output.file_, output.temporary_));
  return output;
}

OutputFile::~OutputFile() {
  if (file_.get() >= 0) ::unlink(temporary_.c_str());
}

Status OutputFile::write(const std::vector<Bytes>& parts) {
  SHOAL_TRY(step(true, "write", temporary_));
  return write_all(file_, temporary_, parts);
}

Status OutputFile::rewind() { return step(::lseek(file_.get(), 0, SEEK_SET) == 0, "write", temporary_); }

Status OutputFile::sync() {
  SHOAL_TRY(step(true, "sync", temporary_));
  return sync_file(file_, temporary_);
}

Status OutputFile::place() {
  SHOAL_TRY(step(true, "replace", path_));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return error_of_errno("replace", path_, errno);
  file_ = Descriptor();
  return sync_folder_of(path_);
}

Status replace_file(const std::string& path, const std::vector<Bytes>& parts) {
  SHOAL_ASSIGN(OutputFile file, OutputFile::begin(path));
  SHOAL_TRY(file.write(parts));
  SHOAL_TRY(file.sync());
  return file.place();
}

std::string_view replaced_name(std::string_view temporary) {
  const std::size_t at = temporary.rfind(kTemporary);
  if (at == temporary.npos || at == 0) return {};
  const std::string_view pid = temporary.substr(at + kTemporary.size());
  return pid.empty() || pid.find_first_not_of("0123456789") != pid.npos ? std::string_view() : temporary.substr(0, at);
}

Result<std::vector<std::string>> left_temporaries(const std::string& folder) {
  std::vector<std::string> left;
  std::error_code failure;
  std::filesystem::directory_iterator entry(folder, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string path = entry->path().string();
    if (replaced_name(entry->path().filename().string()).empty()) continue;
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;  // a link is nobody's temporary file
    const Result<Descriptor> file = open_regular_file(path);
    if (file.ok() && lock_file(*file, path).ok()) left.push_back(path);
  }
  if (failure) return error_of_errno("read the folder", folder, failure.value());
  return left;
}

Result<Descriptor> open_locked(const std::string& path) {
  for (;;) {
    SHOAL_ASSIGN(Descriptor file, open_file(path, O_WRONLY | O_CREAT | O_APPEND));
    SHOAL_TRY(lock_file(file, path));
    struct stat ours {
    }, there{};
    if (::fstat(file.get(), &ours) != 0) return error_of_errno("open", path, errno);
    if (::stat(path.c_str(), &there) == 0 && there.st_ino == ours.st_ino && there.st_dev == ours.st_dev) return file;
  }
}

Result<Descriptor> replace_locked(const std::string& path, const std::vector<Bytes>& parts) {
  SHOAL_ASSIGN(const std::string target, output_path(path));
  const std::string beside = target + ".next";
  const auto write_it = [&]() -> Result<Descriptor> {
    SHOAL_ASSIGN(Descriptor file, open_locked(beside));
    if (::ftruncate(file.get(), 0) != 0) return error_of_errno("cut", beside, errno);
    SHOAL_TRY(write_all(file, beside, parts));
    SHOAL_TRY(sync_file(file, beside));
    if (::rename(beside.c_str(), target.c_str()) != 0) return error_of_errno("replace", target, errno);
    return file;
  };
  Result<Descriptor> file = write_it();
  if (!file.ok()) ::unlink(beside.c_str());
  return file;
}

}  // namespace shoal
