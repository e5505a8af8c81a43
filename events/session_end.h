#pragma once
// Why a session of a peer was over, as the authority's reason begins (authority/authority.h; the cause of
// `session_over`).
#include <string_view>

namespace shoal {

// It left by itself.
inline constexpr std::string_view kLeft = "left";

// It died, froze, hung, was cut off, or did what a member must not: nobody asked it to go.
constexpr bool is_fault(std::string_view why) {
  return why != kLeft && !why.starts_with("left without");  // "left out" of rounds is one
}

}  // namespace shoal
