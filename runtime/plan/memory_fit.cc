#include "runtime/plan/memory_fit.h"

#include <algorithm>
#include <string>

#include "runtime/plan/stage_memory.h"

namespace shoal {

Result<std::size_t> credits_that_fit(std::uint64_t free_bytes, std::size_t credits, const RunConfig& config,
                                     const StageSpec& spec) {
  const auto mebibytes = [](std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  for (std::size_t fewer = credits; fewer > kCreditsLeast; --fewer)
    if (process_bytes(config, spec, fewer) <= free_bytes) return fewer;
  const std::uint64_t least = process_bytes(config, spec, kCreditsLeast);
  if (least <= free_bytes) return std::min(credits, kCreditsLeast);
  return make_error(ErrorCode::kTooLarge,
                    "stage " + std::to_string(spec.stage.value) + " needs about " + mebibytes(least) +
                        " of memory, and this machine has " + mebibytes(free_bytes) +
                        " left for it now. HINT: end other programs, raise this container's limit, or lend a larger "
                        "machine; a run with more [pipeline] stages has smaller ones. --memory MIB takes your word");
}

}  // namespace shoal
