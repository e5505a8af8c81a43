#pragma once
// Which port a page was wished at: `--page[=PORT]`, and the line that says where it is.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/program/options.h"
#include "common/result.h"

namespace shoal {

struct PagePort {
  std::uint16_t port = 8787;  // 0: any
  bool or_any = true;         // any where that one is taken: nobody named it
};

// What stands behind `--page=`; empty: `--page` alone. ERRORS: kInput (no number up to 65535).
Result<PagePort> page_port(std::string_view word);
// The option that wishes the same.
std::string option_of(const PagePort& page);

// `--page[=PORT]`: `page` stays empty where nobody asked, and outlives the parsing. `what` begins the help.
void add_page_option(Command& command, std::optional<PagePort>& page, const std::string& what);
// The line that says where a page is, for people, on stderr.
void tell_page(std::uint16_t port);

}  // namespace shoal
