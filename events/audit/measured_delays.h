#pragma once
// How late the gradients of an audited run were, as the file that `shoal solo --delay-profile` replays. Pure.
#include "events/audit/audit.h"
#include "events/delay_profile.h"

namespace shoal {

// Every stage's delays of its windows; where no stage has any (allreduce), those of its rounds. The inner batch is
// the mean over the lines that carry delays. The verdict does not matter: a delay is what its peer measured.
// ERRORS: kMissing (a stage without a line that carries delays; it is named, with the remedy), kTooLarge (more stages
// or targets than a profile may have).
Result<DelayProfile> measured_delays(const AuditReport& report);

}  // namespace shoal
