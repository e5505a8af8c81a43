#pragma once
// Whether a stage may answer a Forward of kind evaluate: what is validated at a run's end must be one model, so the
// holder names the anchor of every stage (Forward.versions). An estimate while the run trains names none, since anchors
// move under it: each stage answers at the one that it has. Pure; thread-safe.
#include <optional>

#include "stages/stage_spec.h"
#include "transport/messages_hop.h"

namespace shoal {

// Why not, with the anchor of `here`; none: it may, or the Forward trains. The anchor moves with rounds alone, and none
// is opened while a run is validated, so one that fits at the Forward's arrival fits when the device gets there.
std::optional<BusyReason> evaluation_refused(const Forward& message, const StageSpec& spec, Version here);

}  // namespace shoal
