#pragma once
// What another process appends to a file that it does not cut, line by line. Owns the descriptor. Thread: one at a
// time.
#include <functional>
#include <string>
#include <vector>

#include "common/os/posix_file.h"
#include "common/time.h"

namespace shoal {

class FileTail {
 public:
  explicit FileTail(std::string path) : path_(std::move(path)) {}
  // The whole lines that were added since the last call, without their newlines; none while the file does not exist.
  std::vector<std::string> new_lines();
  const std::string& path() const { return path_; }

 private:
  std::string path_, begun_;  // begun_: the start of a line whose end is not there yet
  Descriptor file_;
};

// What follows `begins` in the first line to come that begins so, looked for until `budget` is over. `lives` says
// whether it is worth waiting; asked before each look, since what an ended process wrote is all there. ERRORS: those of
// `lives`; kUnreachable, with the last lines of `error_path`.
Result<std::string> wait_for_line(FileTail& file, const std::string& begins, const std::string& error_path,
                                  Duration budget, const std::function<Status()>& lives);

// The last `count` lines of a file, each indented, for an error message; empty when there are none.
std::string last_lines(const std::string& path, std::size_t count);

}  // namespace shoal
