#include "stages/pretrained/model_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>

#include "common/formatted.h"
#include "stages/boundary.h"
#include "stages/stage_spec.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kExtentMax = 1u << 24;
constexpr std::uint32_t kFullLayers = 28;  // max_window_layers where it is not given

struct ExtentKey {
  std::string_view key;
  std::uint32_t ModelSpec::*extent;
  bool may_lack = false;  // 0 is then what the class means, too
};
// A key whose value changes what is computed: we have the values of a JSON list, and what an absent key and null mean.
struct AcceptedKey {
  std::string_view key, values;
};

// What the keys of one `model_type` mean. All that is particular to it stands here.
struct Architecture {
  std::string_view model_type;
  ModelFamily family;
  AttentionExtras extras;
  std::span<const ExtentKey> extents;
  std::string_view epsilon;
  bool tied;                // where tie_word_embeddings is not given
  std::uint32_t window;     // sliding_window where it is not given; 0: none
  bool window_is_switched;  // sliding_window counts only with use_sliding_window, and behind max_window_layers
  std::span<const AcceptedKey> accepted;
};

constexpr ExtentKey kGpt2Extents[] = {{"n_layer", &ModelSpec::layers},        {"n_embd", &ModelSpec::dim},
                                      {"n_head", &ModelSpec::heads},          {"n_positions", &ModelSpec::context},
                                      {"vocab_size", &ModelSpec::vocabulary}, {"n_inner", &ModelSpec::inner, true}};
#define SHOAL_LLAMA_EXTENTS                                                               \
  {"num_hidden_layers", &ModelSpec::layers}, {"hidden_size", &ModelSpec::dim},            \
      {"num_attention_heads", &ModelSpec::heads}, {"vocab_size", &ModelSpec::vocabulary}, \
      {"max_position_embeddings", &ModelSpec::context}, {                                 \
    "intermediate_size", &ModelSpec::inner                                                \
  }
constexpr ExtentKey kLlamaExtents[] = {SHOAL_LLAMA_EXTENTS,
                                       {"num_key_value_heads", &ModelSpec::kv_heads, true},
                                       {"head_dim", &ModelSpec::head_width, true}};
// Their classes have defaults that follow from no other key.
constexpr ExtentKey kMistralExtents[] = {
    SHOAL_LLAMA_EXTENTS, {"num_key_value_heads", &ModelSpec::kv_heads}, {"head_dim", &ModelSpec::head_width, true}};
constexpr ExtentKey kQwen3Extents[] = {
    SHOAL_LLAMA_EXTENTS, {"num_key_value_heads", &ModelSpec::kv_heads}, {"head_dim", &ModelSpec::head_width}};
#undef SHOAL_LLAMA_EXTENTS

constexpr AcceptedKey kGpt2Accepted[] = {{"activation_function", R"(["gelu_new", "gelu_pytorch_tanh"])"},
                                         {"scale_attn_weights", "[true]"},
                                         {"scale_attn_by_inverse_layer_idx", "[false]"},
                                         {"reorder_and_upcast_attn", "[false]"}};
constexpr AcceptedKey kLlamaAccepted[] = {{"hidden_act", R"(["silu"])"},    {"attention_bias", "[false]"},
                                          {"mlp_bias", "[false]"},          {"rope_interleaved", "[false]"},
                                          {"partial_rotary_factor", "[1]"}, {"use_mrope", "[false]"}};
constexpr AcceptedKey kAcceptedAlways[] = {{"add_cross_attention", "[false]"},
                                           {"is_encoder_decoder", "[false]"},
                                           {"pruned_heads", "[{}]"},
                                           {"quantization_config", "[]"},
                                           {"num_experts", "[0]"},
                                           {"num_local_experts", "[0]"},
                                           {"n_routed_experts", "[0]"},
                                           {"num_experts_per_tok", "[0]"},
                                           {"moe_intermediate_size", "[]"}};

