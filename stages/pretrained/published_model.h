#pragma once
// A model written as Python's transformers reads it (AutoModelForCausalLM.from_pretrained), a stage at a time: one
// safetensors file a stage with an index, or model.safetensors where there is one stage; config.json and
// generation_config.json. A model with a narrow boundary brings its class along, as modeling_boundary.py, which
// from_pretrained runs with trust_remote_code alone and else refuses. Thread: any; blocking file I/O.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "stages/stage_spec.h"

namespace shoal {

// What the values become.
enum class PublishedType : std::uint8_t { kFp32 = 0, kBf16 = 1 };
inline constexpr std::string_view kPublishedTypeNames[] = {"fp32", "bf16"};
// REQUIRES: one of these.
PublishedType published_type_named(std::string_view name);

// Ids that mean the beginning and the end of a text, where they are known: of ends there may be several.
struct PublishedEnds {
  std::optional<std::uint32_t> begin;
  std::vector<std::uint32_t> ends;
};

inline constexpr char kBoundaryClassName[] = "modeling_boundary.py";
extern const std::string_view kBoundaryClass;  // what that file holds

// The file of a stage's weights.
std::string published_file_name(const StageSpec& spec);
// The folder is made. ERRORS: kOutput (it cannot be made, or a model is in it already: files of both would be mixed).
Status begin_published_model(const std::string& folder);
// REQUIRES: parameters.size() == parameter_count(spec). ERRORS: kIo.
Status publish_stage(const std::string& folder, const StageSpec& spec, std::span<const float> parameters,
                     PublishedType type);
// What belongs to the files of all stages. REQUIRES: all stages of one model, in order. ERRORS: kIo.
Status finish_published_model(const std::string& folder, const std::vector<StageSpec>& specs, PublishedType type,
                              const PublishedEnds& ends);

}  // namespace shoal
