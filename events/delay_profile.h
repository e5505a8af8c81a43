#pragma once
// How late the gradients of a swarm were, as a file: made by `shoal audit --delay-profile` from a run's event files,
// replayed by `shoal solo --delay-profile` (docs/FILES.md). The delay of a gradient at a stage is the number of inner
// steps that the replica made between the first forward of its microbatch and the step that uses it. Values; pure apart
// from load_delay_profile() and save_delay_profile(); thread-safe.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "events/delay.h"

namespace shoal {

inline constexpr std::size_t kDelayProfileBytesMax = 1u << 20;
inline constexpr std::size_t kDelayStagesMax = 1024;
inline constexpr std::uint64_t kDelayNumberMax = std::uint64_t{1}
                                                 << 53;  // of every number: what JSON readers keep exact

struct DelayProfile {
  std::string rule;                    // of the outer rounds, "allreduce" or "diloco"; empty: nobody knows
  std::uint64_t replicas = 0;          // the most that took part in a stage's round; 0: nobody knows
  std::uint64_t inner_batch = 0;       // targets of one replica's inner step, the mean; 0: nobody knows
  std::uint64_t tokens = 0;            // targets that the run committed
  std::vector<DelayHistogram> stages;  // from stage 0; counts of targets, by delay in inner steps
  bool operator==(const DelayProfile&) const = default;
};

// Strict: every key must be there, and no other. Counts beyond what DelayHistogram tells apart are refused, and so are
// a stage without a single target and totals above kDelayNumberMax. `origin` names the file in messages. ERRORS:
// kTooLarge (more than kDelayProfileBytesMax), kInput; all name the file, the key and the remedy.
Result<DelayProfile> parse_delay_profile(std::string_view text, const std::string& origin);
// ERRORS: also kMissing, kIo.
Result<DelayProfile> load_delay_profile(const std::string& path);

// One object, schema "shoal.delay/1"; trailing zeros of the counts are left out. REQUIRES: what the reader requires.
std::string delay_profile_text(const DelayProfile& profile);
// In one piece (replace_file). ERRORS: kOutput, kIo.
Status save_delay_profile(const std::string& path, const DelayProfile& profile);

// The largest delay that was ever counted; 0 for an empty histogram.
std::uint64_t largest_delay(const DelayHistogram& delays);

// The delay at a share of the targets: the smallest d for which more than `share` / 2^64 of them have a delay of at
// most d. With `share` uniform over 64 bits the delays are distributed as the histogram says. One share for all stages
// makes a microbatch that is late at one stage late at all of them, since the result never falls when the share rises.
// REQUIRES: a total above 0.
std::uint64_t delay_at(const DelayHistogram& delays, std::uint64_t share);

}  // namespace shoal
