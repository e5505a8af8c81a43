#pragma once
// Which requests the page answers. It is for a browser on this machine that was pointed at it, and changes nothing; a
// foreign page in that browser, and a name that was bound to this address, get no answer (docs/PAGE.md). Pure;
// thread-safe.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal {

inline constexpr std::size_t kHeaderBytesMax = 8u << 10;

struct PageRequest {
  std::string_view method, path;
  std::vector<std::pair<std::string_view, std::string_view>> headers{};
  std::size_t header_bytes = 0;  // as they came
};

struct RequestVerdict {
  unsigned status = 200;  // of HTTP
  std::string_view why{};
};

// 200: it may be answered, if there is something at its path. `port`: where we listen.
RequestVerdict judge(const PageRequest& request, std::uint16_t port);

}  // namespace shoal
