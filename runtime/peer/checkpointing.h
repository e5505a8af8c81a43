#pragma once
// When a peer writes a checkpoint of its stage, and what becomes of it. The image is made by a device job, hashed and
// cut aside, and written by the storage's own thread: neither loop nor device waits for the disk. A checkpoint that
// could not be written is said and costs nothing else; the next one is tried as if nothing had been.
//
// Thread: loop only.   Borrows: loop, aside, storage.   Bounds: one checkpoint under way.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/work_queue.h"
#include "runtime/peer/kept_state.h"
#include "state/checkpoint_store.h"

namespace shoal {

class Checkpointing {
 public:
  struct Options {
    RunId run;
    KeyPair key;
    std::vector<std::string> folders;  // none: no checkpoints
  };
  using Say = std::function<void(const std::string& warning)>;

  // `storage` may be null: no checkpoints.
  Checkpointing(Options options, Storage* storage, EventLoop& loop, WorkQueue& aside, Say say);

  // The newest one of an earlier process that is whole, if there is one; says which newer ones are not. Blocks: before
  // the loop has anything else to do, since what a peer holds is part of its first JoinRequest.
  KeptState::Images load();
  // The run wants one every so often, and keeps so many.
  void set_policy(Duration every, std::size_t keep);
  // One is to be made now of this version.
  bool due(Version version) const;
  // The session that makes the image says so first, and then that it is here, or that it came to nothing.
  void making();
  void made(Bytes image);
  void came_to_nothing() {
    if (phase_ == Phase::kMaking) phase_ = Phase::kIdle;
  }
  // The newest version that is on the disk.
  std::optional<Version> written() const { return written_; }

 private:
  struct Cut {
    Version version;
    std::vector<Bytes> parts;
  };
  void write(Cut cut);

  const Options options_;
  Storage* const storage_;
  EventLoop& loop_;
  WorkQueue& aside_;
  const Say say_;
  std::unique_ptr<CheckpointStore> store_;  // null: no checkpoints
  Duration every_{0};                       // 0: none
  TimePoint next_{};
  enum class Phase : std::uint8_t { kIdle, kMaking, kWriting } phase_ = Phase::kIdle;
  std::optional<Version> written_;
  Lifetime lifetime_;
};

}  // namespace shoal
