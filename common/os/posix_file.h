#pragma once
// The few system calls of file_storage.cc with their errors as values. Thread: any; each Descriptor has one owner.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"

namespace shoal {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// "cannot <verb> <path>: <text of errno>", with a HINT where a person can act; ENOENT is kMissing, the rest kIo.
Error error_of_errno(const std::string& verb, const std::string& path, int error_number);

// An output that a person named cannot be made: the error as kOutput, with the remedy where a folder is missing.
Error cannot_make(Error error);

Result<Descriptor> open_file(const std::string& path, int flags);
// For reading. What is no regular file (a folder, a device, a FIFO) is refused at once: it is neither opened, which may
// wait for ever and may set a device going, nor read without end. ERRORS: kInput (no regular file), kMissing, kIo.
Result<Descriptor> open_regular_file(const std::string& path);
// Takes an exclusive flock without waiting. ERRORS: kBusy, kIo.
Status lock_file(const Descriptor& file, const std::string& path);
// Writes all of it, also over short writes and EINTR.
Status write_all(const Descriptor& file, const std::string& path, const std::vector<Bytes>& parts);
Status sync_file(const Descriptor& file, const std::string& path);
// fsync of the folder that holds `path`, so that a new or renamed entry survives a power loss.
Status sync_folder_of(const std::string& path);
// ERRORS: open_regular_file's, kTooLarge.
Result<Bytes> read_file(const std::string& path, std::size_t limit_bytes);
// Fills `into` with what stands from `at` on, as far as the file goes. The size of the file. ERRORS:
// open_regular_file's, kIo.
Result<std::uint64_t> read_file_at(const std::string& path, std::uint64_t at, MutableByteView into);
// Whether a file of a person can be written to `path`, asked before the work that fills it: its folder is there and can
// be written, what has the name is a regular file or nothing, and none of the files `read`, which the work reads.
// ERRORS: kOutput; kInput (one of `read`).
Status check_output_file(const std::string& path, const std::vector<std::string>& read = {});
// The file itself behind symbolic links, which may be there or not: what writes to the name of a link writes through
// it. ERRORS: kOutput (no regular file: a folder, a device, an open file of a process; a link without end).
Result<std::string> output_path(const std::string& path);

// A file that is written beside its place and put there when it is whole: no half of it is ever there, and what was
// there stays until then. The one way in which the program writes files that it does not append to. One thread at a
// time.
class OutputFile {
 public:
  // PATH.tmp.<pid> beside output_path(), locked while it is written. ERRORS: output_path()'s, kMissing, kIo.
  static Result<OutputFile> begin(const std::string& path);
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // what was not placed is removed

  // ERRORS of each: kIo. REQUIRES: not placed.
  Status write(const std::vector<Bytes>& parts);
  Status rewind();  // the next write() is at the beginning
  Status sync();
  Status place();  // behind sync(): rename, fsync of the folder

 private:
  OutputFile() = default;
  std::string path_, temporary_;
  Descriptor file_;
};

// An OutputFile of these parts. ERRORS: OutputFile's.
Status replace_file(const std::string& path, const std::vector<Bytes>& parts);
// What processes left in the folder that died in replace_file: the files which nobody has locked. ERRORS: kMissing,
// kIo.
Result<std::vector<std::string>> left_temporaries(const std::string& folder);
// The name of the file that a temporary one of this name was to replace; empty: it is called otherwise.
std::string_view replaced_name(std::string_view temporary);
// Opens for appending, creates when absent, with the lock of lock_file. Not one that another process replaced while it
// was opened. ERRORS: kBusy, kMissing, kIo.
Result<Descriptor> open_locked(const std::string& path);
// A file with these parts, synced and locked, stands in the place of the one at `path`, and is open for appending; the
// folder is not synced yet. Only the process that holds that one's lock may call it.
Result<Descriptor> replace_locked(const std::string& path, const std::vector<Bytes>& parts);

}  // namespace shoal
