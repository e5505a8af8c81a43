#include "stages/stage_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <type_traits>

#include "common/check.h"
#include "common/formatted.h"
#include "common/os/posix_file.h"
#include "kernels/accumulate.h"
#include "stages/adapters.h"
#include "stages/boundary.h"
#include "stages/json_text.h"
#include "stages/safetensors.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIndexBytesMax = 64u << 20;
constexpr std::size_t kListMax = 4096;  // entries of a list of numbers

// Family and shape's extras stand there only when they are others than the usual ones: files that older programs wrote
// have none.
constexpr char kFamilyKey[] = "shoal.family";

template <class Each>
void for_each_extra(const Each& each) {
  each("shoal.context", &ModelSpec::context);
  each("shoal.kv_heads", &ModelSpec::kv_heads);
  each("shoal.head_width", &ModelSpec::head_width);
  each("shoal.inner", &ModelSpec::inner);
  each("shoal.norm_epsilon", &ModelSpec::norm_epsilon);
  each("shoal.rope_theta", &ModelSpec::rope_theta);
  each("shoal.rope_scaling", &ModelSpec::rope_scaling);
  each("shoal.attention", &ModelSpec::extras);
  each("shoal.lora_rank", &ModelSpec::lora_rank);
  each("shoal.lora_alpha", &ModelSpec::lora_alpha);
  each("shoal.lora_targets", &ModelSpec::lora_targets);
  each("shoal.boundary", &ModelSpec::boundary);
  each("shoal.boundary_table", &ModelSpec::boundary_table);
  each("shoal.cuts", &ModelSpec::cuts);
}

std::string text_of(std::uint32_t value) { return std::to_string(value); }
std::string text_of(double value) { return json_number(value); }
std::string text_of(AttentionExtras extras) { return std::string(kExtrasNames[static_cast<std::size_t>(extras)]); }
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string text;
  for (const T value : values) text += (text.empty() ? "" : ",") + text_of(value);
  return text;
}
std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

StringMap metadata_of(const StageSpec& spec) {
  StringMap metadata{{"shoal.format", "1"},
                     {"shoal.layers", std::to_string(spec.model.layers)},
                     {"shoal.dim", std::to_string(spec.model.dim)},
                     {"shoal.heads", std::to_string(spec.model.heads)},
                     {"shoal.positions", std::to_string(spec.model.positions)},
                     {"shoal.vocabulary", std::to_string(spec.model.vocabulary)},
                     {"shoal.seed", std::to_string(spec.model.seed)},
                     {"shoal.stage", std::to_string(spec.stage.value)},
                     {"shoal.stages", std::to_string(spec.stages)},
                     {"shoal.first_layer", std::to_string(spec.first_layer)},
                     {"shoal.end_layer", std::to_string(spec.end_layer)}};
  const std::string_view family = row_of(spec.model.family).name;
  if (spec.model.family != ModelFamily{}) metadata[kFamilyKey] = family;
  for_each_extra([&, usual = ModelSpec{}](const char* key, auto member) {
    if (spec.model.*member != usual.*member) metadata[key] = text_of(spec.model.*member);
  });
  return metadata;
}

Result<ModelFamily> family_of(const StringMap& metadata) {
  const auto found = metadata.find(kFamilyKey);
  if (found == metadata.end()) return ModelFamily{};
  const std::span<const std::string_view> names = family_names();
  const auto name = std::ranges::find(names, found->second);
  if (name == names.end())
    return make_error(ErrorCode::kUnsupported,
                      "stage file: this build knows no model family \"" + found->second + "\"");
  return static_cast<ModelFamily>(name - names.begin());
}

template <class T>
requires std::is_arithmetic_v<T>
bool read_text(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(out)) return false;
  }
  return error == std::errc() && end == text.data() + text.size();
}
template <class T>
requires std::is_arithmetic_v<T>
bool read_text(std::string_view text, std::vector<T>& out) {
  for (std::size_t at = 0; at <= text.size() && out.size() <= kListMax;) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (!read_text(text.substr(at, end - at), out.emplace_back())) return false;
    at = end + 1;
  }
  return out.size() <= kListMax;
}
bool read_text(std::string_view text, std::vector<std::string>& out) {
  for (std::size_t at = 0; at <= text.size(); at = std::min(text.find(',', at), text.size()) + 1)
    out.emplace_back(text.substr(at, text.find(',', at) - at));
  return true;  // split_model() judges the words
}
bool read_text(std::string_view text, AttentionExtras& out) {
  const auto* name = std::ranges::find(kExtrasNames, text);
  out = static_cast<AttentionExtras>(name - kExtrasNames);
  return name != std::end(kExtrasNames);
}

Error unreadable(const char* key) {
  return make_error(ErrorCode::kMalformed, std::string("stage file: metadata ") + key + " is not a value in range");
}

