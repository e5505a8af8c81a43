#pragma once
// What shoal-rogue does without being a member: connections that never greet, and claims in the DHT. Neither returns
// when it worked: the process ends without a word after `seconds`.
#include <cstddef>

#include "common/result.h"
#include "runtime/config/ticket.h"

namespace shoal {

// So many connections to the launching process that complete the key exchange, made anew when they are cut. Prints
// "begun" with the first. ERRORS: kInput (a contact that cannot be dialled), those of the sockets.
Status keep_silent(const Ticket& ticket, double seconds, std::size_t connections);

// Puts a record of each of `identities` keys, which all say that they serve stage 0 or 1, and makes them anew. Prints
// "begun" with the first. ERRORS: kMissing (no shoal-dht beside this program).
Status claim_places(const Ticket& ticket, double seconds, std::size_t identities);

}  // namespace shoal
