#pragma once
// The invitation to a run: one word that a person can paste. Names the run's key, its DHT network and where its first
// processes listen. No secret: who may join is decided by [admission]. Pure but for contacts_of; thread-safe.
//
// "shoal1:" + base64url of: run key (32 bytes), network id (4, big-endian), number of contacts (1), each contact,
// CRC-32C of all that. Contact: kind (1: 4 = IPv4, 6 = IPv6, 0 = name; + 16 when its PeerId is the run's key and not
// repeated; + 32 when a relay listens there at which it is called), [PeerId (32)], [length of the name (1)], address
// (4, 16 or the name's bytes), port (2, big-endian).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/host_port.h"
#include "common/ids.h"
#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kTicketCharactersMax = 300;
inline constexpr std::size_t kTicketContactsMax = 3;

struct Contact {
  PeerId peer;          // its CURVE key is derived from it (common/crypto/sign.h)
  std::string address;  // "host:port", "[v6]:port", "via/host:port"
  auto operator<=>(const Contact&) const = default;
};

struct Ticket {
  RunId run;
  std::uint32_t network = 0;  // OpenDHT's network id
  std::vector<Contact> contacts;
  auto operator<=>(const Ticket&) const = default;
};

// ERRORS: kInput (no contact, more than three, no such address, one with the port of a bulk lane), kTooLarge (over 300
// characters; take addresses instead of long names).
Result<std::string> pack_ticket(const Ticket& ticket);
// A ticket as it was copied, without what mails and shells put around or into it: quotes, line breaks, the word
// "ticket" of the line that `launch` prints. What is none stays as it is.
std::string bare_ticket(std::string_view text);
// Reads a bare_ticket(). ERRORS: kMalformed (no ticket at all, or cut), kVersion (made by another version),
// kCorrupt (a typo).
Result<Ticket> parse_ticket(std::string_view text);
// Its addresses as IP addresses; a warning for one that does not resolve. Blocks while a name server is asked.
// ERRORS: kInput: none of them does.
Result<std::vector<std::string>> contacts_of(const Ticket& ticket);

}  // namespace shoal
