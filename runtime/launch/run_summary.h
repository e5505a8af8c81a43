#pragma once
// What a run comes to, and how that is said at its end. Pure; thread-safe.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "metrics/launch_figures.h"

namespace shoal {

struct RunConfig;

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

// Rounds of a stage in which a peer was the last to agree, and for how long together the others had done so.
struct PeerWaits {
  std::uint64_t peer_tag = 0;
  StageId stage;
  std::uint64_t rounds = 0;
  double seconds = 0;
};

struct RunSummary : LaunchFigures {
  std::vector<Version> validation_versions;  // of the anchors that validation_loss is of, one a stage
  std::vector<PeerShare> shares;             // of the whole run
  std::vector<PeerLoss> losses;
  std::vector<PeerWaits> waits;  // in this life of the process
  // Passes that failed, by stage and cause, in this life of the process.
  std::map<std::pair<StageId, std::string>, std::uint64_t> refusals;
  std::string reason;
};

// `over`: the run is; else it stands before its end. At most 71 columns each, but for the reason's and those of many
// stages.
std::vector<std::string> summary_lines(const RunSummary& summary, bool over);
// The text of the object of `launch --json` and of the run folder's summary.json (docs/CLI.md). `saved`: the folder of
// --save; empty: nothing was saved.
std::string summary_json(const RunSummary& run, const RunConfig& config, bool interrupted, const std::string& saved);

}  // namespace shoal
