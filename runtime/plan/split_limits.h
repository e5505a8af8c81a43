#pragma once
// Whether the stages of a run fit what two replicas may send each other: a round's part is one transfer
// (limits::kTransferBytesMax), a stage's state one image (kStateImageBytesMax). Pure; thread-safe.
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "runtime/config/config.h"

namespace shoal {

// fp32 parameters: what a member brings to a round, by stage. REQUIRES: the split was checked.
std::vector<std::uint64_t> payload_bytes(const RunConfig& config);

// By the replicas that are expected. ERRORS: kInput (a part or a state image is too large; with the figures and the
// remedy).
Status check_split_limits(const RunConfig& config);

// What happens to stages that come down to fewer replicas than that. Empty: two of any stage can make a round.
std::vector<std::string> split_warnings(const RunConfig& config);

}  // namespace shoal
