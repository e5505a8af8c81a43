#pragma once
// The files of the page itself, which the build puts into the program (page/assets, and Debian's dygraphs). Immutable;
// thread-safe.
#include <optional>
#include <string_view>

namespace shoal {

struct PageAsset {
  std::string_view path;  // "/page.js"
  std::string_view type;  // of its content
  std::string_view bytes;
};

std::optional<PageAsset> page_asset(std::string_view path);

}  // namespace shoal
