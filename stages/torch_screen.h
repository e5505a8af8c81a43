#pragma once
// Float arrays looked at on the threads of the tensor library. Internal to the files that see it.
#include <span>
#include <string_view>

#include "common/ids.h"
#include "common/result.h"
#include "kernels/parallel_for.h"

namespace shoal {

// Pieces of at least this many floats: below it a second thread costs more than it saves.
inline constexpr std::size_t kParallelGrain = std::size_t{1} << 15;

ParallelFor torch_for();

// ERRORS: kNonFinite, by microbatch and role.
Status screen(std::span<const float> values, const MicrobatchId& microbatch, std::string_view role);

}  // namespace shoal
