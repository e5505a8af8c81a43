#include "runtime/solo/stage_chain.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "common/os/posix_file.h"
#include "runtime/solo/base_model.h"
#include "runtime/solo/saved_model.h"
#include "stages/adapters.h"
#include "stages/host_coder.h"
#include "stages/pretrained/pretrained_folder.h"
#include "stages/stage_file.h"

namespace shoal {
namespace {

using Stages = std::vector<std::unique_ptr<StageExecutor>>;

// The exact executor has a parameter vector of its own instead of a model's; it starts from zeros.
bool holds_model(StageExecutor& stage) { return stage.arena().size() == parameter_count(stage.spec()); }

// All parameters of a stage of a folder: those that are trained, or the base of the adapters that are.
Status read_folder(const PretrainedFolder& folder, StageExecutor& stage) {
  const ArenaRole role = has_adapters(stage.spec().model) ? ArenaRole::kBase : ArenaRole::kCurrent;
  SHOAL_TRY(folder.read_stage(base_of(stage.spec()), stage.arena().span(role)));
  stage.arena().push(role);
  return {};
}

void draw(StageExecutor& stage) {
  initialise(stage.spec(), stage.arena().span(ArenaRole::kCurrent));
  stage.arena().push(ArenaRole::kCurrent);
}

Error no_model() {
  return make_error(ErrorCode::kUnsupported, "this executor holds no model: use [executor] kind = \"torch\"");
}

}  // namespace

Result<StageChain> StageChain::make(const RunConfig& config, const ExecutorFactory& factory,
                                    const std::function<void(const std::string&)>& note) {
  if (config.model.from.empty() && !config.model.weights.empty())
    return make_error(ErrorCode::kInput,
                      "[model] weights names the digests of a model, and no folder has it. HINT: give [model] from");
  if (config.model.from.empty() && has_adapters(config.model))
    return make_error(ErrorCode::kInput,
                      "[model] lora_rank trains adapters beside a model that exists. HINT: give [model] from");
  std::optional<PretrainedFolder> from;
  if (!config.model.from.empty()) {
    SHOAL_ASSIGN(from, PretrainedFolder::open(config.model.from));
    for (const std::string& said : from->notes())
      if (note) note(said);
  }
  SHOAL_ASSIGN(const auto specs,
               split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage));
  Stages stages;
  for (const StageSpec& spec : specs) {
    SHOAL_ASSIGN(auto stage, factory(spec));
    if (from && !holds_model(*stage)) return no_model();
    if (from) SHOAL_TRY(read_folder(*from, *stage));
    if (holds_model(*stage) && (!from || has_adapters(spec.model))) draw(*stage);
    stages.push_back(std::move(stage));
  }
  return StageChain(std::move(stages));
}

Result<StageChain> StageChain::load(const std::string& folder, const ExecutorFactory& factory,
                                    const std::string& base) {
  SHOAL_TRY(check_saved_model(folder));
  SHOAL_ASSIGN(const auto saved, load_model(folder));
  SHOAL_ASSIGN(const std::optional<BaseModel> beside, BaseModel::beside(folder, saved.front().spec.model, base));
  Stages stages;
  for (const LoadedStage& from : saved) {
    SHOAL_ASSIGN(auto stage, factory(from.spec));
    if (!holds_model(*stage)) return no_model();
    std::ranges::copy(from.parameters, stage->arena().span(ArenaRole::kAnchor).begin());
    stage->arena().push(ArenaRole::kAnchor);
    if (beside) {
      SHOAL_TRY(beside->read_stage(from.spec, stage->arena().span(ArenaRole::kBase)));
      stage->arena().push(ArenaRole::kBase);
    }
    stages.push_back(std::move(stage));
  }
  return StageChain(std::move(stages));
}

Result<StageChain> StageChain::open(const std::string& folder, const ExecutorFactory& factory,
                                    const std::string& base) {
  const std::filesystem::path path = folder;
  if (std::filesystem::exists(path / kSavedConfigName) || !std::filesystem::exists(path / kArchitectureFileName))
    return load(folder, factory, base);
  SHOAL_ASSIGN(const PretrainedFolder from, PretrainedFolder::open(folder));
  SHOAL_TRY(BaseModel::beside(folder, from.model(), base));
  SHOAL_ASSIGN(const auto specs, split_model(from.model(), 1));
  Stages stages;
  SHOAL_ASSIGN(auto stage, factory(specs.front()));
  if (!holds_model(*stage)) return no_model();
  SHOAL_TRY(from.read_stage(specs.front(), stage->arena().span(ArenaRole::kAnchor)));
  stage->arena().push(ArenaRole::kAnchor);
  stages.push_back(std::move(stage));
  return StageChain(std::move(stages));
}

