#include "bench/hop_profile.h"

#include <cstdio>
#include <map>
#include <thread>

#include "common/formatted.h"
#include "events/books/merged_lines.h"

namespace shoal {
namespace {

struct Times {
  double entry = 0, forward = 0, counted = 0;
};
using Microbatches = std::map<MicrobatchId, Times>;

struct Mean {
  double sum = 0;
  int count = 0;
  void add(double from, double to) {
    if (from == 0 || to < from) return;  // not both within the measure, or computed again by a later branch
    sum += (to - from) * 1e3;
    ++count;
  }
  double value() const { return count == 0 ? 0 : sum / count; }
};

// By stage.
Result<std::vector<Microbatches>> read_stages(const HopFigures& figures, std::uint16_t stages) {
  SHOAL_ASSIGN(MergedLines lines, MergedLines::whole(figures.events_folder));
  for (std::vector<Microbatches> read(stages);;) {
    SHOAL_ASSIGN(const std::optional<SeenEvent> event, lines.next());
    if (!event) return read;
    const EventRecord& r = event->record;
    if (event->of_trainer || event->time < figures.from || event->time > figures.to) continue;
    if (!r.microbatch || !r.stage || r.stage->value >= stages) continue;
    if (r.event != EventKind::kEntry && r.event != EventKind::kForward && r.event != EventKind::kCounted) continue;
    Times& times = read[r.stage->value][*r.microbatch];
    (r.event == EventKind::kEntry     ? times.entry
     : r.event == EventKind::kForward ? times.forward
                                      : times.counted) = event->time;
  }
}

}  // namespace

Result<std::vector<StageWay>> stage_ways(const HopFigures& figures, std::uint16_t stages) {
  SHOAL_ASSIGN(const std::vector<Microbatches> read, read_stages(figures, stages));
  std::vector<StageWay> ways;
  for (std::uint16_t k = 0; k < stages; ++k) {
    Mean forward, above, down, up;
    for (const auto& [id, here] : read[k]) {
      forward.add(here.entry, here.forward);
      above.add(here.forward, here.counted);
      if (k + 1 == stages) continue;
      const auto next = read[k + 1u].find(id);
      if (next == read[k + 1u].end()) continue;
      down.add(here.forward, next->second.entry);
      up.add(next->second.counted, here.counted);
    }
    ways.push_back({forward.value(), above.value(), down.value(), up.value()});
  }
  return ways;
}

std::string profile_text(const HopFigures& figures, const HopSetting& setting) {
  const double microbatches =
      figures.tokens_per_s * figures.seconds / static_cast<double>(setting.tokens_per_microbatch());
  std::string text =
      "  core milliseconds a microbatch, by process and thread (in brackets: ready, but no core was free)\n";
  double ours = 0;
  for (const HopProcess& process : figures.processes) {
    text += formatted("    %-8s", process.name.c_str());
    for (const auto& [name, time] : process.threads) {
      if (time.on_core_s * 1e3 / microbatches < 0.05) continue;
      text += formatted("  %s %.1f (%.1f)", name.c_str(), time.on_core_s * 1e3 / microbatches,
                        time.ready_s * 1e3 / microbatches);
    }
    const ThreadTime all = total(process.threads);
    text += formatted("  = %.1f\n", all.on_core_s * 1e3 / microbatches);
    ours += all.on_core_s;
  }
  const double cores = std::thread::hardware_concurrency();
  const double whole = cores * figures.seconds;
  text += formatted("  of %.0f cores: this run %.1f %%, others %.1f %%, idle %.1f %%\n", cores, 100 * ours / whole,
                    100 * (figures.machine_busy_s - ours) / whole, 100 * (whole - figures.machine_busy_s) / whole);
  if (figures.processes.size() < 2 || figures.processes.front().name != "launch") return text;
  text += "  a microbatch's way, mean milliseconds\n";
  text += "    stage   entry>forward   forward>entry above   gradient above>here   forward>gradient\n";
  const auto ways = stage_ways(figures, setting.stages);
  for (std::size_t k = 0; ways.ok() && k < ways->size(); ++k) {
    const StageWay& way = (*ways)[k];
    text += formatted("    %5zu   %13.1f   %19.2f   %19.1f   %16.1f\n", k, way.forward, way.hop_down, way.hop_up,
                      way.above);
  }
  text += formatted("  hop timers fired: %llu\n", static_cast<unsigned long long>(figures.hop_timers));
  return text;
}

}  // namespace shoal
