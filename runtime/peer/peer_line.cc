#include "runtime/peer/peer_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "events/headway.h"
#include "events/line_parts.h"

namespace shoal {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

double gibibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / kGibibyte; }

std::string gibibyte_text(std::uint64_t bytes, int decimals) {
  const double value = gibibytes(bytes);
  if (value >= 99.95) return brief_number(value);
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string used_text(const PeerFigures& f) {
  if (f.memory_used == 0) return "";
  const std::string used = gibibyte_text(f.memory_used, 1);
  return used + (f.memory_needed > 0 ? "/" + gibibyte_text(f.memory_needed, 1) : "") + "G";
}

// Every stage does, of what the run commits, each microbatch once.
std::string share_text(double work, double run) {
  if (run <= 0) return "";
  return std::to_string(std::lround(100 * std::min(1.0, work / run))) + "%";
}

std::string bytes_text(const char* name, double per_second, std::uint64_t in_all) {
  return std::string(name) + " " + brief_number(per_second) + "/" + brief_number(static_cast<double>(in_all));
}

std::string disk_text(const PeerFigures& f) {
  return f.disk_version ? "disk v" + short_number(*f.disk_version) + " " + span_text(f.disk_age) : "";
}

bool works(PeerPhase phase) { return phase == PeerPhase::kServing || phase == PeerPhase::kLeaving; }

std::string state_text(const PeerFigures& f) {
  std::string text(f.phase == PeerPhase::kFetching ? "fetching" : name_of(f.phase));
  if (f.stage) text += " " + std::to_string(*f.stage);
  return text;
}

}  // namespace

std::string PeerLine::text(const PeerFigures& f, TimePoint now, std::size_t columns) {
  work_.note(static_cast<double>(f.accepted) * static_cast<double>(f.targets), now);
  run_.note(static_cast<double>(f.run_targets), now);
  up_.note(static_cast<double>(f.sent_bytes), now);
  down_.note(static_cast<double>(f.received_bytes), now);
  const bool comes = f.phase == PeerPhase::kFetching && f.fetch_total > 0;
  fetched_.note(comes ? static_cast<double>(f.fetched_bytes) : 0, now);
  if (comes) {
    const double rest = static_cast<double>(f.fetch_total - std::min(f.fetched_bytes, f.fetch_total));
    return text_of({.what = state_text(f), .done = f.fetched_bytes, .total = f.fetch_total, .bytes = true},
                   fetched_.per_second(), fetched_.time_for(rest), columns);
  }
  const std::string reason = f.reason.empty() ? "" : "(" + f.reason + ")";
  if (!works(f.phase)) return fitted({{state_text(f), 0}, {reason, 0}}, columns);
  const double rate = work_.per_second();
  return fitted({{state_text(f), 0},
                 {reason, 0},
                 {share_text(rate, run_.per_second()), 2},
                 {"took " + short_number(f.accepted), 1},
                 {short_number(rate) + " tok/s", 1},
                 {disk_text(f), 2},
                 {f.device, 5},
                 {used_text(f), 4},
                 {bytes_text("up", up_.per_second(), f.sent_bytes), 3},
                 {bytes_text("down", down_.per_second(), f.received_bytes), 3}},
                columns);
}

bool PeerLine::due(const PeerFigures& f, TimePoint now) {
  const Moving moving{f.phase, f.stage, f.accepted, f.fetched_bytes};
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
