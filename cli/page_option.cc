#include "cli/page_option.h"

#include <CLI/CLI.hpp>

#include "common/log.h"

namespace shoal {

void add_page_option(CLI::App& command, std::optional<std::uint16_t>& port, const std::string& what) {
  command
      .add_flag_function(
          "--page{" + std::to_string(kPagePort) + "}",
          [&port](std::int64_t asked) { port = static_cast<std::uint16_t>(asked); },
          what + " on this machine; --page=PORT takes that port, 0 any (default: " + std::to_string(kPagePort) +
              ", or another where that is taken)")
      ->check(CLI::Range(0, 65535).description(""));
}

void tell_page(std::uint16_t port) {
  log_info("page http://127.0.0.1:", port, "/ (on this machine; from another: ssh -L ", port, ":127.0.0.1:", port,
           " HOST)");
}

}  // namespace shoal
