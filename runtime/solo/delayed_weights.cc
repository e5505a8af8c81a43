#include "runtime/solo/delayed_weights.h"

#include <algorithm>
#include <string>

#include "common/check.h"

namespace shoal {
namespace {

constexpr std::uint64_t kDelayStream = 0x64656c6179;  // keeps the draws apart from what else the run's seed decides

}  // namespace

Result<DelayedWeights> DelayedWeights::make(const StageChain& chain, const DelayProfile& profile, std::uint64_t seed,
                                            std::uint64_t bytes_max) {
  const auto& executors = chain.stages();
  if (profile.stages.size() != executors.size())
    return make_error(ErrorCode::kInput,
                      "the delay profile has " + std::to_string(profile.stages.size()) + " stages, the run has " +
                          std::to_string(executors.size()) +
                          ". HINT: replay it with the [pipeline] stages of the run that it was measured in");
  DelayedWeights made(profile, seed);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < executors.size(); ++i) {
    const std::uint64_t largest = largest_delay(profile.stages[i]);
    if (largest > 0) bytes += (largest + 1) * executors[i]->arena().size() * sizeof(float);
  }
  if (bytes > bytes_max)
    return make_error(ErrorCode::kTooLarge,
                      "the delay profile asks for past parameters of " + std::to_string(bytes >> 20) +
                          " MiB, at most " + std::to_string(bytes_max >> 20) +
                          " MiB are kept. HINT: add the few counts of its longest delays to shorter ones, or train a "
                          "smaller model");
  for (std::size_t i = 0; i < executors.size(); ++i) {
    Stage stage;
    stage.executor = executors[i].get();
    const std::uint64_t largest = largest_delay(profile.stages[i]);
    if (largest > 0)
      stage.past.assign(static_cast<std::size_t>(largest) + 1, std::vector<float>(stage.executor->arena().size()));
    stage.keep(0);
    made.stages_.push_back(std::move(stage));
  }
  return made;
}

void DelayedWeights::meet(const MicrobatchId& microbatch, std::uint64_t targets) {
  const std::uint64_t share = mix64(mix64(seed_, kDelayStream), count_tag(microbatch));
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const std::uint64_t delay = std::min(delay_at(delays_[i], share), steps_);
    used_[i].add(delay, targets);
    stages_[i].load(steps_ - delay);
  }
}

void DelayedWeights::to_newest() {
  for (Stage& stage : stages_) stage.load(steps_);
}

void DelayedWeights::stepped() {
  for (Stage& stage : stages_) SHOAL_CHECK_EQ(stage.loaded, steps_);
  ++steps_;
  for (Stage& stage : stages_) stage.keep(steps_);
}

std::uint64_t DelayedWeights::bytes() const {
  std::uint64_t bytes = 0;
  for (const Stage& stage : stages_) bytes += stage.past.size() * stage.executor->arena().size() * sizeof(float);
  return bytes;
}

void DelayedWeights::Stage::keep(std::uint64_t step) {
  loaded = step;
  if (past.empty()) return;
  Arena& arena = executor->arena();
  arena.pull(ArenaRole::kCurrent);
  std::ranges::copy(arena.span(ArenaRole::kCurrent), past[step % past.size()].begin());
}

void DelayedWeights::Stage::load(std::uint64_t step) {
  if (step == loaded) return;
  SHOAL_CHECK(!past.empty());
  Arena& arena = executor->arena();
  std::ranges::copy(past[step % past.size()], arena.span(ArenaRole::kCurrent).begin());
  arena.push(ArenaRole::kCurrent);
  loaded = step;
}

}  // namespace shoal