template <class T>
Status read_number(const StringMap& metadata, const char* key, T& out) {
  const auto found = metadata.find(key);
  if (found == metadata.end())
    return make_error(ErrorCode::kMalformed, std::string("stage file: metadata lacks ") + key);
  return read_text(found->second, out) ? Status::success() : Status(unreadable(key));
}

Status read_extras(const StringMap& metadata, ModelSpec& model) {
  Status read;
  for_each_extra([&](const char* key, auto member) {
    const auto found = metadata.find(key);
    if (found != metadata.end() && !read_text(found->second, model.*member)) read = unreadable(key);
  });
  return read;
}

Result<StageSpec> spec_of(const StringMap& metadata) {
  StageSpec spec;
  int format = 0;
  SHOAL_TRY(read_number(metadata, "shoal.format", format));
  if (format != 1)
    return make_error(ErrorCode::kUnsupported, "stage file: format " + std::to_string(format) + ", this build reads 1");
  SHOAL_ASSIGN(spec.model.family, family_of(metadata));
  SHOAL_TRY(read_number(metadata, "shoal.layers", spec.model.layers));
  SHOAL_TRY(read_number(metadata, "shoal.dim", spec.model.dim));
  SHOAL_TRY(read_number(metadata, "shoal.heads", spec.model.heads));
  SHOAL_TRY(read_number(metadata, "shoal.positions", spec.model.positions));
  SHOAL_TRY(read_number(metadata, "shoal.vocabulary", spec.model.vocabulary));
  SHOAL_TRY(read_number(metadata, "shoal.seed", spec.model.seed));
  SHOAL_TRY(read_number(metadata, "shoal.stage", spec.stage.value));
  SHOAL_TRY(read_number(metadata, "shoal.stages", spec.stages));
  SHOAL_TRY(read_number(metadata, "shoal.first_layer", spec.first_layer));
  SHOAL_TRY(read_number(metadata, "shoal.end_layer", spec.end_layer));
  SHOAL_TRY(read_extras(metadata, spec.model));
  const Result<std::vector<StageSpec>> model = split_model(spec.model, 1);
  if (!model.ok()) return make_error(ErrorCode::kMalformed, "stage file: " + model.error().message);
  if (spec.stage.value >= spec.stages || spec.first_layer >= spec.end_layer || spec.end_layer > spec.model.layers ||
      !may_meet_at(spec.model, spec.first_layer) || !may_meet_at(spec.model, spec.end_layer)) {
    return make_error(ErrorCode::kMalformed, "stage file: stage and layers do not fit the model");
  }
  return spec;
}

// The stage files of a saved model: those that its index names, or all when there is no index. A folder may hold files
// of an earlier model that was split otherwise.
Result<std::vector<std::string>> stage_files_in(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("model-") && name.ends_with(".safetensors")) names.push_back(name);
  }
  if (error) return make_error(ErrorCode::kMissing, directory + ": " + error.message());
  const auto index = read_file((fs::path(directory) / kIndexFileName).string(), kIndexBytesMax);
  if (!index.ok() && index.code() != ErrorCode::kMissing) return index.error();
  if (index.ok()) {
    const std::string_view text(reinterpret_cast<const char*>(index->data()), index->size());
    std::erase_if(names, [&](const std::string& name) { return text.find('"' + name + '"') == text.npos; });
  }
  if (names.empty())
    return make_error(ErrorCode::kMissing,
                      directory + " holds no model-*.safetensors. HINT: give the folder of --save");
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string stage_file_name(StageId stage, std::uint16_t stages) {
  return formatted("model-%05u-of-%05u.safetensors", stage.value + 1u, +stages);
}

std::vector<Bytes> stage_file_parts(const StageSpec& spec, std::span<const float> parameters) {
  SHOAL_CHECK_EQ(parameters.size(), parameter_count(spec));
  std::vector<NamedTensor> tensors;
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const auto values = parameters.subspan(parameter.offset, static_cast<std::size_t>(element_count(parameter.shape)));
    tensors.push_back({parameter.name, {DType::kF32, parameter.shape, bytes_of(values)}});
  }
  return safetensors_parts(metadata_of(spec), std::move(tensors));
}

Bytes index_file(const std::vector<StageSpec>& specs) {
  StringMap files;
  std::size_t bytes = 0;
  for (const StageSpec& spec : specs) {
    bytes += parameter_count(spec) * sizeof(float);
    for (const ParameterSpec& parameter : parameters_of(spec))
      files[parameter.name] = stage_file_name(spec.stage, spec.stages);
  }
  std::string json = "{\"metadata\":{\"total_size\":" + std::to_string(bytes) + "},\"weight_map\":{";
  bool first = true;
  for (const auto& [tensor, file] : files) {
    json += std::string(first ? "" : ",") + "\n\"" + tensor + "\":\"" + file + "\"";
    first = false;
  }
  return Bytes::copy_of(std::string_view(json + "\n}}\n"));
}

bool has_architecture(const ModelSpec& model) { return !has_adapters(model) && !has_boundary(model); }

