#pragma once
// Where a process can be dialled: one value in Hello, in a join request, on the member list and in the directory's
// records. The transport alone looks inside; all others hand it on whole.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"

namespace shoal {

// How the authority reached a member when it dialled it (runtime/launch/dial_back.h).
enum class Reach : std::uint8_t {
  kNone = 0,   // nowhere: it takes part over links that it dials itself
  kLocal = 1,  // at private addresses alone, which its neighbours dial
  kDirect = 2,
};
std::string_view name_of(Reach reach);  // "none", "local", "direct"

struct Whereabouts {
  std::vector<std::string> addresses;  // as parse_dial_address() reads them, best first

  Reach reach = Reach::kDirect;  // on the member list; of what a process says of itself, nothing
  // Relays of the run that it is called at ("host:port"), as homes_of() has them: in no message.
  std::vector<std::string> homes{};

  bool dialable() const { return !addresses.empty(); }
  bool reachable() const { return dialable() || !homes.empty(); }
  bool operator==(const Whereabouts&) const = default;
};

// What is kept of what a stranger tells: no address that is empty or long, and not many.
Whereabouts usable(Whereabouts whereabouts);
// Without "via/...": which relays a process is called at, a ticket, the run's own process or its signed list says.
Whereabouts without_relays(Whereabouts whereabouts);
// Its "via/..." as homes.
Whereabouts relays_as_homes(Whereabouts whereabouts);

// What a member sends as frames of its ReachQuery before another host than the one it comes from is dialled for
// it: more than all that it can have us send there, so that nobody turns us against a third one at a profit.
inline constexpr std::size_t kDialPaymentBytes = 32u << 10;

// From where the request to dial came.
struct DialOrigin {
  std::string host;   // Wire::other_host; empty: not known
  bool paid = false;  // kDialPaymentBytes came with the request
};
// What of it may be dialled for a peer that came from there: its own host, the ports that it tells with it; elsewhere
// only once it paid, in private ranges only when it came from one, on this machine and this link (loopback, link-local)
// only when it came from there.
Whereabouts dialable_for(const Whereabouts& whereabouts, const DialOrigin& origin);

// The reach of a peer that answered at all of these.
Reach reach_at(const Whereabouts& whereabouts);
// In a private range, on this machine or this link; a name is none.
bool is_private_host(const std::string& host);
bool is_private_address(const std::string& address);  // its host is; of one over a relay, the relay's
// What of a member's is dialled by a process that told these addresses of itself: private ones only in a subnet of
// its own (/24, /64), and first. All of them where the authority calls a member direct that has no others: then the
// whole run is within one private network. Its homes as they are, for these come from the list.
Whereabouts dialable_from(const Whereabouts& told, const Whereabouts& theirs);

// The relays at which a peer that cannot be dialled is called, of those of the run: the same for all who have the list,
// kHomesMax at most, and few peers change theirs where one relay comes or goes (rendezvous hashing, Thaler and
// Ravishankar 1998).
std::vector<std::string> homes_of(const PeerId& peer, const std::vector<std::string>& relays);

// As one text whatever it was written as: an IPv4 address in IPv6's clothes as IPv4, IPv6 in its shortest form.
std::string plain_host(const std::string& host);

}  // namespace shoal
