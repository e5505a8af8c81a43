#pragma once
// The same run in one process, without network: the honest baseline. Same samples in the same order, the same split (so
// that clipping goes by each stage's norm), the batch that the expected replicas of a stage would make together, the
// same schedule by tokens. A step's learning rate is taken at the tokens committed with it, as a STEP or a closing
// window of the swarm does.
//
// With a delay profile it trains as a swarm would whose gradients are as late (delayed_weights.h). From the swarm's
// windows only their size is replayed: rounds and the outer rule are not.
//
// With `replicas` as many of them as [pipeline] replicas says are trained in turn, microbatch by microbatch, and agree
// by the run's rounds (replica_rounds.h): what the rule costs, without lateness, links and losses. What is judged and
// saved is then the anchor.
//
// With `wire` the stages send each other frames, as peers do (coded_edges.h). What is evaluated stays the model that is
// saved: validation crosses as it is, as a swarm's does.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "events/delay_profile.h"
#include "events/event_log.h"
#include "events/headway.h"
#include "events/train_line.h"
#include "runtime/config/config.h"
#include "runtime/data/entropy.h"
#include "runtime/solo/stage_chain.h"

namespace shoal {

struct SoloOptions {
  RunConfig config;
  ExecutorFactory factory;
  std::string save_folder;                        // empty: not saved
  std::optional<DelayProfile> delays;             // of the swarm whose late gradients are replayed; none: none is late
  bool replicas = false;                          // those of the run, in turn, with its rounds between them
  bool wire = false;                              // what crosses between stages goes through the codecs of [wire]
  EventLog* events = nullptr;                     // borrowed; null: none
  std::function<void(const TrainLine&)> on_step;  // after every global step
  std::function<void(const std::string&)> on_note;  // progress that is no step
  std::function<void(const Headway&)> on_headway;   // of the validation: after each sample
  std::function<bool()> stop;                       // asked between microbatches: ends the run in order
};

struct SoloResult {
  LossCurve losses;
  double validation_loss = 0;
  std::uint64_t validation_targets = 0;
  std::uint64_t tokens = 0, steps = 0;
  double train_seconds = 0, tokens_per_s = 0;  // training only
  TextEntropy entropy;                         // of all the training files, what is held out of them too
  int bytes_a_token = 1;                       // of the file
  bool interrupted = false;
  std::vector<DelayHistogram> delays;         // targets by delay, each stage; empty without SoloOptions::delays
  std::uint64_t rounds = 0, round_bytes = 0;  // what all replicas would have sent; 0 without SoloOptions::replicas
  std::optional<EdgeTraffic> traffic;         // none without SoloOptions::wire
};

// ERRORS: TokenFile's, Samples', the factory's, the executors', DelayedWeights', CodedEdges', kIo.
Result<SoloResult> run_solo(const SoloOptions& options);

std::string solo_json(const SoloResult& result);  // one object, schema "shoal.solo/1"

}  // namespace shoal
