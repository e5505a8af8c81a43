#pragma once
// Patterns of tokenizer.json are Oniguruma's. PCRE2 reads most of them alike; what the two read differently is written
// anew here, and what has no equal is refused: a pattern that compiles in both and cuts otherwise would go unseen.
#include <string>
#include <string_view>

#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kPatternBytesMax = 16 << 10;

// The pattern for PCRE2 with UTF and UCP. ERRORS: kUnsupported, with what stands in the pattern; kTooLarge.
Result<std::string> pcre2_pattern(std::string_view oniguruma);
// A pattern that finds just this text.
std::string pattern_of_literal(std::string_view text);

}  // namespace shoal
