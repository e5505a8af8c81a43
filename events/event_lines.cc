#include "events/event_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "common/os/posix_file.h"
#include "common/packed/byte_source.h"

namespace shoal {

namespace {

// The parts of a file as one. One is open at a time, and only while it is read: a folder may hold more files than a
// process may have open.
class Parts {
 public:
  Parts(std::vector<std::string> paths, FirstReads told, std::shared_ptr<std::uint64_t> seen)
      : paths_(std::move(paths)), told_(std::move(told)), seen_(std::move(seen)) {}
  Result<std::size_t> read(std::span<char> out) {
    while (true) {
      if (source_ == nullptr) {
        if (next_ == paths_.size()) return std::size_t{0};
        SHOAL_ASSIGN(source_, opened(paths_[next_++]));
      }
      SHOAL_ASSIGN(const std::size_t got, source_->read({reinterpret_cast<std::uint8_t*>(out.data()), out.size()}));
      tell(before_ + source_->taken());
      if (got > 0) return got;
      before_ += source_->taken();
      source_.reset();
    }
  }

 private:
  // Its writer may have packed it since it was found.
  static Result<std::unique_ptr<ByteSource>> opened(const std::string& path) {
    auto source = ByteSource::open(path);
    if (source.ok() || source.code() != ErrorCode::kMissing) return source;
    auto packed = ByteSource::open(packed_segment(path));
    return packed.ok() ? std::move(packed) : std::move(source);
  }
  void tell(std::uint64_t taken) {
    if (!told_ || taken <= *seen_) return;
    told_(taken - *seen_);
    *seen_ = taken;
  }

  std::vector<std::string> paths_;
  std::size_t next_ = 0;
  std::unique_ptr<ByteSource> source_;
  std::uint64_t before_ = 0;  // bytes of the parts that were read
  FirstReads told_;
  std::shared_ptr<std::uint64_t> seen_;  // bytes that were told of
};

// A file that its writer appends to, and cuts by giving its name to another one. First the segments that were there.
class Grown {
 public:
  explicit Grown(std::string path) : path_(std::move(path)) {}
  // What was cut since, and the file as it is now. Where nothing has the name yet, a later read() opens it.
  Status open() {
    const std::uint64_t known = newest_ + (file_.get() >= 0 ? 1 : 0);  // what was open is a segment by now
    while (true) {
      SHOAL_ASSIGN(const EventFile there, event_file_at(path_));
      auto file = open_file(path_, O_RDONLY | O_CLOEXEC);
      if (!file.ok() && file.code() != ErrorCode::kMissing) return file.error();
      SHOAL_ASSIGN(const EventFile now, event_file_at(path_));
      if (newest_segment(now) != newest_segment(there)) continue;  // it was cut meanwhile
      newest_ = newest_segment(now);
      cut_.emplace(segments_behind(now, known), FirstReads(), std::make_shared<std::uint64_t>(0));
      file_ = file.ok() ? *std::move(file) : Descriptor();
      return {};
    }
  }
  // 0: nothing is there yet.
  Result<std::size_t> read(std::span<char> out) {
    while (true) {
      SHOAL_ASSIGN(const std::size_t from_segments, cut_->read(out));
      if (from_segments > 0) return from_segments;
      const bool moved = has_moved();  // asked first: what its writer did before the cut is in the file then
      if (file_.get() >= 0) {
        SHOAL_ASSIGN(const std::size_t got, read_rest(out));
        if (got > 0) return got;
      }
      if (!moved) return std::size_t{0};
      SHOAL_TRY(open());
    }
  }

 private:
  bool has_moved() const {
    struct stat ours = {}, named = {};
    if (::stat(path_.c_str(), &named) != 0) return false;
    if (file_.get() < 0 || ::fstat(file_.get(), &ours) != 0) return true;
    return ours.st_ino != named.st_ino || ours.st_dev != named.st_dev;
  }
  Result<std::size_t> read_rest(std::span<char> out) {
    ssize_t got;
    do {
      got = ::read(file_.get(), out.data(), out.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return error_of_errno("read", path_, errno);
    return static_cast<std::size_t>(got);
  }

  std::string path_;
  std::uint64_t newest_ = 0;  // segment that is behind us, or in `cut_`
  std::optional<Parts> cut_;  // segments to be read before the file
  Descriptor file_;
};

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

EventSource text_source(std::string name, std::string_view text) {
  const auto open = [text] {
    return [rest = text](std::span<char> out) mutable -> Result<std::size_t> {
      const std::size_t got = rest.copy(out.data(), out.size());
      rest.remove_prefix(got);
      return got;
    };
  };
  return {std::move(name), open};
}

EventSource file_source(EventFile file, FirstReads told) {
  EventSource source{.name = last_part(file.path), .open = {}};
  for (const std::uint64_t number : file.lacks) source.lacks.push_back(last_part(segment_path(file.path, number)));
  source.open = [paths = std::move(file.parts), told = std::move(told), seen = std::make_shared<std::uint64_t>(0)] {
    return [parts = std::make_shared<Parts>(paths, told, seen)](std::span<char> out) { return parts->read(out); };
  };
  return source;
}

Result<EventSource> growing_source(const std::string& path) {
  const auto grown = std::make_shared<Grown>(path);
  SHOAL_TRY(grown->open());
  const EventSource::Read read = [grown](std::span<char> out) { return grown->read(out); };
  return EventSource{.name = last_part(path), .open = [read] { return read; }};
}

Result<std::vector<EventSource>> sources_in(const std::string& folder, const ReadProgress& progress) {
  std::error_code failure;
  if (!std::filesystem::is_directory(folder, failure))
    return make_error(ErrorCode::kMissing, folder + ": no such folder");
  SHOAL_ASSIGN(std::vector<EventFile> files, event_files_in(folder));
  if (files.empty())
    return make_error(ErrorCode::kMissing, folder + ": holds no *.jsonl file (written by --events FILE)");
  std::uint64_t total = 0;
  for (const EventFile& file : files) total += bytes_of_files(file.parts);
  FirstReads told;
  if (progress)
    told = [progress, total, done = std::make_shared<std::uint64_t>(0)](std::uint64_t bytes) {
      *done += bytes;
      progress(std::min(*done, total), total);
    };
  std::vector<EventSource> sources;
  for (EventFile& file : files) sources.push_back(file_source(std::move(file), told));
  return sources;
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
    if (grows_ && at_end_) return at_end_ = false;
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
    SHOAL_ASSIGN(const std::size_t got, read_({buffer_.data() + end_, kPieceBytes}));
    end_ += got;
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

Result<const ReadEvent*> EventLines::next() {
  std::string_view line;
  bool whole = false;
  while (true) {
    SHOAL_ASSIGN(const bool any, next_text(line, whole));
    if (!any) {
      if (!grows_) judge_bad(false);  // it had its newline, so no kill tore it
      return static_cast<const ReadEvent*>(nullptr);
    }
    ++number_;
    if (whole && read_event(line, event_)) {
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
