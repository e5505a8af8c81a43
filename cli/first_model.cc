#include "cli/first_model.h"

#include "common/log.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "stages/adapters.h"

namespace shoal {
namespace {

// A run that peers have the states of goes on without the folder that it began from.
Status check_weights_without_folder(const RunConfig& config, bool resume) {
  if (config.model.weights.empty()) {
    if (!has_adapters(config.model)) return {};
    return make_error(ErrorCode::kInput,
                      "[model] lora_rank trains adapters beside a model that exists. HINT: give [model] from = "
                      "\"FOLDER\"");
  }
  if (!resume)
    return make_error(ErrorCode::kInput,
                      "[model] weights names the digests of a model that the run begins from, and no folder has it. "
                      "HINT: give [model] from = \"FOLDER\"");
  log_warning(
      "the run goes on without the folder that it began from: a stage of which nobody has a state waits for it");
  return {};
}

}  // namespace

Result<std::unique_ptr<FirstModel>> FirstModel::open(RunConfig& config, bool resume, HeadwayMeter& meter) {
  if (config.model.from.empty()) {
    SHOAL_TRY(check_weights_without_folder(config, resume));
    return std::unique_ptr<FirstModel>();
  }
  SHOAL_ASSIGN(PretrainedFolder folder, PretrainedFolder::open(config.model.from));
  for (const std::string& note : folder.notes()) log_info(note);
  SHOAL_ASSIGN(auto specs, split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage));
  for (StageSpec& spec : specs) spec = base_of(std::move(spec));
  const auto measured = [&meter](std::uint64_t done, std::uint64_t of) {
    show_headway(meter, {.what = "reading the model", .done = done, .total = of});
  };
  SHOAL_ASSIGN(FirstStates states,
               measure_first_states(std::move(specs), std::make_shared<PretrainedFolder>(std::move(folder)), measured));
  end_status();
  std::vector<Digest> digests;
  for (const FirstStates::Part& part : states.parts) digests.push_back(part.state.digest);
  if (!resume) config.model.weights = digests;
  if (config.model.weights == digests) return std::unique_ptr<FirstModel>(new FirstModel(std::move(states)));
  return make_error(ErrorCode::kInput, config.model.from +
                                           " holds other weights than the run began with. HINT: give it the folder "
                                           "that it had");
}

}  // namespace shoal
