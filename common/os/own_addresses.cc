#include "common/os/own_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "common/formatted.h"
#include "common/host_port.h"
#include "common/log.h"
#include "common/os/posix_file.h"

namespace shoal {

namespace {

constexpr std::size_t kAddressesTold = 3;

std::string text_of_socket_address(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* raw = address->sa_family == AF_INET
                        ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                        : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return ::inet_ntop(address->sa_family, raw, text, sizeof text) == nullptr ? "" : text;
}

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }
bool is_any(const std::string& host) { return host == "0.0.0.0" || host == "::" || host == "*"; }

// Our address on the route to `toward`; nothing is sent. ERRORS: kInput (no address, no such host), kUnreachable (no
// route).
Result<std::string> source_toward(const std::string& toward) {
  SHOAL_ASSIGN(const DialAddress dialled, parse_dial_address(toward));
  const HostPort& parsed = dialled.control;
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (const int code = ::getaddrinfo(parsed.host.c_str(), std::to_string(parsed.port).c_str(), &hints, &found);
      code != 0)
    return make_error(ErrorCode::kInput, ::gai_strerror(code));
  std::string source;
  int failure = 0;
  for (const addrinfo* one = found; one != nullptr && source.empty(); one = one->ai_next) {
    const Descriptor probe(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own = {};
    socklen_t size = sizeof own;
    if (probe.get() < 0 || ::connect(probe.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
      failure = errno;
      continue;
    }
    source = text_of_socket_address(reinterpret_cast<sockaddr*>(&own));
  }
  ::freeaddrinfo(found);
  if (source.empty()) return make_error(ErrorCode::kUnreachable, std::string(std::strerror(failure)));
  return source;
}

// The same for several: each of our addresses once. A contact on loopback is ours alone, so its side comes last.
std::vector<std::string> sources_toward(const std::vector<std::string>& contacts) {
  std::vector<std::string> hosts;
  for (const std::string& contact : contacts) {
    const auto source = source_toward(contact);
    if (source.ok() && std::find(hosts.begin(), hosts.end(), *source) == hosts.end()) hosts.push_back(*source);
  }
  std::stable_partition(hosts.begin(), hosts.end(), [](const std::string& host) { return !is_loopback(host); });
  return hosts;
}

std::vector<std::string> interface_hosts(bool v6) {
  std::vector<std::string> hosts, idle;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return hosts;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family == AF_INET6 &&
        (!v6 || IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr)))
      continue;
    const bool carries = (one->ifa_flags & IFF_RUNNING) != 0;
    if (family == AF_INET || family == AF_INET6)
      (carries ? hosts : idle).push_back(text_of_socket_address(one->ifa_addr));
  }
  ::freeifaddrs(all);
  hosts.insert(hosts.end(), idle.begin(), idle.end());
  return hosts;
}

bool is_v6(const std::string& host) { return host.find(':') != std::string::npos; }

// The host of "host:port", where port may be 0, or of "via/host:port".
std::string host_of(const std::string& address) {
  const std::size_t from = is_via(address) ? 4 : 0;
  std::string host = address.substr(from, address.rfind(':') - from);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

Result<std::string> resolved_address(const std::string& address, bool v6) {
  SHOAL_ASSIGN(const HostPort parsed, parse_host_port(address));
  if (parsed.is_literal()) return parsed.text();
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = v6 ? AF_UNSPEC : AF_INET;
  const int failure = ::getaddrinfo(parsed.host.c_str(), nullptr, &hints, &found);
  const std::string host = failure == 0 ? text_of_socket_address(found->ai_addr) : "";
  if (failure == 0) ::freeaddrinfo(found);
  if (!host.empty()) return HostPort{host, parsed.port}.text();
  return make_error(ErrorCode::kInput, "the name of \"" + address + "\" does not resolve" +
                                           (failure == 0 ? "" : std::string(": ") + ::gai_strerror(failure)) +
                                           ". HINT: is the network up? Else give an IP address");
}

std::string listen_toward(const std::vector<std::string>& toward) {
  const bool v6 =
      std::ranges::any_of(sources_toward(toward), is_v6) || std::ranges::any_of(interface_hosts(true), is_v6);
  return v6 ? "[::]:0" : "0.0.0.0:0";
}

Result<std::vector<std::string>> own_addresses(const std::string& listening, const std::vector<std::string>& advertise,
                                               const std::vector<std::string>& toward) {
  SHOAL_ASSIGN(const HostPort bound, parse_host_port(listening));
  std::vector<std::string> addresses;
  for (const std::string& wanted : advertise) {
    const bool has_port = wanted.ends_with("]") ? false : wanted.find(':') != std::string::npos;
    const std::string whole = has_port ? wanted : wanted + ":" + std::to_string(bound.port);
    SHOAL_ASSIGN(DialAddress told, parse_dial_address(whole));
    SHOAL_ASSIGN(const std::string resolved, resolved_address(told.control.text(), bound.is_v6()));
    if (is_any(host_of(resolved)))
      return make_error(ErrorCode::kInput, "--advertise " + wanted +
                                               ": that is where one listens, and nobody can dial it. HINT: give this "
                                               "machine's address as others see it (ip address)");
    told.control.host = host_of(resolved);
    addresses.push_back(told.text());
  }
  std::vector<std::string> hosts;
  if (addresses.empty()) {
    if (!is_any(bound.host)) hosts = {bound.host};
    if (hosts.empty()) hosts = sources_toward(toward);
    if (hosts.empty()) hosts = interface_hosts(bound.host == "::");
    if (bound.host == "::" && !std::ranges::all_of(hosts, is_loopback) && std::ranges::none_of(hosts, is_v6)) {
      const std::vector<std::string> others = interface_hosts(true);  // a machine may have no other family
      if (const auto one = std::ranges::find_if(others, is_v6); one != others.end()) hosts.push_back(*one);
    }
    if (hosts.empty()) hosts = {"127.0.0.1"};
  }
  for (const std::string& host : hosts) addresses.push_back(HostPort{host, bound.port}.text());
  if (addresses.size() > kAddressesTold) {
    log_warning("others are told ", kAddressesTold, " addresses at most, and not ",
                list_text(std::span(addresses).subspan(kAddressesTold)), ". HINT: --advertise ADDRESS chooses");
    addresses.resize(kAddressesTold);
  }
  return addresses;
}

Status check_routes(const std::vector<std::string>& contacts) {
  if (contacts.empty()) return {};
  std::string failures;
  for (const std::string& contact : contacts) {
    const auto source = source_toward(contact);
    if (source.ok()) return {};
    failures += (failures.empty() ? "" : "; ") + contact + " (" + source.error().message + ")";
  }
  return make_error(ErrorCode::kUnreachable, "this machine has no route to " + failures +
                                                 ". HINT: is its network up? `ip route` shows where it can send");
}

bool all_loopback(const std::vector<std::string>& addresses) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [](const std::string& address) { return is_loopback(host_of(address)); });
}

}  // namespace shoal
