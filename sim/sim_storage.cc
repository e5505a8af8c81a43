#include "sim/sim_storage.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace shoal {

namespace {
constexpr std::size_t kPageBytes = 64;  // small, so that a short log has many

std::vector<std::uint8_t> joined(const std::vector<Bytes>& parts) {
  std::vector<std::uint8_t> bytes;
  for (const Bytes& part : parts) bytes.insert(bytes.end(), part.data(), part.data() + part.size());
  return bytes;
}

Error io_error(const std::string& path, const std::string& cause) {
  return make_error(ErrorCode::kIo, "cannot write " + path + ": " + cause);
}
}  // namespace

class SimAppendFile final : public AppendFile {
 public:
  SimAppendFile(EventLoop& loop, SimDisk& disk, Lifetime::Watch process, std::string path, std::uint64_t lock)
      : loop_(loop), disk_(disk), process_(std::move(process)), path_(std::move(path)), lock_(lock) {}

  ~SimAppendFile() override {
    const auto found = disk_.files_.find(path_);
    if (found != disk_.files_.end() && found->second.lock == lock_) found->second.lock = 0;
  }

  void append(Bytes bytes) override {
    if (process_.over() || !state_->ok()) return;
    if (Status room = disk_.check_room(bytes.size()); !room.ok()) {
      *state_ = io_error(path_, room.error().message);
      return;
    }
    SimDisk::File& file = disk_.files_[path_];
    file.bytes.insert(file.bytes.end(), bytes.data(), bytes.data() + bytes.size());
    SimDisk::write_pages(file, file.bytes.size() - bytes.size(), file.bytes.size());
  }

  void sync(std::function<void(Status)> done) override {
    waiting_->push_back(std::move(done));
    if (waiting_->size() > 1) return;  // shares the one that is under way
    loop_.after(disk_.sync_delay_,
                [disk = &disk_, process = process_, path = path_, state = state_, waiting = waiting_] {
                  if (process.over()) return;
                  const auto file = disk->files_.find(path);
                  ++disk->syncs_;
                  if (disk->failing_ && state->ok()) {
                    *state = io_error(path, "input/output error");
                    if (file != disk->files_.end()) SimDisk::fail_sync(file->second);
                  }
                  if (state->ok() && file != disk->files_.end()) file->second.durable_bytes = file->second.bytes.size();
                  const Status status = *state;
                  for (const auto& callback : std::exchange(*waiting, {})) callback(status);
                });
  }

  void restart(std::vector<Bytes> parts, std::function<void(Status)> done) override {
    if (!state_->ok()) {
      return loop_.post([process = process_, done = std::move(done), status = *state_] {
        if (!process.over()) done(status);
      });
    }
    disk_.replace_later(loop_, process_, {path_, joined(parts)}, std::move(done));
  }

 private:
  EventLoop& loop_;
  SimDisk& disk_;
  Lifetime::Watch process_;
  std::string path_;
  std::uint64_t lock_;
  std::shared_ptr<Status> state_ = std::make_shared<Status>();
  std::shared_ptr<std::vector<std::function<void(Status)>>> waiting_ =
      std::make_shared<std::vector<std::function<void(Status)>>>();
};

void SimDisk::process_died() {
  for (auto& [path, file] : files_) file.lock = 0;
  for (const auto& [serial, replacement] : std::exchange(under_way_, {})) {
    if (rng_.chance(0.5)) apply(replacement);
  }
}

void SimDisk::power_lost() {
  for (auto& [path, file] : files_) {
    const std::size_t unsynced = file.bytes.size() - file.durable_bytes;
    file.bytes.resize(file.durable_bytes + static_cast<std::size_t>(rng_.below(unsynced + 1)));
    if (rng_.chance(0.5)) lose_pages(file);
    zero_unwritten(file, file.bytes);
    file.unwritten.clear();
    file.durable_bytes = file.bytes.size();
  }
  process_died();
}

void SimDisk::lose_pages(File& file) {
  const std::size_t size = file.bytes.size();
  for (std::size_t page = file.durable_bytes / kPageBytes * kPageBytes; page < size; page += kPageBytes) {
    if (!rng_.chance(0.5)) continue;
    const auto from = static_cast<std::ptrdiff_t>(std::max(page, file.durable_bytes)),
               to = static_cast<std::ptrdiff_t>(std::min(page + kPageBytes, size));
    std::fill(file.bytes.begin() + from, file.bytes.begin() + to, std::uint8_t{0});
  }
}

void SimDisk::fail_sync(File& file) {
  for (std::size_t at = file.durable_bytes; at < file.bytes.size(); at = (at / kPageBytes + 1) * kPageBytes)
    file.unwritten.try_emplace(at / kPageBytes, at);
}

// What is written makes its pages those that a sync writes.
void SimDisk::write_pages(File& file, std::size_t from, std::size_t to) {
  if (from == to) return;
  file.unwritten.erase(file.unwritten.lower_bound(from / kPageBytes),
                       file.unwritten.upper_bound((to - 1) / kPageBytes));
}

