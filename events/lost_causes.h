#pragma once
// Causes of a `lost` line that is not of a session's end.
#include <string_view>

namespace shoal {

// Its gradient came later than [optimizer] delay_max allows, so its peer added it to no window.
inline constexpr std::string_view kLostLate = "too late";

// The run's end leaves it without a round (docs/PROTOCOL.md, the end of a run); its holder may live on until END
// reaches it. In order: what the last rounds did not take in.
inline constexpr std::string_view kLostAtEnd = "the run ended";
// It was given up because nobody served a stage: no last rounds are made.
inline constexpr std::string_view kLostWithoutStage = "the run ended without a stage";

constexpr bool is_lost_by_end(std::string_view cause) { return cause == kLostAtEnd || cause == kLostWithoutStage; }

}  // namespace shoal
