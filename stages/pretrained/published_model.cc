#include "stages/pretrained/published_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "common/os/posix_file.h"
#include "kernels/half.h"
#include "stages/boundary.h"
#include "stages/pretrained/model_config.h"
#include "stages/safetensors.h"
#include "stages/stage_file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

StoredType stored_type(PublishedType type) {
  return type == PublishedType::kBf16 ? StoredType::kBf16 : StoredType::kF32;
}

Status write_json(const std::string& folder, const char* name, const Json& json) {
  return replace_file((fs::path(folder) / name).string(), {Bytes::copy_of(std::string_view(json.dump(2) + "\n"))});
}

// Around the cuts of a model with a boundary stands the plain one.
std::string name_in_folder(const ModelSpec& model, const std::string& name) {
  if (is_of_boundary(name)) return name;
  return std::string(has_boundary(model) ? kInsideBoundary : "") + published_name(row_of(model.family), name);
}

// What a plain loader knows no class for.
Json with_boundary(const ModelSpec& model, Json plain) {
  Json config = {{"architectures", {"BoundaryForCausalLM"}},
                 {"model_type", kBoundaryModelType},
                 {"auto_map",
                  {{"AutoConfig", "modeling_boundary.BoundaryConfig"},
                   {"AutoModelForCausalLM", "modeling_boundary.BoundaryForCausalLM"}}},
                 {"boundary", model.boundary},
                 {"boundary_table", model.boundary_table},
                 {"cuts", model.cuts},
                 {"tie_word_embeddings", false}};
  for (const char* key : {"torch_dtype", "dtype", "bos_token_id", "eos_token_id"})
    if (plain.contains(key)) config[key] = plain[key];
  config["base"] = std::move(plain);
  return config;
}

Json index_of(const std::vector<StageSpec>& specs, PublishedType type) {
  std::map<std::string, std::string> files;
  std::uint64_t bytes = 0;
  for (const StageSpec& spec : specs) {
    bytes += parameter_count(spec) * size_of(stored_type(type));
    for (const ParameterSpec& parameter : parameters_of(spec))
      files[name_in_folder(spec.model, parameter.name)] = published_file_name(spec);
  }
  return {{"metadata", {{"total_size", bytes}}}, {"weight_map", files}};
}

// One id, or a list of several.
Json json_of(const std::vector<std::uint32_t>& ids) {
  return ids.empty() ? Json() : ids.size() == 1 ? Json(ids.front()) : Json(ids);
}

}  // namespace

PublishedType published_type_named(std::string_view name) {
  return static_cast<PublishedType>(std::ranges::find(kPublishedTypeNames, name) - std::begin(kPublishedTypeNames));
}

// from_pretrained looks for the first name before it looks for an index.
std::string published_file_name(const StageSpec& spec) {
  return spec.stages == 1 ? "model.safetensors" : stage_file_name(spec.stage, spec.stages);
}

Status begin_published_model(const std::string& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return cannot_make(error_of_errno("create the folder", folder, failure.value()));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure))
    if (entry.path().extension() == ".safetensors" || entry.path().filename() == kArchitectureFileName)
      return make_error(ErrorCode::kOutput, folder + " holds a model already (" + entry.path().filename().string() +
                                                "). HINT: name another folder");
  if (failure) return cannot_make(error_of_errno("read the folder", folder, failure.value()));
  return {};
}

Status publish_stage(const std::string& folder, const StageSpec& spec, std::span<const float> parameters,
                     PublishedType type) {
  SHOAL_CHECK_EQ(parameters.size(), parameter_count(spec));
  std::vector<SafetensorsHeader::Place> places;
  std::map<std::string, std::span<const float>> values;
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const std::string name = name_in_folder(spec.model, parameter.name);
    values[name] = parameters.subspan(parameter.offset, static_cast<std::size_t>(element_count(parameter.shape)));
    places.push_back({name, stored_type(type), parameter.shape});
  }
  std::vector<Bytes> parts{safetensors_header({}, places)};
  for (const SafetensorsHeader::Place& place : places) {
    const std::span<const float> floats = values.at(place.name);
    if (type == PublishedType::kFp32) {
      parts.push_back(Bytes::wrap(nullptr, bytes_of(floats)));  // the caller's, for the call
      continue;
    }
    std::vector<std::uint8_t> halves(2 * floats.size());
    narrow_to_half(HalfFormat::kBf16, floats, halves);
    parts.push_back(Bytes::from_vector(std::move(halves)));
  }
  return replace_file((fs::path(folder) / published_file_name(spec)).string(), parts);
}

Status finish_published_model(const std::string& folder, const std::vector<StageSpec>& specs, PublishedType type,
                              const PublishedEnds& ends) {
  SHOAL_CHECK(!specs.empty());
  const ModelSpec& model = specs.front().model;
  Json config = Json::object();
  for (const auto& [key, value] : architecture_of(model)) config[key] = Json::parse(value);
  if (type == PublishedType::kBf16)
    for (const char* key : {"torch_dtype", "dtype"})
      if (config.contains(key)) config[key] = "bfloat16";
  config["bos_token_id"] = ends.begin ? Json(*ends.begin) : Json();
  config["eos_token_id"] = json_of(ends.ends);
  Json generation = {{"_from_model_config", true}};
  if (ends.begin) generation["bos_token_id"] = *ends.begin;
  if (!ends.ends.empty()) generation["eos_token_id"] = json_of(ends.ends);
  if (specs.size() > 1) SHOAL_TRY(write_json(folder, kIndexFileName, index_of(specs, type)));
  SHOAL_TRY(write_json(folder, "generation_config.json", generation));
  if (has_boundary(model)) {
    config = with_boundary(model, std::move(config));
    SHOAL_TRY(replace_file((fs::path(folder) / kBoundaryClassName).string(), {Bytes::copy_of(kBoundaryClass)}));
  }
  return write_json(folder, kArchitectureFileName, config);
}

}  // namespace shoal
