#include "runtime/stage_peer/evaluation.h"

namespace shoal {

std::optional<BusyReason> evaluation_refused(const Forward& message, const StageSpec& spec, Version here) {
  if (message.kind != ForwardKind::kEvaluate) return std::nullopt;
  if (message.versions.empty()) return std::nullopt;
  if (message.versions.size() != spec.stages) return BusyReason::kMalformed;
  const Version wanted = message.versions[spec.stage.value];
  if (here == wanted) return std::nullopt;
  return here < wanted ? BusyReason::kBehind : BusyReason::kAhead;
}

}  // namespace shoal
