#pragma once
// Lines between regions, as published tables and `shoal plan --links` have them: CSV whose heading names delay_ms, one
// way (or rtt_ms, both), and bandwidth_gbps or bandwidth_mbps; its first two columns are regions. A line between a
// region and itself says what is inside it. Pure but for load_links().
// Thread: any.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "layout/swarm_shape.h"

namespace shoal {

// Inside a region of which nothing is said: what DT-FM takes it for.
inline constexpr ShapeLine kInsideRegion{.delay = 0.005, .rate = 250e6};

struct LinkTable {
  std::vector<std::string> regions{};  // in the order of their first line
  std::vector<ShapeLine> lines{};      // regions x regions, symmetric
  std::optional<std::size_t> region(std::string_view name) const;
};

// ERRORS: kInput (no such heading; a row that is none, a delay below 0, a rate that is not above 0, two regions that
// have no line, or two), with origin and line.
Result<LinkTable> parse_links(std::string_view text, const std::string& origin);
// ERRORS: read_file's, parse_links's.
Result<LinkTable> load_links(const std::string& path);

}  // namespace shoal
