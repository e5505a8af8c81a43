#include "cli/layout_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/log.h"
#include "common/os/posix_file.h"
#include "common/program/json_text.h"
#include "layout/layout_plan.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/plan/layout_shape.h"

namespace shoal {
namespace {

constexpr double kMegabit = 1e6 / 8;
constexpr double kAsFull = 1e-6;  // parts of the rate: less is rounding

struct Report {
  const RunConfig& config;
  const PeerList& list;
  const LayoutShape& of;
  const PlannedLayout& planned;
  const LayoutStory& story;

  double tokens(double rate) const { return rate * static_cast<double>(config.targets_per_microbatch()); }
  const std::string& region(std::size_t number) const { return of.regions[number]; }
  // Microbatches in flight with which the bound can be reached.
  std::uint64_t in_flight() const { return static_cast<std::uint64_t>(std::ceil(story.in_flight * (1 - 1e-9))); }
};

std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

std::string between(const Report& r, std::size_t from, std::size_t to) {
  if (r.region(from).empty()) return "between its peers and those of";
  return "from " + r.region(from) + " to " + r.region(to) + " and";
}

std::string text_of(const Report& r, const Bind& bind) {
  const std::string stage = "stage " + std::to_string(bind.stage);
  const std::string where = r.region(bind.from).empty() ? "" : " in " + r.region(bind.from);
  const std::string share = " (" + percent(bind.rate / r.story.rate) + " of what passes)";
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
std::string as_full(const Report& r) {
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

void print_stages(const Report& r) {
  std::printf("%5s %9s %9s %8s  %s\n", "stage", "could/s", "makes/s", "round s", "peers");
  for (std::size_t stage = 0; stage < r.of.shape.stages.size(); ++stage) {
    std::printf("%5zu %9.3g %9.3g %8.3g ", stage, r.story.stage_rates[stage], r.story.rate, r.story.round_times[stage]);
    for (std::size_t peer = 0; peer < r.list.peers.size(); ++peer) {
      if (r.planned.layout[peer] != stage) continue;
      const std::string& region = r.region(r.of.shape.peers[peer].region);
      std::printf(" %s%s%s%s", r.list.peers[peer].name.c_str(), region.empty() ? "" : " (", region.c_str(),
                  region.empty() ? "" : ")");
    }
    std::printf("\n");
  }
}

void print_lines(const Report& r) {
  if (r.of.shape.stages.size() < 2 || !r.of.lines_known) return;
  std::printf("\n%7s %-24s %6s %9s %9s %8s\n", "stages", "from and to", "share", "Mbit/s", "back", "ms there");
  for (const RegionFlow& flow : r.story.flows) {
    const ShapeStage& stage = r.of.shape.stages[flow.stage];
    const std::string name = r.region(flow.from) + " - " + r.region(flow.to);
    std::printf("%3zu-%-3zu %-24s %6s %9.3g %9.3g %8.3g\n", flow.stage, flow.stage + 1, name.c_str(),
                percent(flow.rate / r.story.rate).c_str(), flow.rate * stage.forward_bytes / kMegabit,
                flow.rate * stage.backward_bytes / kMegabit, 1000 * r.of.shape.line(flow.from, flow.to).delay);
  }
}

void print_text(const Report& r) {
  const std::uint64_t given = in_flight_of(r.config);
  std::printf("%s: %zu peers for %zu stages, %s%s\n\n", r.config.run.name.c_str(), r.list.peers.size(),
              r.of.shape.stages.size(),
              r.planned.is_best ? "the best of all layouts" : "the best layout that was found",
              r.of.lines_known ? "" : "; lines are taken to be free (--links FILE)");
  print_stages(r);
  print_lines(r);
  std::printf("\nAt most %.3g microbatches a second, %.0f tokens/s. That takes %llu in flight at least.\n",
              r.story.rate, r.tokens(r.story.rate), static_cast<unsigned long long>(r.in_flight()));
  std::printf("What binds:");
  for (const Bind& bind : r.story.binds)
    std::printf("%s %s", &bind == &r.story.binds.front() ? "" : ",", text_of(r, bind).c_str());
  std::printf("%s.\n", as_full(r).c_str());
  if (r.story.round_share > 0)
    std::printf("Of the time between two rounds the longest takes %s.\n", percent(r.story.round_share).c_str());
  if (given < r.in_flight())
    std::printf("With %llu in flight, as in_flight says, at most %.0f tokens/s.\n",
                static_cast<unsigned long long>(given), r.tokens(r.story.rate_with(static_cast<double>(given))));
  std::printf("Expected, not measured.\n");
}

void print_json(const Report& r) {
  const std::uint64_t given = in_flight_of(r.config);
  Json binds = Json::array(), stages = Json::array(), peers = Json::array(), lines = Json::array();
  for (const Bind& bind : r.story.binds)
    binds.add({{"what", name_of(bind.what)},
               {"stage", bind.stage},
               {"from", r.region(bind.from)},
               {"to", r.region(bind.to)},
               {"microbatches_per_s", bind.rate}});
  for (std::size_t stage = 0; stage < r.of.shape.stages.size(); ++stage)
    stages.add({{"stage", stage},
                {"microbatches_per_s", r.story.stage_rates[stage]},
                {"round_s", r.story.round_times[stage]}});
  for (std::size_t peer = 0; peer < r.list.peers.size(); ++peer) {
    const NamedPeer& named = r.list.peers[peer];
    peers.add({{"name", named.name},
               {"key", named.key ? Json(hex_of(*named.key)) : Json()},
               {"region", r.region(r.of.shape.peers[peer].region)},
               {"stage", r.planned.layout[peer]},
               {"microbatches_per_s", r.story.peer_rates[peer]}});
  }
  for (const RegionFlow& flow : r.story.flows)
    lines.add({{"stage", flow.stage},
               {"from", r.region(flow.from)},
               {"to", r.region(flow.to)},
               {"microbatches_per_s", flow.rate}});
  const Json out = {{"schema", "shoal.layout/1"},
                    {"run", r.config.run.name},
                    {"best_of_all", r.planned.is_best},
                    {"microbatches_per_s", r.story.rate},
                    {"tokens_per_s", r.tokens(r.story.rate)},
                    {"in_flight_needed", r.in_flight()},
                    {"in_flight", given},
                    {"tokens_per_s_in_flight", r.tokens(r.story.rate_with(static_cast<double>(given)))},
                    {"round_share", r.story.round_share},
                    {"binds", binds},
                    {"stages", stages},
                    {"peers", peers},
                    {"lines", lines}};
  std::printf("%s\n", out.text().c_str());
}

Result<std::string> text_in(const std::string& path, std::size_t most) {
  SHOAL_ASSIGN(const Bytes bytes, read_file(path, most));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status write_layout(const PeerList& list, const PlannedLayout& planned, std::uint16_t stages, const std::string& path) {
  PeerList out = list;
  out.stages = stages;
  std::string without;
  for (std::size_t peer = 0; peer < out.peers.size(); ++peer) {
    out.peers[peer].stage = planned.layout[peer];
    if (!out.peers[peer].key) without += " " + out.peers[peer].name;
  }
  SHOAL_TRY(replace_file(path, {Bytes::copy_of(std::string_view(text_of(out)))}));
  if (!without.empty())
    log_warning(
        path, ": without a key no run knows", without,
        ". HINT: key = \"...\", as `shoal key` prints it on that machine; launch --layout refuses the file until then");
  return {};
}

}  // namespace

Result<PeerList> load_peer_list(const std::string& path) {
  SHOAL_ASSIGN(const std::string text, text_in(path, kPeerListBytesMax));
  return parse_peer_list(text, path);
}

Status report_layout(const RunConfig& config, const LayoutArguments& arguments, bool json) {
  SHOAL_ASSIGN(const PeerList list, load_peer_list(arguments.peers));
  std::optional<LinkTable> links;
  if (!arguments.links.empty()) {
    SHOAL_ASSIGN(const std::string table, text_in(arguments.links, kLinkTableBytesMax));
    SHOAL_ASSIGN(links, parse_links(table, arguments.links));
  }
  SHOAL_ASSIGN(const LayoutShape of, layout_shape(config, list, links));
  SHOAL_ASSIGN(const PlannedLayout planned, plan_layout(of.shape));
  const LayoutStory story = LayoutCost(of.shape).story(planned.layout);
  const Report report{config, list, of, planned, story};
  json ? print_json(report) : print_text(report);
  if (arguments.out.empty()) return {};
  return write_layout(list, planned, config.pipeline.stages, arguments.out);
}

}  // namespace shoal
