#include "runtime/launch/run_summary.h"

#include <nlohmann/json.hpp>

#include "common/formatted.h"
#include "common/hex.h"
#include "events/line_parts.h"
#include "events/train_line.h"
#include "runtime/config/config.h"

namespace shoal {

std::vector<std::string> summary_lines(const RunSummary& s, bool over) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  std::vector<std::string> lines = {
      (over ? "the run is over (" : "the run stands before its end (") + s.reason + ")",
      number(s.run_targets) + " tokens in " + clock_text(from_seconds(s.elapsed_s)) + ", faults " + number(s.faults),
      "microbatches: issued " + number(s.issued) + ", committed " + number(s.committed),
      "unfinished: " + number(s.unfinished),
      "(microbatch, stage) pairs lost: " + number(s.lost),
      "one peer takes at most " + number(s.loss_bound_microbatches) + " microbatches with it, " +
          short_number(s.loss_bound_targets) + " tokens",
      "rounds " + number(s.rounds) + ", abandoned " + number(s.rounds_abandoned)};
  if (s.taken_back > 0) lines.push_back("pairs lost with versions that nobody held any more: " + number(s.taken_back));
  if (s.delay) lines.push_back("the latest stage's gradients: " + delay_text(*s.delay) + " inner steps");
  if (!s.validation_loss) return lines;
  lines.push_back(formatted("validation loss %.4f nats a target", *s.validation_loss));
  std::string versions;
  for (const Version& version : s.validation_versions)
    versions += (versions.empty() ? "" : ", ") + number(version.value);
  lines.push_back("of the anchors of versions " + versions + ", stage by stage");
  return lines;
}

std::string summary_json(const RunSummary& s, const RunConfig& config, bool interrupted, const std::string& saved) {
  using Json = nlohmann::ordered_json;
  Json out = {{"schema", "shoal.launch/2"},
              {"run", config.run.name},
              {"reason", s.reason},
              {"interrupted", interrupted},
              {"val_versions", Json::array()}};
  for (const LaunchFigure& row : launch_figures())
    if (row.places.summary != nullptr) out[row.places.summary] = figure_json<Json>(row.of(s));
  for (const Version& version : s.validation_versions) out["val_versions"].push_back(version.value);
  out["shares"] = Json::array();
  for (const PeerShare& share : s.shares)
    out["shares"].push_back({{"peer", hex_of_word(share.peer_tag)},
                             {"stage", share.stage.value},
                             {"microbatches", share.microbatches},
                             {"tokens", share.microbatches * config.targets_per_microbatch()}});
  out["losses"] = Json::array();
  for (const PeerLoss& loss : s.losses)
    out["losses"].push_back({{"peer", hex_of_word(loss.peer_tag)},
                             {"stage", loss.stage.value},
                             {"cause", loss.cause},
                             {"pairs", loss.pairs}});
  out["waits"] = Json::array();
  for (const PeerWaits& waits : s.waits)
    out["waits"].push_back({{"peer", hex_of_word(waits.peer_tag)},
                            {"stage", waits.stage.value},
                            {"rounds", waits.rounds},
                            {"seconds", waits.seconds}});
  out["refusals"] = Json::array();
  for (const auto& [of, passes] : s.refusals)
    out["refusals"].push_back({{"stage", of.first.value}, {"cause", of.second}, {"passes", passes}});
  out["model"] = saved.empty() ? Json(nullptr) : Json(saved);
  return out.dump(2) + "\n";
}

}  // namespace shoal
