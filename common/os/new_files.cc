#include "common/os/new_files.h"

#include <algorithm>
#include <filesystem>

#include "common/os/posix_file.h"

namespace shoal {

namespace fs = std::filesystem;

NewFiles::~NewFiles() {
  std::error_code failure;  // what cannot be removed stays
  for (auto path = absent_.rbegin(); path != absent_.rend(); ++path) fs::remove(*path, failure);
}

void NewFiles::expect(const std::string& path) {
  const auto target = output_path(path);
  if (!target.ok()) return;  // nothing is written there either
  std::vector<std::string> absent;
  std::error_code failure;
  for (fs::path at = fs::absolute(*target, failure); !at.empty(); at = at.parent_path()) {
    if (fs::exists(fs::symlink_status(at, failure))) break;
    if (at.has_filename()) absent.push_back(at.string());
  }
  absent_.insert(absent_.end(), absent.rbegin(), absent.rend());
}

}  // namespace shoal
