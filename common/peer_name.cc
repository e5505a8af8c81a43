#include "common/peer_name.h"

#include <algorithm>
#include <string>

namespace shoal {

Status check_peer_name(std::string_view name) {
  constexpr std::string_view kSigns = " ._-'@+";
  const auto may_stand = [&](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || kSigns.find(c) != std::string_view::npos;
  };
  const bool blank_at_end = !name.empty() && (name.front() == ' ' || name.back() == ' ');
  if (name.size() <= kPeerNameBytesMax && !blank_at_end && std::all_of(name.begin(), name.end(), may_stand)) return {};
  return make_error(ErrorCode::kInput, "a peer's name has at most " + std::to_string(kPeerNameBytesMax) +
                                           " characters, letters and digits of ASCII and any of \"" +
                                           std::string(kSigns.substr(1)) + "\", with blanks between them alone");
}

}  // namespace shoal
