#include "page/page_port.h"

#include <charconv>

#include "common/log.h"

namespace shoal {

Result<PagePort> page_port(std::string_view word) {
  PagePort page;
  if (word.empty()) return page;
  page.or_any = false;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), page.port);
  if (failure != std::errc() || end != word.data() + word.size())
    return make_error(ErrorCode::kInput, "a port is a number from 0 (any) to 65535, and not " + std::string(word));
  return page;
}

std::string option_of(const PagePort& page) { return page.or_any ? "--page" : "--page=" + std::to_string(page.port); }

void add_page_option(Command& command, std::optional<PagePort>& page, const std::string& what) {
  command.add_flag_with_value("--page",
                              what + " on this machine; --page=PORT takes that port, 0 any (default: " +
                                  std::to_string(PagePort().port) + ", or another where that is taken)",
                              [&page](const std::string& value) {
                                const auto port = page_port(value);
                                if (!port.ok()) return port.error().message;
                                page = *port;
                                return std::string();
                              });
}

void tell_page(std::uint16_t port) {
  log_info("page http://127.0.0.1:", port, "/ (on this machine; from another: ssh -L ", port, ":127.0.0.1:", port,
           " HOST)");
}

}  // namespace shoal
