#pragma once
// The checkpoints of one run that a peer keeps in its folders: a few generations in slots, each a file of its own
// (state/checkpoint.h). A new one takes the place of the oldest, or of a file that cannot be used, and never that of
// the newest good one: whatever becomes of its writing, what was there before can be read.
//
// Thread: loop only.   Borrows: the storage.   Bounds: kSlotsMax files a folder; one checkpoint under way.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/lifetime.h"
#include "common/storage.h"
#include "state/checkpoint.h"
#include "transport/messages.h"

namespace shoal {

// checkpoint-<run>-<peer>-<slot>.safetensors, 16 hex digits of each key, so that several peers may share a folder.
std::string checkpoint_name(const RunId& run, const PeerId& peer, std::size_t slot);
// Whether a file is called so by this peer; none: by any.
bool is_checkpoint_name(std::string_view name, const std::optional<PeerId>& peer = {});

class CheckpointStore {
 public:
  static constexpr std::size_t kSlotsMin = 2, kSlotsMax = 64;

  // Those of a peer with this key. Every folder gets each of them. REQUIRES: a folder.
  CheckpointStore(Storage& storage, std::vector<std::string> folders, const RunId& run, const PeerId& peer);

  struct Loaded {
    std::optional<Checkpoint> newest;   // the last one saved that can be used
    std::vector<std::string> problems;  // a file that is there and cannot, as far as it was read: path and why
  };
  // Reads what an earlier process left, and remembers what a new one may take the place of: the heads of all, and of
  // the newest the whole, or of the next older one where its arrays are damaged. Its image is in memory once; the older
  // ones are read when they are wanted. Blocks; once, at the start.
  Loaded load();

  // What of this stage can be read again, as its heads say, newest first and each content once.
  std::vector<HeldState> usable(StageId stage) const;
  // The one of usable() with this digest. Blocks; what cannot be read is not usable any more. ERRORS: kMissing (none
  // has it), those of read_checkpoint.
  Result<Checkpoint> read(StageId stage, const Digest& digest);

  // So many from now on, kSlotsMin to kSlotsMax. Files of more slots stay as they are.
  void keep(std::size_t slots);
  // The sequence of the next one that is saved.
  std::uint64_t next_sequence() const { return sequence_ + 1; }
  // What checkpoint_parts made with next_sequence(). Atomic in each folder. Success when one has it; else the first
  // folder's error. REQUIRES: none is under way.
  void save(const std::vector<Bytes>& parts, std::function<void(Status)> done);
  // The folders that failed at the last save while another one took it.
  std::vector<std::string> take_problems() { return std::exchange(problems_, {}); }

 private:
  // A file that can be used as far as its head says.
  struct Found {
    std::size_t slot;
    std::string path;
    CheckpointHead head;
  };
  Result<CheckpointHead> read_head(const std::string& path) const;
  Result<Checkpoint> read_whole(const Found& one) const;
  void note_saved(std::size_t slot, const std::string& path, const std::vector<Bytes>& parts);
  std::string path_of(const std::string& folder, std::size_t slot) const;

  Storage& storage_;
  const std::vector<std::string> folders_;
  const RunId run_;
  const PeerId peer_;
  std::size_t slots_ = kSlotsMin;
  std::uint64_t sequence_ = 0;  // the newest
  std::vector<std::uint64_t> taken_ =
      std::vector<std::uint64_t>(kSlotsMax);  // by slot, a sequence; 0: free or of no use
  std::vector<Found> found_;                  // the highest sequence first
  std::vector<std::string> problems_;
  Lifetime lifetime_;
};

}  // namespace shoal
