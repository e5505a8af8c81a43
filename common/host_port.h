#pragma once
// "host:port" taken apart, and where a process is dialled. Pure; thread: any.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace shoal {

struct HostPort {
  std::string host;  // a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;

  bool is_v6() const { return host.find(':') != std::string::npos; }
  // An IP address: nobody has to be asked where that is.
  bool is_literal() const;
  std::string text() const;  // "host:port", "[v6]:port"
};

enum class PortZero { kRefused, kAllowed };  // where one listens, 0 stands for any free port

// ERRORS: kInput (neither "host:port" nor "[v6]:port"; characters that no host has; a port above 65535).
Result<HostPort> parse_host_port(std::string_view address, PortZero zero = PortZero::kRefused);
bool is_host_name(std::string_view host);

// Whether the address leads over a relay, which is no way for anything but links.
inline bool is_via(std::string_view address) { return address.starts_with("via/"); }

// Where a process is dialled: "host:port", or "host:port+bulk" where a router maps the port of its bulk lane to another
// number than the one that it names itself; or "via/host:port", where a relay listens that the process is called at.
struct DialAddress {
  HostPort control;             // via: the relay's
  std::uint16_t bulk_port = 0;  // 0: the process names it
  bool via = false;             // over a relay (transport/relay/relay_words.h), by both lanes

  std::string text() const {
    return (via ? "via/" : "") + control.text() + (bulk_port == 0 ? "" : "+" + std::to_string(bulk_port));
  }
};
// ERRORS: kInput (no such text).
Result<DialAddress> parse_dial_address(std::string_view address);

}  // namespace shoal
