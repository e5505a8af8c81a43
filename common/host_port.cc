#include "common/host_port.h"

#include <arpa/inet.h>

#include <charconv>
#include <optional>

namespace shoal {
namespace {

bool is_v4_literal(const std::string& host) {
  in_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}
bool is_v6_literal(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// None: not of digits alone, or above 65535.
std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  return failure == std::errc() && end == text.data() + text.size() ? std::optional(port) : std::nullopt;
}

Error no_address(std::string_view text) {
  return make_error(ErrorCode::kInput, "\"" + std::string(text) + "\" is no address: write host:port, or [IPv6]:port");
}

}  // namespace

bool HostPort::is_literal() const { return is_v4_literal(host) || is_v6_literal(host); }

std::string HostPort::text() const { return (is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(port); }

bool is_host_name(std::string_view host) {
  for (const char c : host) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
    if (!plain) return false;
  }
  return !host.empty() && host.size() <= 253;
}

Result<HostPort> parse_host_port(std::string_view address, PortZero zero) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return no_address(address);
  std::string_view host = address.substr(0, colon);
  const std::optional<std::uint16_t> port = port_of(address.substr(colon + 1));
  if (!port || (*port == 0 && zero == PortZero::kRefused)) return no_address(address);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!is_v6_literal(std::string(host))) return no_address(address);
  } else if (!is_host_name(host)) {
    return no_address(address);
  }
  return HostPort{std::string(host), *port};
}

Result<DialAddress> parse_dial_address(std::string_view address) {
  DialAddress result;
  if (is_via(address)) {
    result.via = true;
    SHOAL_ASSIGN(result.control, parse_host_port(address.substr(4)));
    return result;
  }
  const std::size_t plus = address.rfind('+');
  SHOAL_ASSIGN(result.control, parse_host_port(address.substr(0, plus)));
  if (plus == std::string_view::npos) return result;
  result.bulk_port = port_of(address.substr(plus + 1)).value_or(0);
  return result.bulk_port != 0 ? Result<DialAddress>(result) : no_address(address);
}

}  // namespace shoal
