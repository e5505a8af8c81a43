#include "runtime/launch/run_lock.h"

namespace shoal {

namespace {

constexpr std::size_t kHolderBytesMax = 256;

// A process that has just taken the lock may not have written it yet.
std::string holder_of(Storage& storage, const std::string& folder) {
  const auto said = storage.read(run_lock_path(folder), kHolderBytesMax);
  if (!said.ok() || said->empty()) return "another process";
  return {reinterpret_cast<const char*>(said->data()), said->size()};
}

}  // namespace

Result<RunLock> RunLock::take(Storage& storage, const std::string& folder, const std::string& holder) {
  auto file = storage.open_append(run_lock_path(folder));
  if (!file.ok() && file.code() == ErrorCode::kBusy)
    return make_error(ErrorCode::kBusy, folder + " is in use by " + holder_of(storage, folder));
  if (!file.ok()) return file.error();
  SHOAL_TRY(storage.truncate(run_lock_path(folder), 0));  // an earlier one's word
  (*file)->append(Bytes::copy_of(std::string_view(holder).substr(0, kHolderBytesMax)));
  return RunLock(*std::move(file));
}

}  // namespace shoal
