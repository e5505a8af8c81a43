#pragma once
// "host:port" taken apart. Pure; thread: any.
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

}  // namespace shoal
