#pragma once
// `--page[=PORT]`, and the line that says where a page is.
#include <cstdint>
#include <optional>
#include <string>

#include "common/program/options.h"
#include "page/page_port.h"

namespace shoal {

// `page` stays empty where nobody asked, and outlives the parsing. `what` begins the help.
void add_page_option(Command& command, std::optional<PagePort>& page, const std::string& what);
// For people, on stderr.
void tell_page(std::uint16_t port);

}  // namespace shoal
