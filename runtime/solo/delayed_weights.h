#pragma once
// Lets one process train as a swarm does whose gradients are late (docs/CLI.md, `solo --delay-profile`). A microbatch
// that step s uses meets, at stage i, the parameters after step s - 1 - d_i: forward and backward both, as in the
// swarm, where backward runs through the graph that forward kept. d_i comes from stage i's histogram. One number per
// microbatch, drawn from the run's seed, is used for all stages, so that a late microbatch is late everywhere. In the
// first steps d_i is no larger than what has been stepped.
//
// Owns, for each stage with a delay above 0, its newest parameters and those of as many steps before as the profile's
// largest delay there. Borrows the chain's executors and writes their kCurrent, through the arena alone: what it puts
// there stands until to_newest(). Stamps, tags, moments and windows are not touched.
//
// Thread: the one that computes.
#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "events/delay_profile.h"
#include "runtime/solo/stage_chain.h"

namespace shoal {

// Beyond it the profile is refused: past parameters are a means of measuring, not a reason to swap.
inline constexpr std::uint64_t kPastBytesMax = std::uint64_t{8} << 30;

class DelayedWeights {
 public:
  // REQUIRES: the executors of `chain` live as long, and nobody else writes their kCurrent between meet() and
  // to_newest(). ERRORS: kInput (the profile has not the chain's number of stages), kTooLarge (beyond `bytes_max`).
  static Result<DelayedWeights> make(const StageChain& chain, const DelayProfile& profile, std::uint64_t seed,
                                     std::uint64_t bytes_max = kPastBytesMax);

  // Puts what the microbatch meets into every stage's kCurrent, and counts its targets by delay.
  void meet(const MicrobatchId& microbatch, std::uint64_t targets);
  // Puts the newest parameters back: before every step, and before the parameters are read.
  void to_newest();
  // Every stage stepped: its kCurrent is the newest now. REQUIRES: to_newest() before the step.
  void stepped();

  std::uint64_t bytes() const;                                       // of all parameters that are kept
  bool late() const { return bytes() > 0; }                          // whether any stage ever is
  const std::vector<DelayHistogram>& used() const { return used_; }  // what meet() counted, by stage

 private:
  struct Stage {
    StageExecutor* executor = nullptr;
    std::vector<std::vector<float>> past;  // the parameters after step v stand at v % past.size(); empty: never late
    std::uint64_t loaded = 0;              // the step whose parameters are in kCurrent
    void keep(std::uint64_t step);
    void load(std::uint64_t step);
  };

  DelayedWeights(const DelayProfile& profile, std::uint64_t seed)
      : delays_(profile.stages), seed_(seed), used_(profile.stages.size()) {}

  std::vector<DelayHistogram> delays_;
  std::uint64_t seed_;
  std::vector<Stage> stages_;
  std::vector<DelayHistogram> used_;
  std::uint64_t steps_ = 0;
};

}  // namespace shoal
