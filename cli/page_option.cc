#include "cli/page_option.h"

#include "common/log.h"

namespace shoal {

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