// A class of the folder's own: we have one.
constexpr AcceptedKey kAcceptedOfPlain[] = {{"auto_map", "[{}]"}};

constexpr ModelFamily kGpt2 = ModelFamily::kGpt2, kLlama = ModelFamily::kLlama;
// clang-format off
constexpr Architecture kArchitectures[] = {
    {"gpt2", kGpt2, AttentionExtras::kNone, kGpt2Extents, "layer_norm_epsilon", true, 0, false, kGpt2Accepted},
    {"llama", kLlama, AttentionExtras::kNone, kLlamaExtents, "rms_norm_eps", false, 0, false, kLlamaAccepted},
    {"mistral", kLlama, AttentionExtras::kNone, kMistralExtents, "rms_norm_eps", false, 4096, false, kLlamaAccepted},
    {"qwen2", kLlama, AttentionExtras::kQkvBias, kMistralExtents, "rms_norm_eps", false, 4096, true, kLlamaAccepted},
    {"qwen3", kLlama, AttentionExtras::kQkNorm, kQwen3Extents, "rms_norm_eps", false, 4096, true, kLlamaAccepted},
};
// clang-format on

constexpr std::string_view kDropouts[] = {"attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop"};
// Keys that are read below, and keys without a say in what is computed from text tokens.
constexpr std::string_view kOtherKnown[] = {"model_type",
                                            "tie_word_embeddings",
                                            "sliding_window",
                                            "use_sliding_window",
                                            "layer_types",
                                            "rope_theta",
                                            "rope_scaling",
                                            "rope_parameters",
                                            "_name_or_path",
                                            "_attn_implementation",
                                            "architectures",
                                            "torch_dtype",
                                            "dtype",
                                            "transformers_version",
                                            "transformers.js_config",
                                            "bos_token_id",
                                            "eos_token_id",
                                            "pad_token_id",
                                            "unk_token_id",
                                            "sep_token_id",
                                            "cls_token_id",
                                            "decoder_start_token_id",
                                            "initializer_range",
                                            "use_cache",
                                            "n_ctx",
                                            "task_specific_params",
                                            "summary_activation",
                                            "summary_first_dropout",
                                            "summary_proj_to_labels",
                                            "summary_type",
                                            "summary_use_proj",
                                            "return_dict",
                                            "output_hidden_states",
                                            "output_attentions",
                                            "id2label",
                                            "label2id",
                                            "problem_type",
                                            "tokenizer_class",
                                            "finetuning_task",
                                            "prefix",
                                            "gradient_checkpointing",
                                            "is_llama_config",
                                            "pretraining_tp",
                                            "max_window_layers",
                                            "chunk_size_feed_forward",
                                            "is_decoder",
                                            "tie_encoder_decoder",
                                            "cross_attention_hidden_size",
                                            "use_return_dict"};

// Text from a file, as far as a message has room for it.
std::string shown(const Json& value) {
  if (value.is_structured()) return value.is_array() ? "[...]" : "{...}";  // nested deeper than a stack, perhaps
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}
std::string named(std::string_view key, const Json& value) {
  return "config.json: \"" + std::string(key) + "\" = " + shown(value);
}
Error refused(std::string_view key, const Json& value, std::string_view what) {
  return make_error(ErrorCode::kUnsupported, named(key, value) + " is not supported: " + std::string(what));
}

