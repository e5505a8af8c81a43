#pragma once
// How full a log is, said before it is too late: a log above its limit cannot be read back, so that the run could not
// be resumed. At half of the limit and at each further tenth. Value; pure.
#include <cstdint>
#include <optional>
#include <string>

namespace shoal {

class LogSpace {
 public:
  // `path`: for people. REQUIRES: limit_bytes >= 10.
  LogSpace(std::string path, std::size_t limit_bytes) : path_(std::move(path)), limit_(limit_bytes) {}
  // Once a tenth. `microbatches`: that the log grew by its `bytes` with.
  std::optional<std::string> warning(std::size_t bytes, std::uint64_t microbatches);

 private:
  std::string path_;
  std::size_t limit_;
  std::size_t next_tenth_ = 5;
};

}  // namespace shoal