void SimDisk::zero_unwritten(const File& file, std::vector<std::uint8_t>& bytes) {
  for (const auto& [page, from] : file.unwritten)
    for (std::size_t at = from; at < std::min(bytes.size(), (page + 1) * kPageBytes); ++at) bytes[at] = 0;
}

std::optional<std::vector<std::uint8_t>> SimDisk::content(const std::string& path) const {
  const auto found = files_.find(path);
  if (found == files_.end()) return std::nullopt;
  return found->second.bytes;
}

std::optional<std::vector<std::uint8_t>> SimDisk::durable_content(const std::string& path) const {
  auto bytes = content(path);
  if (!bytes) return bytes;
  const File& file = files_.at(path);
  zero_unwritten(file, *bytes);
  bytes->resize(file.durable_bytes);
  return bytes;
}

void SimDisk::put(const std::string& path, std::vector<std::uint8_t> bytes) { apply({path, std::move(bytes)}); }

std::size_t SimDisk::used_bytes() const {
  std::size_t sum = 0;
  for (const auto& [path, file] : files_) sum += file.bytes.size();
  return sum;
}

Status SimDisk::check_room(std::size_t more) const {
  const std::size_t used = used_bytes();
  if (used > capacity_bytes_ || more > capacity_bytes_ - used) {
    return make_error(ErrorCode::kIo, "no space left on device");
  }
  return {};
}

void SimDisk::apply(const Replacement& replacement) {
  File& file = files_[replacement.path];
  file.bytes = replacement.bytes;
  file.unwritten.clear();
  file.durable_bytes = file.bytes.size();
}

void SimDisk::replace_later(EventLoop& loop, Lifetime::Watch process, Replacement replacement,
                            std::function<void(Status)> done) {
  const std::uint64_t serial = next_serial_++;
  under_way_.emplace(serial, std::move(replacement));
  loop.after(sync_delay_, [this, process = std::move(process), serial, done = std::move(done)] {
    if (process.over()) return;
    auto node = under_way_.extract(serial);
    if (node.empty()) return;
    const Replacement& wanted = node.mapped();
    if (failing_) return done(io_error(wanted.path, "input/output error"));
    // Old and new stand side by side until the rename, as on a real disk.
    if (Status room = check_room(wanted.bytes.size()); !room.ok())
      return done(io_error(wanted.path, room.error().message));
    apply(wanted);
    done(Status::success());
  });
}

SimStorage::SimStorage(EventLoop& loop, SimDisk& disk) : loop_(loop), disk_(disk) {}
SimStorage::~SimStorage() = default;

Result<std::unique_ptr<AppendFile>> SimStorage::open_append(const std::string& path) {
  SimDisk::File& file = disk_.files_[path];
  if (file.lock != 0) return make_error(ErrorCode::kBusy, path + " is in use by another process");
  file.lock = disk_.next_serial_++;
  return std::unique_ptr<AppendFile>(std::make_unique<SimAppendFile>(loop_, disk_, lifetime_.watch(), path, file.lock));
}

Result<Bytes> SimStorage::read(const std::string& path, std::size_t limit_bytes) {
  const auto found = disk_.files_.find(path);
  if (found == disk_.files_.end()) return make_error(ErrorCode::kMissing, path + " does not exist");
  if (found->second.bytes.size() > limit_bytes) {
    return make_error(ErrorCode::kTooLarge, path + " has " + std::to_string(found->second.bytes.size()) +
                                                " bytes; the limit is " + std::to_string(limit_bytes));
  }
  return Bytes::copy_of(ByteView(found->second.bytes));
}

Result<std::uint64_t> SimStorage::read_at(const std::string& path, std::uint64_t at, MutableByteView into) {
  SHOAL_ASSIGN(const Bytes file, read(path, SIZE_MAX));
  if (at < file.size()) {
    const ByteView rest = file.view().subspan(at);
    std::copy_n(rest.begin(), std::min(rest.size(), into.size()), into.begin());
  }
  return file.size();
}

void SimStorage::replace(const std::string& path, std::vector<Bytes> parts, std::function<void(Status)> done) {
  disk_.replace_later(loop_, lifetime_.watch(), {path, joined(parts)}, std::move(done));
}

Status SimStorage::truncate(const std::string& path, std::size_t size) {
  const auto found = disk_.files_.find(path);
  if (found == disk_.files_.end()) return make_error(ErrorCode::kMissing, path + " does not exist");
  SimDisk::File& file = found->second;
  if (size < file.bytes.size()) {
    file.bytes.resize(size);
    file.unwritten.erase(file.unwritten.lower_bound(size / kPageBytes), file.unwritten.end());
  }
  file.durable_bytes = std::min(file.durable_bytes, file.bytes.size());
  return {};
}

Status SimStorage::rewrite(const std::string& path, std::size_t at, Bytes bytes) {
  const auto found = disk_.files_.find(path);
  if (found == disk_.files_.end()) return make_error(ErrorCode::kMissing, path + " does not exist");
  SimDisk::File& file = found->second;
  SHOAL_CHECK_LE(at + bytes.size(), file.bytes.size());
  std::copy_n(bytes.data(), bytes.size(), file.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  SimDisk::write_pages(file, at, at + bytes.size());
  return {};
}

}  // namespace shoal
