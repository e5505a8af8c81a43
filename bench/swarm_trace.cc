#include "bench/swarm_trace.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>

#include "common/csv.h"
#include "common/os/posix_file.h"
#include "common/rng.h"

namespace shoal {
namespace {

constexpr std::int64_t kLiveMax = 10'000;  // at a time

std::optional<std::int64_t> whole(std::string_view cell) {
  const auto value = csv_number<std::int64_t>(cell);
  return value && *value >= 0 ? value : std::nullopt;
}

// Seconds since an epoch, of "2021-12-11" and "11:13:10".
std::optional<double> moment_of(std::string_view date, std::string_view time) {
  if (date.size() != 10 || time.size() != 8 || date[4] != '-' || time[2] != ':') return std::nullopt;
  const auto year = whole(date.substr(0, 4)), month = whole(date.substr(5, 2)), day = whole(date.substr(8, 2));
  const auto hour = whole(time.substr(0, 2)), minute = whole(time.substr(3, 2)), second = whole(time.substr(6, 2));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day at{std::chrono::year(static_cast<int>(*year)),
                                       std::chrono::month(static_cast<unsigned>(*month)),
                                       std::chrono::day(static_cast<unsigned>(*day))};
  if (!at.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return 86400.0 * static_cast<double>(std::chrono::sys_days(at).time_since_epoch().count()) +
         static_cast<double>(3600 * *hour + 60 * *minute + *second);
}

// Nodes join and go, so that so many are there.
void follow_count(std::vector<std::uint32_t>& there, std::uint32_t& next, std::size_t count, double seconds, Rng& rng,
                  SwarmTrace& trace) {
  while (there.size() < count) {
    there.push_back(next);
    trace.events.push_back({seconds, next++, true});
  }
  while (there.size() > count) {
    const auto gone = there.begin() + static_cast<std::ptrdiff_t>(rng.below(there.size()));
    trace.events.push_back({seconds, *gone, false});
    there.erase(gone);
  }
}

}  // namespace

Result<SwarmTrace> parse_trace(std::string name, std::string_view text, std::uint64_t seed) {
  SwarmTrace trace{.name = std::move(name), .events = {}};
  std::map<std::string, std::uint32_t, std::less<>> nodes;
  std::vector<std::pair<double, std::size_t>> counts;
  for (const auto& [number, cells] : csv_rows(text)) {
    const auto ms = cells.size() == 3 ? whole(cells[0]) : std::nullopt;
    const auto moment = cells.size() == 3 ? moment_of(cells[0], cells[1]) : std::nullopt;
    if (ms && (cells[1] == "add" || cells[1] == "remove")) {
      const auto node = nodes.try_emplace(std::string(cells[2]), static_cast<std::uint32_t>(nodes.size())).first;
      trace.events.push_back({static_cast<double>(*ms) / 1e3, node->second, cells[1] == "add"});
    } else if (const auto live = moment ? whole(cells[2]) : std::nullopt; live && *live <= kLiveMax) {
      counts.emplace_back(*moment, static_cast<std::size_t>(*live));
    } else {
      return make_error(ErrorCode::kMalformed, trace.name + ", line " + std::to_string(number) +
                                                   ": neither MS,add|remove,NODE nor DATE, TIME, LIVE");
    }
  }
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Rng rng(seed);
  std::vector<std::uint32_t> there;
  auto next = static_cast<std::uint32_t>(nodes.size());
  for (const auto& [moment, live] : counts) follow_count(there, next, live, moment - counts.front().first, rng, trace);
  std::stable_sort(trace.events.begin(), trace.events.end(),
                   [](const TraceEvent& a, const TraceEvent& b) { return a.seconds < b.seconds; });
  if (trace.events.empty()) return make_error(ErrorCode::kInput, trace.name + ": nobody ever joins");
  trace.seconds = trace.events.back().seconds;
  if (!counts.empty()) trace.seconds = std::max(trace.seconds, counts.back().first - counts.front().first);
  return trace;
}

Result<SwarmTrace> read_trace(const std::string& path, std::uint64_t seed) {
  SHOAL_ASSIGN(const Bytes bytes, read_file(path, std::size_t{64} << 20));
  return parse_trace(std::filesystem::path(path).stem().string(),
                     std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), seed);
}

}  // namespace shoal
