#pragma once
// Whether a stage may answer a Forward of kind evaluate: what is evaluated must be one model, so the holder names the
// anchor of every stage (Forward.versions). Pure; thread-safe.
#include <optional>

#include "stages/stage_spec.h"
#include "transport/messages_hop.h"

namespace shoal {

// Why not, with the anchor of `here`; none: it may, or the Forward trains. The anchor moves with rounds alone, and none
// is opened while a run is evaluated, so one that fits at the Forward's arrival fits when the device gets there.
inline std::optional<BusyReason> evaluation_refused(const Forward& message, const StageSpec& spec, Version here) {
  if (message.kind != ForwardKind::kEvaluate) return std::nullopt;
  if (message.versions.size() != spec.stages) return BusyReason::kMalformed;
  const Version wanted = message.versions[spec.stage.value];
  if (here == wanted) return std::nullopt;
  return here < wanted ? BusyReason::kBehind : BusyReason::kAhead;
}

}  // namespace shoal
