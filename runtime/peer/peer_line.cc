#include "runtime/peer/peer_line.h"

#include <algorithm>
#include <cmath>

#include "common/formatted.h"
#include "events/headway.h"
#include "events/line_parts.h"

namespace shoal {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

double gibibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / kGibibyte; }

std::string gibibyte_text(std::uint64_t bytes, int decimals) {
  const double value = gibibytes(bytes);
  if (value >= 99.95) return brief_number(value);
  return formatted("%.*f", decimals, value);
}

std::string used_text(const PeerFigures& f) {
  if (f.memory_used == 0) return "";
  const std::string used = gibibyte_text(f.memory_used, 1);
  return used + (f.memory_bytes > 0 ? "/" + gibibyte_text(f.memory_bytes, 1) : "") + "G";
}

// Every stage does, of what the run commits, each microbatch once.
std::string share_text(double work, double run) {
  if (run <= 0) return "";
  return std::to_string(std::lround(100 * std::min(1.0, work / run))) + "%";
}

std::string bytes_text(const char* name, double per_second, std::uint64_t in_all) {
  return std::string(name) + " " + brief_number(per_second) + "/" + brief_number(static_cast<double>(in_all));
}

std::string disk_text(const PeerReport& r) {
  if (!r.on_disk) return "";
  return "disk v" + short_number(r.on_disk->version.value) + " " + span_text(std::chrono::seconds(r.on_disk->age_s));
}

std::string part_text(const PeerFigure& row, const PeerFigures& f) {
  std::string text = row.places.line;
  const FigureValue value = row.of(f);
  const auto* count = std::get_if<std::uint64_t>(&value);
  return text.replace(text.find('%'), 1, count != nullptr ? short_number(*count) : short_number(row.number_of(f)));
}

bool works(PeerPhase phase) { return phase == PeerPhase::kServing || phase == PeerPhase::kLeaving; }

std::string state_text(const PeerReport& r) {
  std::string text(r.phase == PeerPhase::kFetching ? "fetching" : name_of(r.phase));
  if (r.stage) text += " " + std::to_string(r.stage->value);
  return text;
}

}  // namespace

std::string PeerLine::text(const PeerReport& r, TimePoint now, std::size_t columns) {
  const PeerFigures& f = r.figures;
  run_.note(static_cast<double>(r.run.run_targets), now);
  up_.note(static_cast<double>(f.sent_bytes), now);
  down_.note(static_cast<double>(f.received_bytes), now);
  const bool comes = r.phase == PeerPhase::kFetching && r.fetch_total > 0;
  fetched_.note(comes ? static_cast<double>(r.fetched_bytes) : 0, now);
  if (comes) {
    const double rest = static_cast<double>(r.fetch_total - std::min(r.fetched_bytes, r.fetch_total));
    return text_of({.what = state_text(r), .done = r.fetched_bytes, .total = r.fetch_total, .bytes = true},
                   fetched_.per_second(), fetched_.time_for(rest), columns);
  }
  std::vector<LinePart> parts = {{state_text(r), 0}, {r.reason.empty() ? "" : "(" + r.reason + ")", 0}};
  if (!works(r.phase)) return fitted(std::move(parts), columns);
  parts.push_back({share_text(f.rate, run_.per_second()), 2});
  for (const PeerFigure& row : peer_figures())
    if (row.places.line != nullptr) parts.push_back({part_text(row, f), 1});
  parts.insert(parts.end(), {{disk_text(r), 2},
                             {f.device, 5},
                             {used_text(f), 4},
                             {bytes_text("up", up_.per_second(), f.sent_bytes), 3},
                             {bytes_text("down", down_.per_second(), f.received_bytes), 3}});
  return fitted(std::move(parts), columns);
}

bool PeerLine::due(const PeerReport& r, TimePoint now) {
  const Moving moving{r.phase, r.stage, r.figures.accepted, r.fetched_bytes};
  const bool moved = told_ != moving;
  told_ = moving;
  if (moved) stands_since_ = now;
  return ticks_.due(now - stands_since_) || moved;
}

std::string memory_text(std::uint64_t peak, std::uint64_t estimated) {
  std::string text = "memory: at most " + gibibyte_text(peak, 2) + " GiB of this process";
  if (estimated > 0) text += ", " + gibibyte_text(estimated, 2) + " GiB were estimated";
  return text;
}

}  // namespace shoal
