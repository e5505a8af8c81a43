#pragma once
// What a run comes to, and how that is said at its end. Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace shoal {

// What a peer (Session::peer_tag, over all its sessions) has in a stage's anchor.
struct PeerShare {
  std::uint64_t peer_tag = 0;
  StageId stage;
  std::uint64_t microbatches = 0;
};
// (microbatch, stage) pairs that were lost with a peer, for one cause.
struct PeerLoss {
  std::uint64_t peer_tag = 0;
  StageId stage;
  std::string cause;
  std::uint64_t pairs = 0;
};

struct RunSummary {
  std::uint64_t issued = 0, committed = 0, unfinished = 0, lost = 0, acks_gone = 0, rounds = 0, rounds_abandoned = 0;
  std::uint64_t taken_back = 0;   // secured by rounds that a stage went back from, as (microbatch, stage) pairs
  std::uint64_t faults = 0;       // sessions that were over without having left, of the whole run
  std::uint64_t asked_again = 0;  // stage 0: peers beyond each microbatch's first; mostly those before were busy
  std::uint64_t run_targets = 0;
  // At most so many microbatches, and targets of them, can be lost with one peer: what the trainer may have in flight
  // above its low-water mark.
  std::uint64_t loss_bound_microbatches = 0, loss_bound_targets = 0;
  double full_in_flight_share = 0;  // of run_targets: committed when [pipeline] in_flight_ramp held nothing back
  std::optional<double> validation_loss;
  std::vector<Version> validation_versions;  // of the anchors that it is of, one a stage
  std::optional<double> delay{};             // mean of the latest stage's gradients at the last look, in inner steps
  std::vector<PeerShare> shares;             // of the whole run
  std::vector<PeerLoss> losses;
  std::string reason;
};

// `over`: the run is; else it stands before its end. At most 71 columns each, but for the reason's and those of many
// stages.
std::vector<std::string> summary_lines(const RunSummary& summary, bool over, Duration elapsed);

}  // namespace shoal
