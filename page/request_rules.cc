#include "page/request_rules.h"

#include <algorithm>

namespace shoal {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

std::vector<std::string_view> values_of(const PageRequest& request, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : request.headers)
    if (same_letters(key, name)) values.push_back(value);
  return values;
}

bool is_ours(std::string_view host, std::uint16_t port) {
  const std::string end = ":" + std::to_string(port);
  for (const std::string_view name : {"localhost", "127.0.0.1", "[::1]"})
    if (same_letters(host, std::string(name) + end)) return true;
  return false;
}

bool brings_a_body(const PageRequest& request) {
  if (!values_of(request, "Transfer-Encoding").empty()) return true;
  for (const std::string_view length : values_of(request, "Content-Length"))
    if (length != "0") return true;
  return false;
}

}  // namespace

RequestVerdict judge(const PageRequest& request, std::uint16_t port) {
  if (request.header_bytes > kHeaderBytesMax) return {431, "the header is too long"};
  if (request.method != "GET" && request.method != "HEAD") return {405, "GET and HEAD alone are answered"};
  const auto hosts = values_of(request, "Host");
  if (hosts.size() != 1) return {400, "one Host is wanted"};
  // A name that somebody bound to 127.0.0.1 is no name of ours.
  if (!is_ours(hosts.front(), port)) return {421, "this is not the host that was asked for"};
  if (brings_a_body(request)) return {400, "a body is not read"};
  for (const std::string_view site : values_of(request, "Sec-Fetch-Site"))
    if (site != "same-origin" && site != "none") return {403, "another site asks"};
  for (const std::string_view origin : values_of(request, "Origin"))
    if (!origin.starts_with("http://") || !is_ours(origin.substr(7), port)) return {403, "another origin asks"};
  return {};
}

}  // namespace shoal
