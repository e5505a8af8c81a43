#pragma once
// How much of its line a machine lends, as its owner says it.
#include <string>
#include <string_view>

#include "common/result.h"

namespace shoal {

struct LineCaps {
  double up = 0, down = 0;  // bytes a second; 0: no cap
  bool any() const { return up > 0 || down > 0; }
};

// With less what must be said at once (transport/capped_wire.h), some kilobytes a second of a process that serves,
// leaves nothing for tensors.
inline constexpr double kLineCapMin = 256e3 / 8;

// "20mbit", "1.5 Gbit/s", "500kbit", at least kLineCapMin: in bytes a second. ERRORS: kInput, naming the option.
Result<double> parse_line_cap(std::string_view option, const std::string& text);
// Each likewise; empty: no cap.
Result<LineCaps> line_caps_of(const std::string& up, const std::string& down);

}  // namespace shoal
