#pragma once
// Causes of a `lost` line when not a session's end, but the run's, leaves it without a round (docs/PROTOCOL.md, the end
// of a run). Its holder may live on until END reaches it.
#include <string_view>

namespace shoal {

// The run ended in order: what the last rounds did not take in.
inline constexpr std::string_view kLostAtEnd = "the run ended";
// It was given up because nobody served a stage: no last rounds are made.
inline constexpr std::string_view kLostWithoutStage = "the run ended without a stage";

constexpr bool is_lost_by_end(std::string_view cause) { return cause == kLostAtEnd || cause == kLostWithoutStage; }

}  // namespace shoal
