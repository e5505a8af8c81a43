#pragma once
// A saved model: one safetensors file a stage, with the names of its family's class in Python's transformers, plus an
// index, plus the file from which transformers takes the architecture (docs/FILES.md).
//   DIR/model-00001-of-00004.safetensors ... DIR/model.safetensors.index.json, DIR/config.json
// The stage's spec travels in the file's metadata under "shoal.*" keys, so that a directory describes itself.
// Thread: any; blocking file I/O in save and load.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "stages/stage_spec.h"

namespace shoal {

std::string stage_file_name(StageId stage, std::uint16_t stages);
inline constexpr char kIndexFileName[] = "model.safetensors.index.json";
inline constexpr char kArchitectureFileName[] = "config.json";

// The bytes of a stage's file; copies. REQUIRES: parameters.size() == parameter_count(spec).
std::vector<Bytes> stage_file_parts(const StageSpec& spec, std::span<const float> parameters);
// Which tensor lies in which file, and the bytes of all.
Bytes index_file(const std::vector<StageSpec>& specs);

// Whether a saved model has config.json. Adapters alone and a model with a narrow boundary have none: transformers
// would take them for a whole model, and for a plain one.
bool has_architecture(const ModelSpec& model);
// The entries of config.json, from which Python's transformers takes the architecture: key, value as JSON. The
// family's, and those that every model has alike.
std::vector<std::pair<std::string_view, std::string>> architecture_of(const ModelSpec& model);
// config.json, which describes the model to Python's transformers.
Bytes architecture_file(const ModelSpec& model);

struct LoadedStage {
  StageSpec spec;
  std::vector<float> parameters;  // in arena order
};
// ERRORS: kMalformed (format, metadata, or tensors that are not exactly those of the spec), kUnsupported, kTooLarge,
// kNonFinite.
Result<LoadedStage> parse_stage_file(Bytes file);

// Temporary file, fsync, rename, fsync of the directory. ERRORS: kMissing (no such folder), kIo (the path and the
// system's reason).
Status save_stage(const std::string& directory, const StageSpec& spec, std::span<const float> parameters);
// Both files; without has_architecture() the index alone. Of a model with a boundary an earlier one's config.json goes.
// REQUIRES: specs not empty. ERRORS: kIo.
Status save_index(const std::string& directory, const std::vector<StageSpec>& specs);
// The stages of a directory one after the other, each in memory only while `take` has it. ERRORS: load_model's, take's.
Status read_stages(const std::string& directory, const std::function<Status(LoadedStage)>& take);
// All stages of a directory, in order. ERRORS: kMissing (no such file), kIo, and parse_stage_file's; kMalformed when
// files disagree.
Result<std::vector<LoadedStage>> load_model(const std::string& directory);

}  // namespace shoal