std::vector<std::pair<std::string_view, std::string>> architecture_of(const ModelSpec& model) {
  auto entries = row_of(model.family).architecture(model);
  entries.insert(entries.end(), {{"torch_dtype", "\"float32\""},
                                 {"vocab_size", std::to_string(model.vocabulary)},
                                 {"tie_word_embeddings", "false"},
                                 {"bos_token_id", "null"},
                                 {"eos_token_id", "null"}});
  return entries;
}

Bytes architecture_file(const ModelSpec& model) {
  std::string json = "{";
  for (const auto& [key, value] : architecture_of(model))
    json += std::string(json.size() > 1 ? "," : "") + "\n  \"" + std::string(key) + "\": " + value;
  return Bytes::copy_of(std::string_view(json + "\n}\n"));
}

Result<LoadedStage> parse_stage_file(Bytes file) {
  SHOAL_ASSIGN(const Safetensors parsed, parse_safetensors(std::move(file)));
  LoadedStage loaded;
  SHOAL_ASSIGN(loaded.spec, spec_of(parsed.metadata));
  std::map<std::string, const TensorView*> by_name;
  std::size_t held = 0;
  for (const NamedTensor& entry : parsed.tensors) {
    by_name[entry.name] = &entry.tensor;
    held += entry.tensor.bytes.size();
  }
  // Before memory is reserved: metadata alone must not make us allocate more than the file holds.
  const std::vector<ParameterSpec> expected = parameters_of(loaded.spec);
  if (expected.size() != by_name.size() || parameter_count(loaded.spec) * sizeof(float) != held) {
    return make_error(ErrorCode::kMalformed,
                      "stage file: its tensors are not those of the stage that its metadata describe");
  }
  loaded.parameters.resize(parameter_count(loaded.spec));
  for (const ParameterSpec& parameter : expected) {
    const auto found = by_name.find(parameter.name);
    if (found == by_name.end() || found->second->dtype != DType::kF32 || found->second->shape != parameter.shape) {
      return make_error(ErrorCode::kMalformed, "stage file: tensor \"" + parameter.name + "\" is missing or not " +
                                                   text_of(parameter.shape) + " of F32");
    }
    std::memcpy(loaded.parameters.data() + parameter.offset, found->second->bytes.data(), found->second->bytes.size());
  }
  if (!all_finite(loaded.parameters)) return make_error(ErrorCode::kNonFinite, "stage file: a parameter is not finite");
  return loaded;
}

Status save_stage(const std::string& directory, const StageSpec& spec, std::span<const float> parameters) {
  return replace_file((fs::path(directory) / stage_file_name(spec.stage, spec.stages)).string(),
                      stage_file_parts(spec, parameters));
}

Status save_index(const std::string& directory, const std::vector<StageSpec>& specs) {
  SHOAL_CHECK(!specs.empty());
  SHOAL_TRY(replace_file((fs::path(directory) / kIndexFileName).string(), {index_file(specs)}));
  const ModelSpec& model = specs.front().model;
  const std::string architecture = (fs::path(directory) / kArchitectureFileName).string();
  if (has_architecture(model)) return replace_file(architecture, {architecture_file(model)});
  if (has_adapters(model)) return {};  // what lies there may be their base's
  std::error_code failure;
  fs::remove(architecture, failure);
  return failure ? Status(error_of_errno("remove", architecture, failure.value())) : Status();
}

Status read_stages(const std::string& directory, const std::function<Status(LoadedStage)>& take) {
  SHOAL_ASSIGN(const std::vector<std::string> names, stage_files_in(directory));
  StageSpec before{.model = {}, .stage = {}, .stages = 0};
  for (const std::string& name : names) {
    const std::string path = (fs::path(directory) / name).string();
    SHOAL_ASSIGN(Bytes bytes, read_file(path, SIZE_MAX));
    Result<LoadedStage> loaded = parse_stage_file(std::move(bytes));
    if (!loaded.ok()) return make_error(loaded.code(), path + ": " + loaded.error().message);
    const StageSpec spec = loaded->spec;
    const bool follows = before.stages == 0 ? spec.stage.value == 0 && spec.first_layer == 0
                                            : spec.stage == before.route().next &&
                                                  spec.first_layer == before.end_layer && spec.model == before.model;
    if (!follows || spec.stages != names.size()) {
      return make_error(ErrorCode::kMalformed,
                        path + ": does not follow the stage before it, or a stage's file is missing");
    }
    before = spec;
    SHOAL_TRY(take(std::move(*loaded)));
  }
  if (before.end_layer == before.model.layers) return {};
  return make_error(ErrorCode::kMalformed, directory + ": the last layers are missing");
}

Result<std::vector<LoadedStage>> load_model(const std::string& directory) {
  std::vector<LoadedStage> stages;
  SHOAL_TRY(read_stages(directory, [&stages](LoadedStage stage) {
    stages.push_back(std::move(stage));
    return Status();
  }));
  return stages;
}

}  // namespace shoal
