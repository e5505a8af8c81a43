#pragma once
// What a demo ends with: the table for people, the object for machines, and what makes it fail. Pure; thread-safe.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/rule_id.h"
#include "demo/figures.h"
#include "demo/processor_watch.h"
#include "events/audit/audit.h"

namespace shoal {

struct DemoFault {
  std::string kind;  // "kill", "freeze"
  std::uint16_t stage = 0;
  double at_s = 0;                      // since the first commit
  std::optional<double> recovered_s{};  // figures.h, recovered_after()
  std::optional<FaultCost> cost{};      // until the next fault at most
  BusySpan busy{};                      // from the signal to the end of the training
};

// The same training in one process.
struct SoloFigures {
  double loss_start = 0, loss_end = 0, val_loss = 0, unigram = 0, bigram = 0, tokens_per_s = 0;
};

struct DemoResult {
  RuleId rule = RuleId::kDiloco;
  double seconds = 0;    // of the swarm's part, as asked for
  double trained_s = 0;  // as it was: longer where kLossJudgedTokens took longer
  double total_s = 0;    // of the whole demo
  bool chaos = true;
  double loss_start = 0, loss_end = 0;  // nats a byte, as all losses here
  std::optional<double> val_loss;
  SoloFigures solo;
  std::uint64_t tokens = 0;
  double tokens_per_s = 0;             // while no fault is
  double bytes_per_token = 0;          // what shoal's processes handed to TCP over committed tokens
  double codec_ratio = 0;              // fp32 bytes over encoded bytes of activations and gradients
  std::uint64_t deltas = 0, keys = 0;  // activations sent as differences to a base, and as key frames
  AuditReport audit;
  std::map<std::string, std::uint64_t> lost_by_peer;
  std::uint64_t session_faults = 0;  // sessions that were over without having left: the faults of the train line
  std::uint64_t loss_bound_microbatches = 0;  // at most so many can be lost with one session
  std::vector<DemoFault> faults;
  std::optional<double> rejoined_s{};           // from the start of the killed peer's new process until it serves
  BusySpan rejoin_busy{};                       // from that start to the end of the training
  BusySpan busy{};                              // of the whole training
  std::vector<std::string> process_failures{};  // processes that ended otherwise than they should
};

// A shorter run is not judged by its loss, and the table says so. A longer one goes on until so many tokens are
// committed: before them a model has seen too little for the bound that the text's entropy sets. A machine that does
// not get there in kTrainedSecondsMax is not judged by that bound.
inline constexpr double kLossJudgedFromSeconds = 60;
inline constexpr std::uint64_t kLossJudgedTokens = 1'200'000;
inline constexpr double kTrainedSecondsMax = 600;
// From here on, without faults, the bounds are those of the long runs.
inline constexpr double kLongRunSeconds = 300;

// The bound on validation over solo's that applies to this run.
double validation_bound(const DemoResult& result);
// Which promises are broken, one sentence each; empty: none.
std::vector<std::string> demo_failures(const DemoResult& result);
// What nobody can tell, because other processes had the machine while the swarm was to recover: no failure, no pass.
std::vector<std::string> demo_doubts(const DemoResult& result);

std::string demo_table(const DemoResult& result);
std::string demo_json(const DemoResult& result);  // one object

}  // namespace shoal