// The value of a key; null where there is none, or null.
const Json* find(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Result<double> number_of(std::string_view key, const Json& value, double min, double max) {
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (number >= min && number <= max) return number;
  return make_error(ErrorCode::kMalformed, named(key, value) + " is no number in range");
}

Result<double> wanted_number(const Json& object, std::string_view key, double min, double max) {
  const Json* value = find(object, key);
  if (value == nullptr) return make_error(ErrorCode::kMissing, "config.json lacks \"" + std::string(key) + "\"");
  return number_of(key, *value, min, max);
}

Result<std::uint32_t> whole(std::string_view key, double value) {
  if (value == std::floor(value)) return static_cast<std::uint32_t>(value);
  return make_error(ErrorCode::kMalformed, "config.json: \"" + std::string(key) + "\" is no whole number");
}

Result<std::uint32_t> wanted_count(const Json& object, std::string_view key, double min) {
  SHOAL_ASSIGN(const double value, wanted_number(object, key, min, kExtentMax));
  return whole(key, value);
}

Status read_extents(const Json& file, const Architecture& architecture, ModelSpec& model) {
  for (const auto& [key, extent, may_lack] : architecture.extents) {
    if (may_lack && find(file, key) == nullptr) continue;
    SHOAL_ASSIGN(model.*extent, wanted_count(file, key, 1));
  }
  SHOAL_ASSIGN(model.norm_epsilon, wanted_number(file, architecture.epsilon, 1e-12, 1e-2));
  return {};
}

Status check_accepted(const Json& file, std::span<const AcceptedKey> keys) {
  for (const auto& [key, values] : keys) {
    const Json* value = find(file, key);
    if (value == nullptr) continue;
    const Json have = Json::parse(values);
    if (std::ranges::find(have, *value) != have.end()) continue;
    std::string list;
    for (const Json& one : have) list += (list.empty() ? "" : " or ") + one.dump();
    return refused(key, *value, list.empty() ? "shoal has none" : "shoal has " + list + " alone");
  }
  return {};
}

// Which of its layers attend to the last so many text tokens alone, as layer_types say it or, without them, what the
// class makes of the other keys.
Result<bool> has_window_layers(const Json& file, const Architecture& architecture, const ModelSpec& model) {
  const Json* types = find(file, "layer_types");
  if (types == nullptr) {
    if (!architecture.window_is_switched) return true;
    const Json* first = find(file, "max_window_layers");
    SHOAL_ASSIGN(const double full,
                 number_of("max_window_layers", first == nullptr ? Json(kFullLayers) : *first, 0, 1e9));
    return full < model.layers;
  }
  bool slides = false;
  for (const Json& type : types->is_array() ? *types : Json::array({*types})) {
    if (type == "sliding_attention")
      slides = true;
    else if (type != "full_attention")
      return refused("layer_types", *types, "shoal has \"full_attention\" and \"sliding_attention\"");
  }
  return slides;
}

// A window does not matter to sequences that are no longer: longer ones are not taken.
Status fit_window(const Json& file, const Architecture& architecture, PretrainedConfig& config) {
  SHOAL_ASSIGN(const bool slides, has_window_layers(file, architecture, config.model));
  const Json* on = find(file, "use_sliding_window");
  if (on != nullptr && !on->is_boolean())
    return make_error(ErrorCode::kMalformed, named("use_sliding_window", *on) + " is no boolean");
  const bool off = architecture.window_is_switched && (on == nullptr || !on->get<bool>());
  const auto given = file.find("sliding_window");
  const Json window = given == file.end() ? Json(architecture.window) : *given;
  if (const Json* types = find(file, "layer_types"); off && slides && types != nullptr)
    return refused("layer_types", *types, "\"use_sliding_window\" is not true");
  if (off || !slides || window.is_null() || (window == 0 && given == file.end())) return {};
  SHOAL_ASSIGN(const double width, number_of("sliding_window", window, 1, 1e9));
  if (width >= config.model.context) return {};
  config.notes.push_back("the folder's model attends to the last " + shown(window) +
                         " tokens alone (sliding_window), and shoal's to all: sequences have at most so many, to "
                         "which that is the same, and not the " +
                         std::to_string(config.model.context) + " of config.json");
  config.model.context = static_cast<std::uint32_t>(width);
  return {};
}

struct Rotation {
  std::optional<double> theta;
  std::vector<double> scaling;
  bool operator==(const Rotation&) const = default;
};

Result<Rotation> read_rotation(std::string_view key, const Json& rope) {
  if (!rope.is_object()) return make_error(ErrorCode::kMalformed, named(key, rope) + " is no object");
  static constexpr std::string_view kScaling[] = {"factor", "low_freq_factor", "high_freq_factor",
                                                  "original_max_position_embeddings"};
  static constexpr std::string_view kOther[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
  const std::string inside = std::string(key) + ".";
  for (const auto& [name, value] : rope.items())
    if (!value.is_null() && std::ranges::find(kScaling, name) == std::end(kScaling) &&
        std::ranges::find(kOther, name) == std::end(kOther))
      return refused(inside + name, value, "shoal does not know it");
  if (const Json* partial = find(rope, "partial_rotary_factor"); partial != nullptr && *partial != 1)
    return refused(inside + "partial_rotary_factor", *partial, "shoal rotates whole heads");
  Rotation rotation;
  if (find(rope, "rope_theta") != nullptr) {
    SHOAL_ASSIGN(rotation.theta, wanted_number(rope, "rope_theta", 1, 1e9));
  }
  const Json* type = find(rope, "rope_type");
  if (type == nullptr) type = find(rope, "type");
  if (type == nullptr || *type == "default") return rotation;
  if (*type != "llama3") return refused(inside + "rope_type", *type, "shoal has \"default\" and \"llama3\"");
  for (const std::string_view name : kScaling) {
    SHOAL_ASSIGN(const double value, wanted_number(rope, name, 0, 1e9));
    rotation.scaling.push_back(value);
  }
  return rotation;
}

// Releases of transformers before 5 write rope_theta and rope_scaling, those from 5 on rope_parameters.
Status read_rope(const Json& file, ModelSpec& model) {
  std::optional<Rotation> said;
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    const Json* rope = find(file, key);
    if (rope == nullptr) continue;
    SHOAL_ASSIGN(Rotation rotation, read_rotation(key, *rope));
    if (!rotation.theta && find(file, "rope_theta") != nullptr) {
      SHOAL_ASSIGN(rotation.theta, wanted_number(file, "rope_theta", 1, 1e9));
    }
    if (said && *said != rotation) return refused(key, *rope, "\"rope_parameters\" say something else");
    said = rotation;
  }
  if (!said) said.emplace();
  if (!said->theta && find(file, "rope_theta") != nullptr) {
    SHOAL_ASSIGN(said->theta, wanted_number(file, "rope_theta", 1, 1e9));
  }
  model.rope_theta = said->theta.value_or(ModelSpec{}.rope_theta);
  model.rope_scaling = said->scaling;
  return {};
}

Result<std::vector<std::string>> notes_of(const Json& file, const Architecture& architecture) {
  std::vector<std::string> dropouts, unknown, notes;
  for (const std::string_view key : kDropouts) {
    const Json* rate = find(file, key);
    if (rate == nullptr) continue;
    SHOAL_ASSIGN(const double value, number_of(key, *rate, 0, 1));
    if (value > 0) dropouts.push_back(std::string(key) + " = " + shown(*rate));
  }
  std::set<std::string, std::less<>> known(std::begin(kOtherKnown), std::end(kOtherKnown));
  known.insert(std::begin(kDropouts), std::end(kDropouts));
  known.insert(std::string(architecture.epsilon));
  for (const ExtentKey& extent : architecture.extents) known.insert(std::string(extent.key));
  for (const std::span<const AcceptedKey> keys : {std::span<const AcceptedKey>(kAcceptedAlways), architecture.accepted})
    for (const AcceptedKey& accepted : keys) known.insert(std::string(accepted.key));
  for (const auto& [key, value] : file.items())
    if (!value.is_null() && !known.contains(key) && unknown.size() < 16) unknown.push_back(shown(Json(key)));
  if (!dropouts.empty())
    notes.push_back("the folder's model was trained with dropout (" + list_text(dropouts) + "); shoal trains without");
  if (!unknown.empty())
    notes.push_back("config.json has keys that shoal does not know and leaves out of account: " + list_text(unknown));
  return notes;
}

Result<const Architecture*> architecture_of(const Json& file) {
  const Json* type = find(file, "model_type");
  if (type == nullptr) return make_error(ErrorCode::kMissing, "config.json lacks \"model_type\"");
  std::vector<std::string> have;
  for (const Architecture& architecture : kArchitectures) {
    if (*type == architecture.model_type) return &architecture;
    have.emplace_back(architecture.model_type);
  }
  return refused("model_type", *type, "shoal has " + list_text(have));
}

Result<PretrainedConfig> parse_plain(const Json& file) {
  SHOAL_ASSIGN(const Architecture* architecture, architecture_of(file));
  PretrainedConfig config{.model = {}, .tied = architecture->tied, .notes = {}};
  config.model.family = architecture->family;
  config.model.extras = architecture->extras;
  for (const std::span<const AcceptedKey> keys :
       {std::span<const AcceptedKey>(kAcceptedAlways), std::span<const AcceptedKey>(kAcceptedOfPlain),
        architecture->accepted})
    SHOAL_TRY(check_accepted(file, keys));
  SHOAL_TRY(read_extents(file, *architecture, config.model));
  SHOAL_TRY(fit_window(file, *architecture, config));
  config.model.positions = config.model.context;
  SHOAL_TRY(read_rope(file, config.model));
  if (const Json* tied = find(file, "tie_word_embeddings"); tied != nullptr) {
    if (!tied->is_boolean())
      return make_error(ErrorCode::kMalformed, named("tie_word_embeddings", *tied) + " is no boolean");
    config.tied = tied->get<bool>();
  }
  const auto split = split_model(config.model, 1);
  if (!split.ok()) return make_error(split.code(), "config.json: " + split.error().message);
  SHOAL_ASSIGN(const std::vector<std::string> notes, notes_of(file, *architecture));
  config.notes.insert(config.notes.end(), notes.begin(), notes.end());
  return config;
}

// The plain model's configuration is inside, and beside it where the cuts are and what crosses them.
Result<PretrainedConfig> parse_with_boundary(const Json& file) {
  SHOAL_TRY(check_accepted(file, kAcceptedAlways));
  const Json* base = find(file, "base");
  if (base == nullptr) return make_error(ErrorCode::kMissing, "config.json lacks \"base\"");
  if (!base->is_object()) return make_error(ErrorCode::kMalformed, named("base", *base) + " is no object");
  SHOAL_ASSIGN(PretrainedConfig config, parse_plain(*base));
  SHOAL_ASSIGN(config.model.boundary, wanted_count(file, "boundary", 1));
  SHOAL_ASSIGN(config.model.boundary_table, wanted_count(file, "boundary_table", 0));
  const Json* cuts = find(file, "cuts");
  if (cuts == nullptr || !cuts->is_array() || cuts->size() > config.model.layers)
    return make_error(ErrorCode::kMalformed, "config.json: \"cuts\" is no list of layers");
  for (const Json& cut : *cuts) {
    SHOAL_ASSIGN(const double layer, number_of("cuts", cut, 1, config.model.layers));
    SHOAL_ASSIGN(config.model.cuts.emplace_back(), whole("cuts", layer));
  }
  if (const Status sound = check_boundary(config.model); !sound.ok())
    return make_error(sound.error().code, "config.json: " + sound.error().message);
  return config;
}

}  // namespace

Result<PretrainedConfig> parse_pretrained_config(std::string_view text) {
  if (text.size() > kModelConfigBytesMax) return make_error(ErrorCode::kTooLarge, "config.json is larger than 1 MiB");
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object()) return make_error(ErrorCode::kMalformed, "config.json is no JSON object");
  const Json* type = find(file, "model_type");
  return type != nullptr && *type == kBoundaryModelType ? parse_with_boundary(file) : parse_plain(file);
}

}  // namespace shoal
