#pragma once
// `--page[=PORT]`, and the line that says where a page is.
#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace shoal {

inline constexpr std::uint16_t kPagePort = 8787;

// `port` stays empty where nobody asked. `what` begins the help.
void add_page_option(CLI::App& command, std::optional<std::uint16_t>& port, const std::string& what);
// Whether another port will do where this one is taken: nobody named it.
inline bool may_be_any(std::uint16_t port) { return port == kPagePort; }
// For people, on stderr.
void tell_page(std::uint16_t port);

}  // namespace shoal
