#include "page/page_port.h"

#include <charconv>

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

}  // namespace shoal
