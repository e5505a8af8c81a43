#include "events/audit/event_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/os/posix_file.h"

namespace shoal {

AuditSource text_source(std::string name, std::string_view text) {
  return {std::move(name), [text](std::uint64_t at, std::span<char> out) -> Result<std::size_t> {
            if (at >= text.size()) return std::size_t{0};
            return text.copy(out.data(), out.size(), at);
          }};
}

// Opened for each piece: a folder may hold more files than a process may have open.
Result<AuditSource> file_source(const std::string& path) {
  const auto read = [path](std::uint64_t at, std::span<char> out) -> Result<std::size_t> {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return error_of_errno("open", path, errno);
    const Descriptor file(fd);
    ssize_t got;
    do {
      got = ::pread(file.get(), out.data(), out.size(), static_cast<off_t>(at));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return error_of_errno("read", path, errno);
    return static_cast<std::size_t>(got);
  };
  char first = 0;
  SHOAL_TRY(read(0, {&first, 1}));
  return AuditSource{path.substr(path.rfind('/') + 1), read};
}

// `whole`: it ended with a newline. A line longer than kLineBytesMax is given in parts, none of which can be read.
Result<bool> EventLines::next_text(std::string_view& line, bool& whole) {
  while (true) {
    const char* from = buffer_.data() + scanned_;
    if (const void* found = scanned_ < end_ ? std::memchr(from, '\n', end_ - scanned_) : nullptr) {
      const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
      line = std::string_view(buffer_).substr(begin_, at - begin_);
      begin_ = scanned_ = at + 1;
      return whole = true;
    }
    scanned_ = end_;
    if (at_end_ || end_ - begin_ >= kLineBytesMax) {
      line = std::string_view(buffer_).substr(begin_, end_ - begin_);
      begin_ = end_;
      whole = false;
      return !line.empty();
    }
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    scanned_ -= begin_;
    begin_ = 0;
    if (buffer_.size() < end_ + kPieceBytes) buffer_.resize(std::max(2 * end_, kPieceBytes) + kPieceBytes);
    SHOAL_ASSIGN(const std::size_t got, source_.read(at_, {buffer_.data() + end_, kPieceBytes}));
    end_ += got;
    at_ += got;
    at_end_ = got == 0;
  }
}

void EventLines::judge_bad(bool explained) {
  if (bad_ == 0) return;
  if (explained)
    ++torn_;
  else
    damaged_.push_back(bad_);
  bad_ = 0;
}

Result<const AuditEvent*> EventLines::next() {
  std::string_view line;
  bool whole = false;
  while (true) {
    SHOAL_ASSIGN(const bool any, next_text(line, whole));
    if (!any) {
      judge_bad(false);  // it had its newline, so no kill tore it
      return static_cast<const AuditEvent*>(nullptr);
    }
    ++number_;
    if (whole && read_audit_event(line, event_)) {
      // A new life of the process says so when the one before left its last line torn; the same life, when lines were
      // refused, the first of them perhaps in its middle.
      judge_bad((event_.row != nullptr && event_.event == EventKind::kReopened) || event_.missing.value_or(0) > 0);
      ++lines_;
      return &event_;
    }
    judge_bad(false);
    if (whole || !at_end_)
      bad_ = number_;
    else
      ++torn_;  // the last one, as a kill leaves it
  }
}

}  // namespace shoal
