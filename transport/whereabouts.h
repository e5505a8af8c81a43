#pragma once
// Where a process can be dialled: one value in Hello, in a join request, on the member list and in the directory's
// records. The transport alone looks inside; all others hand it on whole.
#include <string>
#include <vector>

namespace shoal {

struct Whereabouts {
  std::vector<std::string> addresses;  // as parse_dial_address() reads them, best first

  bool dialable() const { return !addresses.empty(); }
  bool operator==(const Whereabouts&) const = default;
};

// What is kept of what a stranger tells: no address that is empty or long, and not many.
Whereabouts usable(Whereabouts whereabouts);

// What a stranger sends as frames of its JoinRequest before another address than the one it comes from is dialled for
// it: more than all that it can have us send there, so that nobody turns us against a third one at a profit.
inline constexpr std::size_t kDialPaymentBytes = 32u << 10;

// From where the request to dial came.
struct DialOrigin {
  std::string host;   // Wire::other_host; empty: not known
  bool paid = false;  // kDialPaymentBytes came with the request
};
// What of it may be dialled for a joiner that came from there: its own host; elsewhere only once it paid, in private
// ranges only when it came from one, on this machine and this link (loopback, link-local) only when it came from there.
Whereabouts dialable_for(const Whereabouts& whereabouts, const DialOrigin& origin);

// As one text whatever it was written as: an IPv4 address in IPv6's clothes as IPv4, IPv6 in its shortest form.
std::string plain_host(const std::string& host);

}  // namespace shoal
