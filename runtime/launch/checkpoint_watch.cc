#include "runtime/launch/checkpoint_watch.h"

#include <algorithm>

#include "events/line_parts.h"

namespace shoal {
namespace {

std::string text_of(const StageStatus& stage, Duration age) {
  const std::string name = "stage " + std::to_string(stage.stage.value);
  constexpr const char* kHint =
      ". HINT: the logs of its peers say why none is written: a full disk, a folder that is gone, or --no-checkpoints";
  if (!stage.on_disk)
    return "no peer of " + name + " has a checkpoint of it on its disk after " + span_text(age) +
           ": with all of them its state would be lost" + kHint;
  return "the newest checkpoint of " + name + " on a disk is version " + std::to_string(stage.on_disk->version.value) +
         ", " + span_text(age) + " and " + std::to_string(stage.version.value - stage.on_disk->version.value) +
         " rounds old: with all its peers these would be lost" + kHint;
}

}  // namespace

std::vector<std::string> CheckpointWatch::take(const std::vector<StageStatus>& stages, const RunConfig& config,
                                               TimePoint now) {
  std::vector<std::string> said;
  late_.reset();
  const Duration every = from_seconds(config.checkpoint.every_s);
  if (every == Duration(0)) return said;
  for (const StageStatus& status : stages) {
    if (stages_.size() <= status.stage.value) stages_.resize(status.stage.value + std::size_t{1});
    Stage& stage = stages_[status.stage.value];
    if (!status.secured || status.members == 0) {
      stage = {};
      continue;
    }
    if (!stage.secured_at) stage.secured_at = now;
    const Duration age =
        status.on_disk ? Duration(std::chrono::seconds(status.on_disk->age_s)) : now - *stage.secured_at;
    const bool newer = !status.on_disk || status.on_disk->version < status.version;
    const bool is_late = newer && age > kTimesLate * every;
    if (is_late) late_ = std::max(late_.value_or(age), age);
    if (is_late && !stage.said) said.push_back(text_of(status, age));
    stage.said = is_late;
  }
  return said;
}

}  // namespace shoal
