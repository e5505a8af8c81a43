#include "runtime/launch/summary_json.h"

#include <nlohmann/json.hpp>

#include "common/hex.h"

namespace shoal {

std::string summary_json(const LaunchFigures& launch, const RunSummary& s) {
  const auto or_null = [](const auto& value) { return value ? nlohmann::json(*value) : nlohmann::json(nullptr); };
  nlohmann::ordered_json out = {{"schema", "shoal.launch/2"},
                                {"run", launch.name},
                                {"reason", s.reason},
                                {"interrupted", launch.interrupted},
                                {"loss_start", launch.loss_start},
                                {"loss_end", launch.loss_end},
                                {"val_loss", or_null(s.validation_loss)},
                                {"val_versions", nlohmann::json::array()},
                                {"tokens", s.run_targets},
                                {"issued", s.issued},
                                {"committed", s.committed},
                                {"unfinished", s.unfinished},
                                {"faults", s.faults},
                                {"asked_again", s.asked_again},
                                {"lost", s.lost},
                                {"taken_back", s.taken_back},
                                {"answered_gone", s.acks_gone},
                                {"rounds", s.rounds},
                                {"rounds_abandoned", s.rounds_abandoned},
                                {"loss_bound_microbatches", s.loss_bound_microbatches},
                                {"loss_bound_tokens", s.loss_bound_targets},
                                {"full_in_flight_share", s.full_in_flight_share},
                                {"delay", or_null(s.delay)},
                                {"launch_sent_bytes", launch.wire_bytes},
                                {"elapsed_s", seconds_of(launch.elapsed)}};
  for (const Version& version : s.validation_versions) out["val_versions"].push_back(version.value);
  out["shares"] = nlohmann::json::array();
  for (const PeerShare& share : s.shares)
    out["shares"].push_back({{"peer", hex_of_word(share.peer_tag)},
                             {"stage", share.stage.value},
                             {"microbatches", share.microbatches},
                             {"tokens", share.microbatches * launch.targets_per_microbatch}});
  out["losses"] = nlohmann::json::array();
  for (const PeerLoss& loss : s.losses)
    out["losses"].push_back({{"peer", hex_of_word(loss.peer_tag)},
                             {"stage", loss.stage.value},
                             {"cause", loss.cause},
                             {"pairs", loss.pairs}});
  out["model"] = launch.saved.empty() ? nlohmann::json(nullptr) : nlohmann::json(launch.saved);
  return out.dump(2) + "\n";
}

}  // namespace shoal
