#include "cli/checkpoint_prune.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>

#include "cli/checkpoint_files.h"
#include "common/log.h"
#include "common/os/posix_file.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"

namespace shoal {
namespace {

// Saved so long ago; what cannot be used is as old as its file.
bool is_older(const CheckpointFile& file, double days) {
  const double now = static_cast<double>(std::time(nullptr));
  constexpr double kDay = 86400;
  if (file.read.ok()) return now - static_cast<double>(file.read->info.saved_s) > days * kDay;
  std::error_code failure;
  const auto written = std::filesystem::last_write_time(file.path, failure);
  const auto age = std::filesystem::file_time_type::clock::now() - written;
  return !failure && std::chrono::duration<double>(age).count() > days * kDay;
}

// Removes, counts and says.
class Pruning {
 public:
  Pruning(bool dry_run, bool json) : dry_run_(dry_run), json_(json) {}

  void remove(const CheckpointFile& file) {
    if (!dry_run_ && ::unlink(file.path.c_str()) != 0) {
      if (!failure_) failure_ = error_of_errno("remove", file.path, errno);
      return;
    }
    bytes_ += file.bytes;
    if (json_)
      all_.add(json_of(file));
    else
      std::printf("%s\n", printable(file.path).c_str());
  }
  int end() const {
    if (json_) std::printf("%s\n", all_.text().c_str());
    log_info(dry_run_ ? "would remove " : "removed ", bytes_ >> 20, " MiB");
    return failure_ ? fail(*failure_) : kExitOk;
  }

 private:
  const bool dry_run_, json_;
  Json all_ = Json::array();
  std::uint64_t bytes_ = 0;
  std::optional<Error> failure_;  // the first
};

}  // namespace

int prune_checkpoints(const PruneArguments& arguments, bool json) {
  const Result<FoundCheckpoints> found = find_checkpoints(arguments.paths, Wanted::kToRemove);
  if (!found.ok()) return fail(found.error());
  Pruning pruning(arguments.dry_run, json);
  read_each(found->checkpoints, [&](const CheckpointFile& file) {
    if (is_older(file, arguments.days)) pruning.remove(file);
  });
  for (const std::string& path : found->left) pruning.remove(left_file(path));
  return pruning.end();
}

}  // namespace shoal