Result<MeanLoss> StageChain::train(const MicrobatchId& microbatch, const HostTensor& tokens) {
  const EntrySerial entry = next_entry_++;
  HostTensor travelling;
  MeanLoss loss;
  for (const auto& stage : stages_) {
    HostCoder coder(std::move(travelling));
    SHOAL_ASSIGN(const ForwardOutput out,
                 stage->forward({.entry = entry, .microbatch = microbatch, .tokens = tokens}, coder));
    travelling = coder.output();
    loss = {out.loss_sum, out.targets};
  }
  travelling = {};
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
    HostCoder coder(std::move(travelling));
    SHOAL_TRY((*stage)->backward_input(entry, coder));
    SHOAL_TRY((*stage)->backward_weights(entry, WindowSlot::kA));
    (*stage)->settle(entry);
    travelling = coder.output();
  }
  return loss;
}

Result<MeanLoss> StageChain::train(const MicrobatchId& microbatch, const HostTensor& tokens, SampleId sample,
                                   CodedEdges& edges) {
  const EntrySerial entry = next_entry_++;
  Bytes travelling;
  MeanLoss loss;
  for (const auto& stage : stages_) {
    ActivationCoder coder = edges.forward_coder(stage->spec(), microbatch, sample, std::move(travelling));
    SHOAL_ASSIGN(const ForwardOutput out,
                 stage->forward({.entry = entry, .microbatch = microbatch, .tokens = tokens}, coder));
    travelling = edges.forwarded(stage->spec(), sample, coder);
    loss = {out.loss_sum, out.targets};
  }
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
    GradientCoder coder = edges.backward_coder((*stage)->spec(), microbatch, std::move(travelling));
    SHOAL_TRY((*stage)->backward_input(entry, coder));
    SHOAL_TRY((*stage)->backward_weights(entry, WindowSlot::kA));
    (*stage)->settle(entry);
    travelling = edges.returned(coder);
  }
  return loss;
}

Status StageChain::step(const InnerStep& step) {
  for (const auto& stage : stages_) SHOAL_TRY(stage->inner_step(WindowSlot::kA, step));
  return {};
}

void StageChain::publish() {
  for (const auto& stage : stages_) stage->arena().copy(ArenaRole::kCurrent, ArenaRole::kAnchor);
}

Result<MeanLoss> StageChain::evaluate(const HostTensor& tokens) {
  HostTensor travelling;
  MeanLoss loss;
  for (const auto& stage : stages_) {
    HostCoder coder(std::move(travelling));
    SHOAL_ASSIGN(const ForwardOutput out, stage->evaluate({.microbatch = {}, .tokens = tokens}, coder));
    travelling = coder.output();
    loss = {out.loss_sum, out.targets};
  }
  return loss;
}

Result<MeanLoss> StageChain::validate(const Samples& samples, std::uint64_t limit,
                                      const std::function<bool(std::uint64_t done, std::uint64_t of)>& go_on) {
  const std::uint64_t count = limit == 0 ? samples.validation() : std::min(limit, samples.validation());
  MeanLoss total;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (go_on && !go_on(i, count)) return make_error(ErrorCode::kInterrupted, "validation was stopped");
    SHOAL_ASSIGN(const MeanLoss one, evaluate(samples.tokens(SampleId{samples.training() + i})));
    total.loss_sum += one.loss_sum;
    total.targets += one.targets;
  }
  return total;
}

Status StageChain::save(const std::string& folder, const RunConfig& config) {
  std::vector<StageSpec> specs;
  for (const auto& stage : stages_) specs.push_back(stage->spec());
  NewFiles made;
  expect_saved_model(made, folder, specs);
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return error_of_errno("create the folder", folder, failure.value());
  for (const auto& stage : stages_) {
    if (!holds_model(*stage))
      return make_error(ErrorCode::kUnsupported, "only a model can be saved: use [executor] kind = \"torch\"");
    stage->arena().pull(ArenaRole::kAnchor);
    SHOAL_TRY(save_stage(folder, stage->spec(), stage->arena().span(ArenaRole::kAnchor)));
  }
  SHOAL_TRY(finish_saved_model(folder, config, specs));
  made.keep();
  return {};
}

}  // namespace shoal
