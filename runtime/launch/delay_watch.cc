#include "runtime/launch/delay_watch.h"

#include <algorithm>

#include "common/formatted.h"
#include "runtime/plan/flight_plan.h"

namespace shoal {
namespace {

std::string remedy(const RunConfig& config) {
  const std::string in_flight = "lower [pipeline] in_flight (now " + std::to_string(in_flight_of(config)) + ")";
  const std::string drain = config.gradients_late() ? "[sync] mode = \"drain\", or " : "";
  if (traits_of(config.sync.rule).every_step) return drain + in_flight;
  return drain + in_flight + ", or raise [sync] inner_batch (now " + std::to_string(config.sync.inner_batch) + ")";
}

std::string text_of(StageId stage, double delay, const RunConfig& config) {
  return formatted("the gradients of stage %u are %.2f inner steps late on average, more than %.1f", +stage.value,
                   delay, DelayWatch::kDelayBorne) +
         ": validation loss may fall behind that of one process. HINT: in the next run's RUN.toml, " + remedy(config);
}

}  // namespace

std::optional<std::string> DelayWatch::take(const std::vector<StageStatus>& stages, const RunConfig& config) {
  for (const StageStatus& stage : stages) {
    if (!stage.delay) continue;
    if (delays_.size() <= stage.stage.value) delays_.resize(stage.stage.value + std::size_t{1});
    delays_[stage.stage.value] = stage.delay;
  }
  const auto latest = std::max_element(delays_.begin(), delays_.end());
  if (latest == delays_.end() || !*latest || **latest <= kDelayBorne || warned_) return std::nullopt;
  warned_ = true;
  return text_of(StageId(static_cast<std::uint16_t>(latest - delays_.begin())), **latest, config);
}

std::optional<double> DelayWatch::largest() const {
  const auto latest = std::max_element(delays_.begin(), delays_.end());
  return latest == delays_.end() ? std::nullopt : *latest;
}

}  // namespace shoal
