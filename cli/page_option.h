#pragma once
// `--page[=PORT]`, and the line that says where a page is.
#include <cstdint>
#include <optional>
#include <string>

#include "page/page_port.h"

namespace CLI {
class App;
}

namespace shoal {

// `page` stays empty where nobody asked, and outlives the parsing. `what` begins the help.
void add_page_option(CLI::App& command, std::optional<PagePort>& page, const std::string& what);
// For people, on stderr.
void tell_page(std::uint16_t port);

}  // namespace shoal
