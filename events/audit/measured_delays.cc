#include "events/audit/measured_delays.h"

#include <algorithm>

namespace shoal {

Result<DelayProfile> measured_delays(const AuditReport& report) {
  const bool windows = std::any_of(report.stages.begin(), report.stages.end(),
                                   [](const auto& stage) { return stage.second.delays_of_windows.total() > 0; });
  DelayProfile profile;
  profile.rule = windows ? "diloco" : "allreduce";
  std::uint64_t steps = 0, targets = 0;
  const std::size_t stages = report.stages.empty() ? 1 : report.stages.rbegin()->first + std::size_t{1};
  if (stages > kDelayStagesMax)
    return make_error(ErrorCode::kTooLarge, "a delay profile has at most " + std::to_string(kDelayStagesMax) +
                                                " stages, the event files name stage " + std::to_string(stages - 1));
  for (std::size_t i = 0; i < stages; ++i) {
    const auto found = report.stages.find(static_cast<std::uint16_t>(i));
    const StageVerdict stage = found == report.stages.end() ? StageVerdict{} : found->second;
    const DelayHistogram& delays = windows ? stage.delays_of_windows : stage.delays_of_rounds;
    if (delays.total() == 0)
      return make_error(ErrorCode::kMissing,
                        "stage " + std::to_string(i) +
                            ": no line of a peer carries \"delays\". HINT: give the event files of peers that made "
                            "inner steps (join --events), of a shoal that writes delays");
    if (delays.total() > kDelayNumberMax)
      return make_error(ErrorCode::kTooLarge, "stage " + std::to_string(i) + ": the delays are of more than " +
                                                  std::to_string(kDelayNumberMax) +
                                                  " targets, which no run has. HINT: see the audit's verdict");
    profile.stages.push_back(delays);
    profile.replicas = std::max(profile.replicas, stage.members_max);
    steps += windows ? stage.steps_of_windows : stage.steps_of_rounds;
    targets += delays.total();
  }
  profile.inner_batch = targets / steps;
  profile.tokens = std::min(report.committed_targets, kDelayNumberMax);
  return profile;
}

}  // namespace shoal
