#pragma once
// What the event files of a run tell, by the times of their lines; lines of one file in their order. Lines that cannot
// be read, or are no event of their writer, are the audit's matter and passed over. Files may grow: what is not there
// yet comes later.   Thread: one at a time.
// Bounds: one open file and a piece of it for each process.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "events/books/seen_event.h"
#include "events/event_lines.h"

namespace shoal {

class MergedLines {
 public:
  // All files as they are now. ERRORS: sources_in()'s.
  static Result<MergedLines> whole(const std::string& folder, const ReadProgress& progress = {});
  // Files that processes still write.
  static MergedLines growing(std::string folder) { return MergedLines(std::move(folder)); }

  // The earliest of those that are there, valid until the next call; none: nothing is there now. Its time is that of a
  // line before it where the clock went back. ERRORS: kIo.
  Result<std::optional<SeenEvent>> next();
  // What grew, and what came to the folder. ERRORS: kMissing (no folder, no event file in it), kIo.
  Status look_again();

 private:
  struct File {
    EventLines lines;
    const ReadEvent* event = nullptr;
    double time = 0;
  };
  explicit MergedLines(std::string folder = {}) : folder_(std::move(folder)) {}
  void add(const EventSource& source, bool grows);
  Status ask(std::size_t file);

  std::string folder_;
  std::set<std::string> known_;  // paths of files that grow
  std::vector<std::unique_ptr<File>> files_;
  // Time of each file's next line, and its place: the earliest is next, of equal times the first file's.
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>>
      next_;
  std::vector<std::size_t> idle_;  // files without a line now
  std::size_t given_ = SIZE_MAX;   // the file whose line was given last
};

}  // namespace shoal
