#include "runtime/launch/log_space.h"

#include <algorithm>

namespace shoal {

namespace {
constexpr const char* kRemedy =
    ". HINT: make room on its disk, so that it can be compacted; else end the run in order before (one that was "
    "started or resumed with --save keeps its model)";

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }
}  // namespace

void LogSpace::compacted(std::size_t bytes, std::uint64_t microbatches) {
  due_bytes_ = std::max(compact_bytes_, 2 * bytes);
  next_tenth_ = kFirstTenth;
  bytes_before_ = bytes;
  microbatches_before_ = microbatches;
}

std::optional<std::string> LogSpace::warning(std::size_t bytes, std::uint64_t microbatches) {
  const std::size_t tenth = bytes / (limit_ / 10);
  if (tenth < next_tenth_) return std::nullopt;
  next_tenth_ = tenth + 1;
  const std::string head =
      path_ + " has " + mebibytes(bytes) + " of the " + mebibytes(limit_) + " that can be read back";
  if (bytes >= limit_) return head + ": this run cannot be resumed any more" + kRemedy;
  std::string text = head + " (" + std::to_string(bytes / (limit_ / 100)) + " %)";
  if (microbatches > microbatches_before_ && bytes > bytes_before_) {
    const double each =
        static_cast<double>(bytes - bytes_before_) / static_cast<double>(microbatches - microbatches_before_);
    text += ": room for about " +
            std::to_string(static_cast<std::uint64_t>(static_cast<double>(limit_ - bytes) / each)) +
            " more microbatches, then the run could not be resumed";
  }
  return text + kRemedy;
}

}  // namespace shoal
