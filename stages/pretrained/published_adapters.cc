#include "stages/pretrained/published_adapters.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "common/check.h"
#include "common/os/posix_file.h"
#include "stages/adapters.h"
#include "stages/safetensors.h"

namespace shoal {
namespace {

nlohmann::ordered_json config_of(const ModelSpec& model, const std::string& base) {
  return {{"peft_type", "LORA"},
          {"task_type", "CAUSAL_LM"},
          {"base_model_name_or_path", base},
          {"r", model.lora_rank},
          {"lora_alpha", adapter_scale(model) * model.lora_rank},
          {"lora_dropout", 0.0},
          {"target_modules", adapter_targets(model)},
          {"bias", "none"},
          {"fan_in_fan_out", row_of(model.family).input_first},
          {"use_rslora", false},
          {"use_dora", false},
          {"init_lora_weights", true},
          {"inference_mode", true}};
}

}  // namespace

Status publish_adapters(const std::string& folder, const std::vector<LoadedStage>& stages, const std::string& base) {
  SHOAL_CHECK(!stages.empty());
  const ModelSpec& model = stages.front().spec.model;
  std::vector<SafetensorsHeader::Place> places;
  std::map<std::string, std::span<const float>> values;
  for (const LoadedStage& stage : stages) {
    for (const ParameterSpec& parameter : parameters_of(stage.spec)) {
      const std::string name = "base_model.model." + published_name(row_of(model.family), parameter.name);
      values[name] = std::span(stage.parameters)
                         .subspan(parameter.offset, static_cast<std::size_t>(element_count(parameter.shape)));
      places.push_back({name, StoredType::kF32, parameter.shape});
    }
  }
  std::vector<Bytes> parts{safetensors_header({}, places)};
  for (const SafetensorsHeader::Place& place : places)
    parts.push_back(Bytes::wrap(nullptr, bytes_of(values.at(place.name))));  // the caller's, for the call
  SHOAL_TRY(replace_file((std::filesystem::path(folder) / kAdapterWeightsName).string(), parts));
  const std::string config = config_of(model, base).dump(2) + "\n";
  return replace_file((std::filesystem::path(folder) / kAdapterConfigName).string(),
                      {Bytes::copy_of(std::string_view(config))});
}

}  // namespace shoal
