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

// Where a process is dialled: "host:port", or "host:port+bulk" where a router maps the port of its bulk lane to another
// number than the one that it names itself.
struct DialAddress {
  HostPort control;
  std::uint16_t bulk_port = 0;  // 0: the process names it

  std::string text() const { return control.text() + (bulk_port == 0 ? "" : "+" + std::to_string(bulk_port)); }
};
// ERRORS: kInput (no such text; "via/...", which is kept for the way over a relay and is not dialled).
Result<DialAddress> parse_dial_address(std::string_view address);

}  // namespace shoal
