#pragma once
// When a peer writes a checkpoint of its stage, and what becomes of it. The image is made by a device job, hashed and
// cut aside, and written by the storage's own thread: neither loop nor device waits for the disk. A checkpoint that
// could not be written costs nothing else, and the next one is tried as if nothing had been: a failure is said once,
// until it is another one or over. How old the newest one is grows meanwhile, and beats tell it.
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
#include "transport/messages.h"

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
  // The newest version is to be on the disk as soon as can be, whatever the run wants: who holds it alone goes.
  void hurry() { hurried_ = true; }
  // One is to be made now of this version.
  bool due(Version version) const;
  // There is a disk for them.
  bool writes() const { return store_ != nullptr; }
  // On the disk; of version 0 nothing need be.
  bool has(StageId stage, Version version) const {
    return version == Version(0) || (written_ && written_->stage == stage && written_->version == version);
  }
  // The session that makes the image says so first, and then that it is here, or that it came to nothing.
  void making();
  void made(Bytes image);
  void came_to_nothing() {
    if (phase_ == Phase::kMaking) phase_ = Phase::kIdle;
  }
  // Every state of this stage that the disk has, and what is kept in memory for sure; newest first.
  std::vector<HeldState> held(StageId stage, const KeptState& kept) const;
  // One of the disk's, by its digest, once the stage went back to it. Blocks: whoever wants it does not serve. What
  // cannot be read is said, and is held no more.
  std::optional<Bytes> read(StageId stage, const Digest& digest);
  // The newest one of this stage on the disk, and how old it is; of an earlier process, by the clock on the wall.
  std::optional<DiskState> newest(StageId stage) const;

 private:
  struct Cut {
    StateHeader state;
    TimePoint made{};
    std::vector<Bytes> parts;
  };
  void write(Cut cut);
  void on_written(const StateHeader& state, TimePoint made, const Status& saved);

  const Options options_;
  Storage* const storage_;
  EventLoop& loop_;
  WorkQueue& aside_;
  const Say say_;
  std::unique_ptr<CheckpointStore> store_;  // null: no checkpoints
  Duration every_{0};                       // 0: none
  TimePoint next_{};
  bool hurried_ = false;
  enum class Phase : std::uint8_t { kIdle, kMaking, kWriting } phase_ = Phase::kIdle;
  struct Written {
    StageId stage;
    Version version;
    TimePoint made{};
  };
  std::optional<Written> written_;  // the newest on the disk
  std::string failure_said_, copies_said_;
  Lifetime lifetime_;
};

}  // namespace shoal
