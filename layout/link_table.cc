#include "layout/link_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "common/csv.h"
#include "common/os/posix_file.h"

namespace shoal {
namespace {

constexpr std::size_t kLinkTableBytesMax = 4u << 20;

Error malformed(const std::string& origin, std::size_t line, const std::string& what) {
  return make_error(ErrorCode::kInput, origin + ":" + std::to_string(line) + ": " + what);
}

struct Columns {
  std::size_t delay = 0, rate = 0;
  double delay_unit = 1e-3;  // seconds of one, one way
  double rate_unit = 1;      // bytes a second of one
};

std::optional<Columns> columns_of(const CsvRow& heading) {
  const auto column = [&](std::string_view name) {
    const auto at = std::ranges::find(heading.cells, name);
    return at == heading.cells.end() ? std::nullopt : std::optional<std::size_t>(at - heading.cells.begin());
  };
  const auto one_way = column("delay_ms"), both_ways = column("rtt_ms");
  const auto gigabits = column("bandwidth_gbps"), megabits = column("bandwidth_mbps");
  if ((!one_way && !both_ways) || (!gigabits && !megabits)) return std::nullopt;
  return Columns{.delay = one_way ? *one_way : *both_ways,
                 .rate = gigabits ? *gigabits : *megabits,
                 .delay_unit = one_way ? 1e-3 : 0.5e-3,
                 .rate_unit = (gigabits ? 1e9 : 1e6) / 8};
}

}  // namespace

std::optional<std::size_t> LinkTable::region(std::string_view name) const {
  const auto at = std::ranges::find(regions, name);
  return at == regions.end() ? std::nullopt : std::optional<std::size_t>(at - regions.begin());
}

Result<LinkTable> parse_links(std::string_view text, const std::string& origin) {
  const std::vector<CsvRow> rows = csv_rows(text);
  const auto columns = rows.empty() ? std::nullopt : columns_of(rows.front());
  if (!columns)
    return malformed(origin, rows.empty() ? 1 : rows.front().line,
                     "a heading is missing that names delay_ms or rtt_ms, and bandwidth_gbps or bandwidth_mbps; the "
                     "first two columns are regions");
  LinkTable table;
  std::map<std::pair<std::size_t, std::size_t>, ShapeLine> known;
  const auto number_of = [&](std::string_view name) {
    if (const auto region = table.region(name)) return *region;
    table.regions.emplace_back(name);
    return table.regions.size() - 1;
  };
  for (const auto& [line, cells] : std::span(rows).subspan(1)) {
    const auto number = [&row = cells](std::size_t at) {
      return at < row.size() ? csv_number<double>(row[at]) : std::nullopt;
    };
    const auto delay = number(columns->delay), rate = number(columns->rate);
    if (!delay || !rate || !std::isfinite(*delay) || !std::isfinite(*rate) || *delay < 0 || *rate <= 0 ||
        cells[0].empty() || cells[1].empty())
      return malformed(origin, line, "two regions, a delay and a rate above 0 are wanted");
    const std::size_t a = number_of(cells[0]), b = number_of(cells[1]);
    const ShapeLine link{*delay * columns->delay_unit, *rate * columns->rate_unit};
    if (!known.try_emplace({std::min(a, b), std::max(a, b)}, link).second)
      return malformed(origin, line, "a second line between " + table.regions[a] + " and " + table.regions[b]);
  }
  if (table.regions.empty()) return malformed(origin, rows.front().line, "there is no line between two regions");
  for (std::size_t a = 0; a < table.regions.size(); ++a)
    for (std::size_t b = 0; b < table.regions.size(); ++b) {
      const auto at = known.find({std::min(a, b), std::max(a, b)});
      if (at == known.end() && a != b)
        return malformed(origin, rows.front().line,
                         "no line between " + table.regions[a] + " and " + table.regions[b] + ": each two need one");
      table.lines.push_back(at == known.end() ? kInsideRegion : at->second);
    }
  return table;
}

Result<LinkTable> load_links(const std::string& path) {
  SHOAL_ASSIGN(const Bytes bytes, read_file(path, kLinkTableBytesMax));
  return parse_links({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace shoal
