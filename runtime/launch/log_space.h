#pragma once
// When a log is compacted, and how full it is where that fails: a log above its limit cannot be read back, so that the
// run could not be resumed. That is said at half of the limit and at each further tenth. Value; pure.
#include <cstdint>
#include <optional>
#include <string>

#include "common/time.h"

namespace shoal {

inline constexpr std::size_t kLogCompactBytes = 16u << 20;

class LogSpace {
 public:
  // `path`: for people. REQUIRES: limit_bytes >= 10.
  LogSpace(std::string path, std::size_t limit_bytes, std::size_t compact_bytes)
      : path_(std::move(path)), limit_(limit_bytes), compact_bytes_(compact_bytes), due_bytes_(compact_bytes) {}
  const std::string& path() const { return path_; }
  // It has compact_bytes, and twice what the last compaction left, so that each one pays.
  bool compaction_due(std::size_t bytes, TimePoint now) const { return bytes >= due_bytes_ && now >= not_before_; }
  // `microbatches`: as for warning().
  void compacted(std::size_t bytes, std::uint64_t microbatches);
  static constexpr Duration kTryAgain = 60s;
  void not_compacted(TimePoint now) { not_before_ = now + kTryAgain; }
  // Once a tenth, and again after a compaction. `microbatches`: that the run has committed.
  std::optional<std::string> warning(std::size_t bytes, std::uint64_t microbatches);

 private:
  static constexpr std::size_t kFirstTenth = 5;
  std::string path_;
  std::size_t limit_, compact_bytes_, due_bytes_;
  TimePoint not_before_{};
  std::size_t next_tenth_ = kFirstTenth;
  std::size_t bytes_before_ = 0;  // that are not of the microbatches since the last compaction
  std::uint64_t microbatches_before_ = 0;
};

}  // namespace shoal
