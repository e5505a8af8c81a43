#pragma once
// The lines of one event file, read in pieces. Lenient in one point only: a process that was killed, or whose disk
// refused a write, may leave a line torn, and the next line says so. A file may grow while it is read.
//
// Bounds: one piece (kPieceBytes), or one line where that is longer, up to kLineBytesMax.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "events/event_segments.h"
#include "events/read_event.h"

namespace shoal {

// A file with its segments, or in tests a text.
struct EventSource {
  // Fills a part of `out` with what follows; 0: nothing does.
  using Read = std::function<Result<std::size_t>(std::span<char> out)>;
  std::string name;
  std::function<Read()> open;        // to be read from its beginning
  std::vector<std::string> lacks{};  // names of segments that are not there
};
EventSource text_source(std::string name, std::string_view text);  // borrows the text
// Told of bytes of a file that are read for the first time, as they stand on the disk.
using FirstReads = std::function<void(std::uint64_t bytes)>;
EventSource file_source(EventFile file, FirstReads told = {});  // ERRORS of Read: ByteSource's
// The same of a file that another process still writes, and may cut: what it gives ends where the file does, and goes
// on when that has grown. It is opened once. ERRORS: kIo.
Result<EventSource> growing_source(const std::string& path);
// All *.jsonl files of the folder. `progress` is told how many bytes of how many are read, after each piece. ERRORS:
// kMissing (no folder, no such file), kIo.
using ReadProgress = std::function<void(std::uint64_t bytes, std::uint64_t of)>;
Result<std::vector<EventSource>> sources_in(const std::string& folder, const ReadProgress& progress);

class EventLines {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;

  // `grows`: behind the end there may be more later, and a line without its end is not torn but not written yet.
  explicit EventLines(const EventSource& source, bool grows = false) : read_(source.open()), grows_(grows) {}

  // The next line that can be read, valid until the next call; null at the end, and where it grows may be asked again.
  // ERRORS: kIo.
  Result<const ReadEvent*> next();
  std::uint64_t number() const { return number_; }  // of the line that next() gave, from 1
  std::uint64_t lines() const { return lines_; }    // that could be read
  std::uint64_t torn() const { return torn_; }
  // Lines that no torn write explains, told once.
  std::vector<std::uint64_t> take_damaged() { return std::exchange(damaged_, {}); }

 private:
  Result<bool> next_text(std::string_view& line, bool& whole);
  void judge_bad(bool explained);

  EventSource::Read read_;
  bool grows_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what is in the buffer and not given yet
  std::size_t scanned_ = 0;          // up to here there is no newline
  bool at_end_ = false;
  std::uint64_t number_ = 0, lines_ = 0, torn_ = 0;
  std::uint64_t bad_ = 0;  // the line before, when it could not be read
  std::vector<std::uint64_t> damaged_;
  ReadEvent event_{};
};

}  // namespace shoal
