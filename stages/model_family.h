#pragma once
// Models, and the families that they belong to. A family's row says everything in which it differs from another, but
// for its layers as tensors (stages/torch_family.h): no other place asks for the name of a parameter. Pure; no torch.
// Thread: any.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/tensor_view.h"

namespace shoal {

// A family's place among those that are registered.
enum class ModelFamily : std::uint8_t { kGpt2 = 0, kLlama = 1 };

// What a layer of the llama family has beside the common parts. Each stands for a class of Python's transformers.
enum class AttentionExtras : std::uint8_t {
  kNone = 0,     // LlamaForCausalLM: Llama 2 and 3, SmolLM, Mistral without its window
  kQkvBias = 1,  // Qwen2ForCausalLM: biases of queries, keys and values
  kQkNorm = 2,   // Qwen3ForCausalLM: an RMSNorm over each head of queries and keys
};
inline constexpr std::string_view kExtrasNames[] = {"none", "qkv-bias", "qk-norm"};

struct ModelSpec {
  std::uint32_t layers = 0;
  std::uint32_t dim = 0;  // d
  std::uint32_t heads = 0;
  std::uint32_t positions = 0;   // T: tokens of one sequence
  std::uint32_t vocabulary = 0;  // V
  std::uint64_t seed = 0;        // of the initialisation
  ModelFamily family = ModelFamily::kGpt2;
  std::uint32_t context = 0;     // positions that the model can tell apart, at least T; 0: T
  std::uint32_t kv_heads = 0;    // heads of keys and values, a divisor of heads; 0: heads
  std::uint32_t head_width = 0;  // of one head; 0: d / heads
  std::uint32_t inner = 0;       // width of an MLP; 0: its family's usual one
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;  // llama: base of the rotation's wave lengths
  // llama: {factor, low_freq_factor, high_freq_factor, original positions} of Llama 3's scaling; empty: none.
  std::vector<double> rope_scaling{};
  AttentionExtras extras = AttentionExtras::kNone;
  // Adapters (stages/adapters.h): the rank of each, 0: none, and all parameters are trained.
  std::uint32_t lora_rank = 0;
  double lora_alpha = 0;                    // 0: twice the rank
  std::vector<std::string> lora_targets{};  // last words of the names of matrices, "q_proj"; empty: all of a layer
  // A narrow boundary (stages/boundary.h): values of a token that cross a cut, k; 0: all d, and there are no cuts.
  std::uint32_t boundary = 0;
  std::uint32_t boundary_table = 0;   // r: width of the token tables behind the cuts; 0: none
  std::vector<std::uint32_t> cuts{};  // the layers that a cut stands in front of, ascending
  auto operator<=>(const ModelSpec&) const = default;

  std::uint32_t context_length() const { return context == 0 ? positions : context; }
  std::uint32_t key_heads() const { return kv_heads == 0 ? heads : kv_heads; }
  std::uint32_t width_of_head() const { return head_width == 0 ? dim / heads : head_width; }
  // Values of a token that cross from one stage to the next.
  std::uint32_t wire_width() const { return boundary == 0 ? dim : boundary; }
  // Whether a cut stands in front of the layer.
  bool cut_at(std::uint32_t layer) const { return std::ranges::binary_search(cuts, layer); }
};

// What a parameter begins as.
enum class FirstValues : std::uint8_t {
  kDrawn,     // normal values of its deviation, or its constant
  kBasis,     // rows or columns, as many as it has fewer of, that are orthonormal
  kIdentity,  // ones where row and column are the same
};

struct ParameterSpec {
  std::string name;            // as the family's class in Python's transformers calls it
  Shape shape;                 // as that class stores it
  std::size_t offset = 0;      // in floats, from the start of the stage's arena
  bool decays = false;         // weight decay applies (matrices and embeddings, not biases and norms)
  double deviation = 0;        // of its first values, which are normal around 0; 0: all are `constant`
  float constant = 0;          // its first value
  std::uint32_t matrices = 0;  // hidden matrices of equal width that lie side by side in it; 0: Muon does not step it
  std::uint32_t part = 0;      // 0: the embedding; 1 + l: layer l; 1 + layers: the head
  FirstValues first = FirstValues::kDrawn;
  std::string drawn_as = "";     // the name it is drawn under; empty: its own
  std::int64_t drawn_width = 0;  // drawn as rows of so many values, of which it has the first; 0: its own
  bool looked_up = false;        // a row of it is read by a number, so that it is in no product; all of part 0 are
  // Whether products read it, which may do so in bf16.
  bool is_factor() const { return shape.size() == 2 && !looked_up; }
};

// What a layer's pass, as its functions compute it (stages/torch_family.h), has in memory of one token, in floats.
struct LayerFloats {
  std::uint64_t wide = 0;     // its graph keeps until the backward, in fp32 whatever its products are computed in
  std::uint64_t narrow = 0;   // its graph keeps, in the type of its products
  std::uint64_t passing = 0;  // a backward has at a time, beside what graph and parameters take
};

struct FamilyRow {
  std::string_view name;  // in RUN.toml and in saved models
  // The parameters of a part in the order of the arena; `offset` and `part` are filled in by parameters_of(). The first
  // of the embedding is the token table, (V, d).
  std::vector<ParameterSpec> (*embedding)(const ModelSpec& model);
  std::vector<ParameterSpec> (*layer)(const ModelSpec& model, std::uint32_t layer);
  std::vector<ParameterSpec> (*head)(const ModelSpec& model);
  // FLOPs of a part's forward on one sequence, by which a split is balanced.
  double (*embedding_cost)(const ModelSpec& model);
  double (*layer_cost)(const ModelSpec& model);
  double (*head_cost)(const ModelSpec& model);
  LayerFloats (*layer_floats)(const ModelSpec& model);
  // What the common checks of split_model() do not see. ERRORS: kInput.
  Status (*check)(const ModelSpec& model);
  // Its entries of config.json (architecture_of()): key, value as JSON.
  std::vector<std::pair<std::string_view, std::string>> (*architecture)(const ModelSpec& model);
  // Whether its layers' matrices are (in, out), as x W; else they are (out, in), as x W^T.
  bool input_first = false;
  bool learns_places = false;  // the embedding's second parameter is a table of places, (context, d)
  // In front of all names but the head's where that class wrote them itself; it reads names with and without.
  std::string_view body_prefix = "";
};

extern const FamilyRow kGpt2Family, kLlamaFamily;

// A parameter's name as the family's class in transformers writes it.
inline std::string published_name(const FamilyRow& row, const std::string& name) {
  return name.starts_with("lm_head.") ? name : std::string(row.body_prefix) + name;
}

// Rows of logits that the last stage has in memory at a time: some 32 MiB of them.
inline std::uint32_t loss_rows(const ModelSpec& model) { return std::max(16u, (8u << 20) / model.vocabulary); }

// Makes one more family known; the two above are. Thread: before others run; the row stays. REQUIRES: a new name.
ModelFamily register_family(const FamilyRow& row);
// By place.
std::span<const std::string_view> family_names();
const FamilyRow& row_of(ModelFamily family);

}  // namespace shoal
