#include "bench/hop_profile.h"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "demo/file_tail.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

struct Times {
  double entry = 0, forward = 0, counted = 0;
};
using Microbatches = std::map<std::string, Times>;

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

Microbatches read_stage(const std::string& path, double from, double to) {
  Microbatches microbatches;
  for (const std::string& line : FileTail(path).new_lines()) {
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) continue;
    const double time = event.value("time", 0.0);
    if (time < from || time > to) continue;
    const std::string name = event.value("event", "");
    const std::string id = event.value("microbatch", "");
    if (name == "entry") microbatches[id].entry = time;
    if (name == "forward") microbatches[id].forward = time;
    if (name == "counted") microbatches[id].counted = time;
  }
  return microbatches;
}

std::string format(const char* form, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

}  // namespace

std::vector<StageWay> stage_ways(const HopFigures& figures, std::uint16_t stages) {
  std::vector<Microbatches> read;
  for (std::uint16_t k = 0; k < stages; ++k)
    read.push_back(
        read_stage(figures.events_folder + "/stage-" + std::to_string(k) + ".jsonl", figures.from, figures.to));
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
    text += format("    %-8s", process.name.c_str());
    for (const auto& [name, time] : process.threads) {
      if (time.on_core_s * 1e3 / microbatches < 0.05) continue;
      text += format("  %s %.1f (%.1f)", name.c_str(), time.on_core_s * 1e3 / microbatches,
                     time.ready_s * 1e3 / microbatches);
    }
    const ThreadTime all = total(process.threads);
    text += format("  = %.1f\n", all.on_core_s * 1e3 / microbatches);
    ours += all.on_core_s;
  }
  const double cores = std::thread::hardware_concurrency();
  const double whole = cores * figures.seconds;
  text += format("  of %.0f cores: this run %.1f %%, others %.1f %%, idle %.1f %%\n", cores, 100 * ours / whole,
                 100 * (figures.machine_busy_s - ours) / whole, 100 * (whole - figures.machine_busy_s) / whole);
  if (figures.processes.size() < 2 || figures.processes.front().name != "launch") return text;
  text += "  a microbatch's way, mean milliseconds\n";
  text += "    stage   entry>forward   forward>entry above   gradient above>here   forward>gradient\n";
  const auto ways = stage_ways(figures, setting.stages);
  for (std::size_t k = 0; k < ways.size(); ++k) {
    text += format("    %5zu   %13.1f   %19.2f   %19.1f   %16.1f\n", k, ways[k].forward, ways[k].hop_down,
                   ways[k].hop_up, ways[k].above);
  }
  text += format("  hop timers fired: %llu\n", static_cast<unsigned long long>(figures.hop_timers));
  return text;
}

}  // namespace shoal
