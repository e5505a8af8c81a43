#pragma once
// What its owner calls a peer, for people: it proves nothing, and two may have the same. Pure; thread-safe.
#include <cstddef>
#include <string_view>

#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kPeerNameBytesMax = 32;

// Nothing is a name, too: of a peer that gave none. ERRORS: kInput (longer, a character that is neither a letter or
// digit of ASCII nor one of " ._-'@+", or a blank at an end).
Status check_peer_name(std::string_view name);

}  // namespace shoal
