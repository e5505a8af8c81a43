#include "common/host_port.h"

#include <arpa/inet.h>

#include <charconv>

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
  const auto refuse = [&] {
    return make_error(ErrorCode::kInput,
                      "\"" + std::string(address) + "\" is no address: write host:port, or [IPv6]:port");
  };
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  std::string_view host = address.substr(0, colon);
  const std::string_view port = address.substr(colon + 1);
  HostPort result;
  const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (failure != std::errc() || end != port.data() + port.size()) return refuse();
  if (result.port == 0 && zero == PortZero::kRefused) return refuse();
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!is_v6_literal(std::string(host))) return refuse();
  } else if (!is_host_name(host)) {
    return refuse();
  }
  result.host = host;
  return result;
}

}  // namespace shoal
