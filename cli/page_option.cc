#include "cli/page_option.h"

#include <CLI/CLI.hpp>

#include "common/log.h"

namespace shoal {
namespace {

// CLI11 calls an option that came without a value "true".
Result<PagePort> port_of_value(const std::string& value) {
  return page_port(value == "true" ? std::string_view() : std::string_view(value));
}

}  // namespace

// It takes a value behind "=" alone, so that the word behind `--page` stays the run's file. The default of a flag of
// CLI11 could not be told from the same port where somebody named it.
void add_page_option(CLI::App& command, std::optional<PagePort>& page, const std::string& what) {
  const CLI::callback_t take = [&page](const CLI::results_t& values) {
    auto port = port_of_value(values.front());
    if (port.ok()) page = *port;
    return port.ok();
  };
  command
      .add_option("--page", take,
                  what + " on this machine; --page=PORT takes that port, 0 any (default: " +
                      std::to_string(PagePort().port) + ", or another where that is taken)")
      ->expected(0)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->check([](const std::string& value) {
        const auto port = port_of_value(value);
        return port.ok() ? std::string() : port.error().message;
      });
}

void tell_page(std::uint16_t port) {
  log_info("page http://127.0.0.1:", port, "/ (on this machine; from another: ssh -L ", port, ":127.0.0.1:", port,
           " HOST)");
}

}  // namespace shoal
