#include "runtime/plan/layout_report.h"

#include <algorithm>
#include <cmath>

#include "common/formatted.h"
#include "runtime/plan/flight_plan.h"

namespace shoal {
namespace {

constexpr double kMegabitBytes = 1e6 / 8;
constexpr double kAsFull = 1e-6;  // parts of the rate: less is rounding

double tokens(const LayoutReport& r, double rate) {
  return rate * static_cast<double>(r.config.targets_per_microbatch());
}
const std::string& region(const LayoutReport& r, std::size_t number) { return r.of.regions[number]; }
// Microbatches in flight with which the bound can be reached.
std::uint64_t needed(const LayoutReport& r) {
  return static_cast<std::uint64_t>(std::ceil(r.story.in_flight * (1 - 1e-9)));
}
std::string share_text(double share) { return formatted("%.0f %%", 100 * share); }

std::string between(const LayoutReport& r, std::size_t from, std::size_t to) {
  if (region(r, from).empty()) return "between its peers and those of";
  return "from " + region(r, from) + " to " + region(r, to) + " and";
}

std::string text_of(const LayoutReport& r, const Bind& bind) {
  const std::string stage = "stage " + std::to_string(bind.stage);
  const std::string where = region(r, bind.from).empty() ? "" : " in " + region(r, bind.from);
  const std::string share = " (" + share_text(bind.rate / r.story.rate) + " of what passes)";
  switch (bind.what) {
    case Binding::kCompute:
      return "compute of " + stage + where + share;
    case Binding::kOwnLine:
      return "the peers' own lines at " + stage + where + share;
    case Binding::kLine:
      return "lines of " + stage + " " + between(r, bind.from, bind.to) + " stage " + std::to_string(bind.stage + 1) +
             share;
    case Binding::kRound:
      return "rounds of " + stage + ", which the steps wait for";
  }
  return "";
}

// The other stages whose peers can make no more than that either.
std::string as_full(const LayoutReport& r) {
  std::string text;
  for (std::size_t stage = 0; stage < r.story.stage_rates.size(); ++stage) {
    const auto of_stage = [&](const Bind& bind) { return bind.stage == stage && bind.what != Binding::kLine; };
    if (r.story.stage_rates[stage] > r.story.rate * (1 + kAsFull) || std::ranges::any_of(r.story.binds, of_stage))
      continue;
    text += (text.empty() ? "; as full is stage " : ", ") + std::to_string(stage);
  }
  return text;
}

const char* name_of(Binding what) {
  constexpr const char* kNames[] = {"compute", "own line", "line", "round"};
  return kNames[static_cast<std::size_t>(what)];
}

std::string stages_of(const LayoutReport& r) {
  std::string text = formatted("%5s %9s %9s %8s  %s\n", "stage", "could/s", "makes/s", "round s", "peers");
  for (std::size_t stage = 0; stage < r.of.shape.stages.size(); ++stage) {
    text += formatted("%5zu %9.3g %9.3g %8.3g ", stage, r.story.stage_rates[stage], r.story.rate,
                      r.story.round_times[stage]);
    for (std::size_t peer = 0; peer < r.list.peers.size(); ++peer) {
      if (r.planned.layout[peer] != stage) continue;
      const std::string& where = region(r, r.of.shape.peers[peer].region);
      text += " " + r.list.peers[peer].name + (where.empty() ? "" : " (" + where + ")");
    }
    text += "\n";
  }
  return text;
}

std::string lines_of(const LayoutReport& r) {
  if (r.of.shape.stages.size() < 2 || !r.of.lines_known) return "";
  std::string text =
      formatted("\n%7s %-24s %6s %9s %9s %8s\n", "stages", "from and to", "share", "Mbit/s", "back", "ms there");
  for (const RegionFlow& flow : r.story.flows) {
    const ShapeStage& stage = r.of.shape.stages[flow.stage];
    const std::string name = region(r, flow.from) + " - " + region(r, flow.to);
    text +=
        formatted("%3zu-%-3zu %-24s %6s %9.3g %9.3g %8.3g\n", flow.stage, flow.stage + 1, name.c_str(),
                  share_text(flow.rate / r.story.rate).c_str(), flow.rate * stage.forward_bytes / kMegabitBytes,
                  flow.rate * stage.backward_bytes / kMegabitBytes, 1000 * r.of.shape.line(flow.from, flow.to).delay);
  }
  return text;
}

}  // namespace

std::string text_of(const LayoutReport& r) {
  const std::uint64_t given = in_flight_of(r.config);
  std::string text = formatted("%s: %zu peers for %zu stages, %s%s\n\n", r.config.run.name.c_str(), r.list.peers.size(),
                               r.of.shape.stages.size(),
                               r.planned.is_best ? "the best of all layouts" : "the best layout that was found",
                               r.of.lines_known ? "" : "; lines are taken to be free (--links FILE)");
  text += stages_of(r) + lines_of(r);
  text += formatted("\nAt most %.3g microbatches a second, %.0f tokens/s. That takes %llu in flight at least.\n",
                    r.story.rate, tokens(r, r.story.rate), static_cast<unsigned long long>(needed(r)));
  text += "What binds:";
  for (const Bind& bind : r.story.binds) text += (&bind == &r.story.binds.front() ? " " : ", ") + text_of(r, bind);
  text += as_full(r) + ".\n";
  if (r.story.round_share > 0)
    text +=
        formatted("Of the time between two rounds the longest takes %s.\n", share_text(r.story.round_share).c_str());
  if (given < needed(r))
    text += formatted("With %llu in flight, as in_flight says, at most %.0f tokens/s.\n",
                      static_cast<unsigned long long>(given), tokens(r, r.story.rate_with(static_cast<double>(given))));
  return text + "Expected, not measured.\n";
}

Json json_of(const LayoutReport& r) {
  const std::uint64_t given = in_flight_of(r.config);
  Json binds = Json::array(), stages = Json::array(), peers = Json::array(), lines = Json::array();
  for (const Bind& bind : r.story.binds)
    binds.add({{"what", name_of(bind.what)},
               {"stage", bind.stage},
               {"from", region(r, bind.from)},
               {"to", region(r, bind.to)},
               {"microbatches_per_s", bind.rate}});
  for (std::size_t stage = 0; stage < r.of.shape.stages.size(); ++stage)
    stages.add({{"stage", stage},
                {"microbatches_per_s", r.story.stage_rates[stage]},
                {"round_s", r.story.round_times[stage]}});
  for (std::size_t peer = 0; peer < r.list.peers.size(); ++peer) {
    const NamedPeer& named = r.list.peers[peer];
    peers.add({{"name", named.name},
               {"key", named.key ? Json(hex_of(*named.key)) : Json()},
               {"region", region(r, r.of.shape.peers[peer].region)},
               {"stage", r.planned.layout[peer]},
               {"microbatches_per_s", r.story.peer_rates[peer]}});
  }
  for (const RegionFlow& flow : r.story.flows)
    lines.add({{"stage", flow.stage},
               {"from", region(r, flow.from)},
               {"to", region(r, flow.to)},
               {"microbatches_per_s", flow.rate}});
  return {{"schema", "shoal.layout/1"},
          {"run", r.config.run.name},
          {"best_of_all", r.planned.is_best},
          {"microbatches_per_s", r.story.rate},
          {"tokens_per_s", tokens(r, r.story.rate)},
          {"in_flight_needed", needed(r)},
          {"in_flight", given},
          {"tokens_per_s_in_flight", tokens(r, r.story.rate_with(static_cast<double>(given)))},
          {"round_share", r.story.round_share},
          {"binds", binds},
          {"stages", stages},
          {"peers", peers},
          {"lines", lines}};
}

}  // namespace shoal
