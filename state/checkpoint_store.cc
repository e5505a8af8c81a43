#include "state/checkpoint_store.h"

#include <algorithm>
#include <memory>

namespace shoal {

CheckpointStore::CheckpointStore(Storage& storage, std::vector<std::string> folders, const RunId& run,
                                 const PeerId& peer)
    : storage_(storage), folders_(std::move(folders)), run_(run), peer_(peer) {
  SHOAL_CHECK(!folders_.empty());
}

std::string CheckpointStore::path_of(const std::string& folder, std::size_t slot) const {
  return folder + "/checkpoint-" + hex_of(run_).substr(0, 16) + "-" + hex_of(peer_).substr(0, 16) + "-" +
         std::to_string(slot) + ".safetensors";
}

CheckpointStore::Loaded CheckpointStore::load() {
  Loaded loaded;
  for (std::size_t slot = 0; slot < kSlotsMax; ++slot) {
    for (const std::string& folder : folders_) {
      const std::string path = path_of(folder, slot);
      Result<Bytes> file = storage_.read(path, kCheckpointBytesMax);
      if (!file.ok() && file.code() == ErrorCode::kMissing) continue;
      Result<Checkpoint> read = file.ok() ? parse_checkpoint(*std::move(file)) : file.error();
      if (read.ok() && (read->info.run != run_ || read->info.peer != peer_))
        read = make_error(ErrorCode::kForeign, "checkpoint: of another run or another peer");
      if (!read.ok()) {
        loaded.problems.push_back(path + ": " + read.error().message);
        continue;
      }
      const std::uint64_t sequence = read->info.sequence;
      taken_[slot] = std::max(taken_[slot], sequence);
      if (loaded.newest && sequence <= loaded.newest->info.sequence) continue;
      loaded.newest = *std::move(read);
      sequence_ = std::max(sequence_, sequence);
    }
  }
  return loaded;
}

void CheckpointStore::keep(std::size_t slots) { slots_ = std::clamp(slots, kSlotsMin, kSlotsMax); }

void CheckpointStore::save(const std::vector<Bytes>& parts, std::function<void(Status)> done) {
  const auto end = taken_.begin() + static_cast<std::ptrdiff_t>(slots_);
  const auto slot = static_cast<std::size_t>(std::min_element(taken_.begin(), end) - taken_.begin());
  const std::uint64_t sequence = next_sequence();
  struct Outcome {
    std::size_t open;
    bool saved = false;
    std::vector<Error> errors{};
  };
  auto outcome = std::make_shared<Outcome>(Outcome{.open = folders_.size()});
  for (const std::string& folder : folders_)
    storage_.replace(path_of(folder, slot), parts,
                     lifetime_.guard([this, outcome, slot, sequence, done](const Status& status) {
                       if (status.ok()) outcome->saved = true;
                       if (!status.ok()) outcome->errors.push_back(status.error());
                       if (--outcome->open > 0) return;
                       if (!outcome->saved) return done(outcome->errors.front());
                       taken_[slot] = sequence_ = sequence;
                       for (const Error& error : outcome->errors) problems_.push_back(error.message);
                       done(Status::success());
                     }));
}

}  // namespace shoal
