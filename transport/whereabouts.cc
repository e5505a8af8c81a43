#include "transport/whereabouts.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "common/host_port.h"
#include "transport/limits.h"

namespace shoal {
namespace {

enum class Range { kPublic, kPrivate, kLink, kLoopback };  // who is in one reaches those before it
struct Host {
  std::string bytes;  // of an IP address, IPv4 as 4 of them; else the name
  Range range = Range::kPublic;
};

Range range_of_v4(const unsigned char* b) {
  if (b[0] == 127 || b[0] == 0) return Range::kLoopback;
  if (b[0] == 169 && b[1] == 254) return Range::kLink;
  const bool is_private = b[0] == 10 || (b[0] == 172 && (b[1] & 0xf0) == 16) || (b[0] == 192 && b[1] == 168) ||
                          (b[0] == 100 && (b[1] & 0xc0) == 64);  // the last: RFC 6598, behind a provider's NAT
  return is_private ? Range::kPrivate : Range::kPublic;
}

Host host_of(const std::string& text) {
  in_addr four = {};
  in6_addr six = {};
  const auto* b = reinterpret_cast<const unsigned char*>(&four);
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return {{b, b + 4}, range_of_v4(b)};
  if (::inet_pton(AF_INET6, text.c_str(), &six) != 1) return {text, Range::kPublic};
  b = six.s6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return {{b + 12, b + 16}, range_of_v4(b + 12)};
  const std::string bytes(b, b + 16);
  if (IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six)) return {bytes, Range::kLoopback};
  if (IN6_IS_ADDR_LINKLOCAL(&six)) return {bytes, Range::kLink};
  return {bytes, (b[0] & 0xfe) == 0xfc ? Range::kPrivate : Range::kPublic};
}

constexpr std::string_view kVia = "via/";
bool leads_over_relay(const std::string& address) { return address.starts_with(kVia); }

Host dialled_host(const std::string& address) {
  const auto parsed = parse_dial_address(address);
  return host_of(parsed.ok() ? parsed->control.host : address.substr(0, address.rfind(':')));
}

}  // namespace

std::string_view name_of(Reach reach) {
  constexpr std::string_view kNames[] = {"none", "local", "direct"};
  return kNames[static_cast<std::size_t>(reach)];
}

Whereabouts dialable_for(const Whereabouts& told, const DialOrigin& origin) {
  const Whereabouts whereabouts = without_relays(told);
  const Host from = host_of(origin.host);
  Whereabouts dialable;
  for (const std::string& address : whereabouts.addresses) {
    const Host to = dialled_host(address);
    const bool same = !origin.host.empty() && to.bytes == from.bytes;
    const bool in_reach = to.range == Range::kPublic || (!origin.host.empty() && to.range <= from.range);
    if (same || (origin.paid && in_reach)) dialable.addresses.push_back(address);
  }
  if (origin.host.empty() || from.range > Range::kPrivate) return dialable;
  for (const std::string& address : whereabouts.addresses) {  // a router may forward the port
    auto parsed = parse_dial_address(address);
    if (!parsed.ok()) continue;
    parsed->control.host = plain_host(origin.host);
    const std::string here = parsed->text();
    const bool known =
        std::find(dialable.addresses.begin(), dialable.addresses.end(), here) != dialable.addresses.end();
    if (!known && dialable.addresses.size() < limits::kAddressesMax) dialable.addresses.push_back(here);
  }
  return dialable;
}

bool is_private_host(const std::string& host) { return host_of(host).range != Range::kPublic; }

bool is_private_address(const std::string& address) { return dialled_host(address).range != Range::kPublic; }

Reach reach_at(const Whereabouts& whereabouts) {
  Reach reach = Reach::kNone;
  for (const std::string& address : whereabouts.addresses)
    if (!leads_over_relay(address))
      reach = std::max(reach, dialled_host(address).range == Range::kPublic ? Reach::kDirect : Reach::kLocal);
  return reach;
}

Whereabouts dialable_from(const Whereabouts& told, const Whereabouts& theirs) {
  const Whereabouts own = without_relays(told);
  Whereabouts near, far;
  near.reach = theirs.reach;
  near.homes = theirs.homes;
  const bool one_network = theirs.reach == Reach::kDirect && reach_at(theirs) == Reach::kLocal;
  for (const std::string& address : without_relays(theirs).addresses) {
    const Host to = dialled_host(address);
    const bool beside = to.range != Range::kPublic &&
                        std::any_of(own.addresses.begin(), own.addresses.end(), [&](const std::string& ours) {
                          const std::string here = dialled_host(ours).bytes;
                          const std::size_t prefix = here.size() == 4 ? 3 : 8;
                          return here.size() == to.bytes.size() && here.compare(0, prefix, to.bytes, 0, prefix) == 0;
                        });
    if (beside || one_network)
      near.addresses.push_back(address);
    else if (to.range == Range::kPublic)
      far.addresses.push_back(address);
  }
  near.addresses.insert(near.addresses.end(), far.addresses.begin(), far.addresses.end());
  return near;
}

std::vector<std::string> homes_of(const PeerId& peer, const std::vector<std::string>& relays) {
  std::vector<std::pair<std::uint64_t, std::string>> ranked;
  for (const std::string& relay : relays) {
    std::uint64_t rank = mix64(std::hash<PeerId>{}(peer));
    for (const char c : relay) rank = mix64(rank, static_cast<unsigned char>(c));
    ranked.emplace_back(rank, relay);
  }
  std::ranges::sort(ranked, std::greater{});
  if (ranked.size() > limits::kHomesMax) ranked.resize(limits::kHomesMax);
  std::vector<std::string> homes;
  for (auto& [rank, relay] : ranked) homes.push_back(std::move(relay));
  return homes;
}

std::string plain_host(const std::string& host) {
  const std::string bytes = host_of(host).bytes;
  if (bytes == host) return host;  // a name
  char text[INET6_ADDRSTRLEN] = {};
  return ::inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof(text)) ? text : host;
}

Whereabouts usable(Whereabouts whereabouts) {
  auto& addresses = whereabouts.addresses;
  std::erase_if(addresses, [](const std::string& address) {
    return address.empty() || address.size() > limits::kAddressBytesMax;
  });
  if (addresses.size() > limits::kAddressesMax) addresses.resize(limits::kAddressesMax);
  return whereabouts;
}

Whereabouts without_relays(Whereabouts whereabouts) {
  std::erase_if(whereabouts.addresses, leads_over_relay);
  return whereabouts;
}

Whereabouts relays_as_homes(Whereabouts whereabouts) {
  for (const std::string& address : whereabouts.addresses)
    if (leads_over_relay(address)) whereabouts.homes.push_back(address.substr(kVia.size()));
  return without_relays(std::move(whereabouts));
}

}  // namespace shoal
