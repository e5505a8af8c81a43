#pragma once
// What stage_peer*.cc share. Internal to runtime's StagePeer.
#include <atomic>

#include "runtime/stage_peer/stage_peer.h"

namespace shoal {

// Of one entry, while it is live. Written on the loop, or by the one device job that holds it; never by both at a time.
struct StagePeer::Tensors {
  MicrobatchId microbatch;
  std::vector<Bytes> input;  // encoded: tokens, then the activation (not at stage 0)
  Bytes output;              // encoded activation for the next stage: a key frame
  HostTensor activation;     // the same as it was, for a coder's deltas; only where there is a coder
  Bytes gradient_in;         // encoded, from the next stage
  Bytes gradient_out;        // encoded, for the holders
};

// Steps of a round that wait for the ledger or the device.
struct StagePeer::Waiting {
  struct Contribute {
    RoundOpen open;
    std::function<void(Result<Contribution>)> done;
  };
  struct Prepare {
    RoundOpen open;
    std::shared_ptr<Payload> reduced;
    std::function<void(Result<Digest>)> done;
  };
  struct Commit {
    RoundOpen open;
    RoundCommit commit;
    std::function<void()> done;
  };
  struct Plain {
    DeviceTask task;
    std::function<void(StageExecutor&)> job;
    std::function<void()> done;
  };
  std::optional<Contribute> contribute;
  std::optional<Prepare> prepare;
  std::optional<Commit> commit;
  std::optional<RoundOpen> abandon;
  std::optional<Bytes> shift;  // the image of a newer version
  std::vector<Plain> plain;
  std::vector<EntrySerial> contributed;  // of the round under way
};

}  // namespace shoal
