#include "demo/work_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <utility>

namespace shoal {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<WorkFolder> WorkFolder::make(const std::string& name, const std::string& kept) {
  std::error_code failure;
  if (kept.empty()) {
    std::string pattern = (fs::temp_directory_path(failure) / ("shoal-" + name + "-XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr)
      return make_error(ErrorCode::kIo, "no temporary folder could be made: " + pattern);
    return WorkFolder(pattern, true);
  }
  fs::create_directories(kept, failure);
  if (failure) return make_error(ErrorCode::kIo, kept + ": " + failure.message());
  return WorkFolder(fs::absolute(kept).string(), false);
}

WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), temporary_(other.temporary_) {}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (temporary_ && !path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace shoal
