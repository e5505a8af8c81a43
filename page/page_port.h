#pragma once
// Which port a page was wished at. Pure; thread-safe.
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace shoal
