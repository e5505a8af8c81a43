#include "runtime/config/config_table.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

#include "common/formatted.h"

namespace shoal {
namespace {

// What an edge may be given: kCodecNames, and behind them the choice by lines.
constexpr auto kWireNames = [] {
  std::array<std::string_view, std::size(kCodecNames) + 1> names{};
  std::ranges::copy(kCodecNames, names.begin());
  names.back() = kAutoName;
  return names;
}();
constexpr std::string_view kPayloadNames[] = {"auto", "fp32", "bf16", "int8", "int4"};
constexpr std::string_view kWidthNames[] = {"u8", "u16", "u32"};
constexpr std::string_view kInnerNames[] = {"adamw", "muon"};
constexpr std::string_view kModeNames[] = {"overlap", "drain", "auto"};
constexpr std::string_view kAdmissionNames[] = {"open", "keys"};
constexpr std::string_view kRebalanceNames[] = {"auto", "off"};
constexpr std::string_view kExecutorNames[] = {"torch", "integer", "paced"};

template <class Enum>
OptionSlot choice(Enum& value, std::span<const std::string_view> names) {
  static_assert(sizeof(Enum) == 1);
  return ChoiceSlot{reinterpret_cast<std::uint8_t*>(&value), names};
}

constexpr double kCountMax = 1e18;  // of tokens of a whole run; what steps come to is checked in config_check.cc
constexpr double kStepsMax = 1e12;
constexpr double kBatchMax = 1e10;  // times inner_steps and replicas it stays below 2^63
constexpr InManifest kLocal = InManifest::kNever, kShared = InManifest::kAlways, kLater = InManifest::kUnlessDefault;

#define SHOAL_SLOT(member) [](RunConfig& c) -> OptionSlot { return &c.member; }
#define SHOAL_DERIVED(member) [](RunConfig& c) -> OptionSlot { return DerivedSlot<decltype(c.member)>{&c.member}; }
#define SHOAL_CHOICE(member, names) [](RunConfig& c) -> OptionSlot { return choice(c.member, names); }
#define SHOAL_TEXTS(member) [](RunConfig& c) -> OptionSlot { return TextsSlot{&c.member}; }
#define SHOAL_CHOICES(member, names) [](RunConfig& c) -> OptionSlot { return ChoicesSlot{&c.member, names}; }

// clang-format off
constexpr OptionRow kTable[] = {
    {"run", "name", SHOAL_SLOT(run.name), "\"run\"", 1, 32, kShared, "for people; letters, digits, . _ -"},
    {"run", "seed", SHOAL_SLOT(run.seed), "1337", 0, 9e15, kShared, "of the initialisation and the sample order"},

    {"model", "family", SHOAL_CHOICE(model.family, family_names()), "\"gpt2\"", 0, 0, kLater, "whose layers the model has"},
    {"model", "layers", SHOAL_SLOT(model.layers), "", 1, 1024, kShared, "decoder layers of the whole model"},
    {"model", "dim", SHOAL_SLOT(model.dim), "", 2, 65536, kShared, "width d, a multiple of heads unless head_width is given"},
    {"model", "heads", SHOAL_SLOT(model.heads), "", 1, 1024, kShared, "attention heads"},
    {"model", "positions", SHOAL_SLOT(model.positions), "", 1, 65536, kShared, "T: tokens of one sequence"},
    {"model", "vocabulary", SHOAL_SLOT(model.vocabulary), "256", 2, 262144, kShared, "V: token ids are below it"},
    {"model", "from", SHOAL_SLOT(model.from), "\"\"", 0, 4096, kLocal, "folder of a model as transformers saves it: its shapes and first weights; only the launching machine needs it"},
    {"model", "context", SHOAL_SLOT(model.context), "0", 0, 1 << 24, kLater, "positions that the model can tell apart; 0 = those of one sequence"},
    {"model", "kv_heads", SHOAL_SLOT(model.kv_heads), "0", 0, 1024, kLater, "llama: heads of keys and values; 0 = heads"},
    {"model", "head_width", SHOAL_SLOT(model.head_width), "0", 0, 65536, kLater, "llama: width of one head; 0 = dim / heads"},
    {"model", "inner", SHOAL_SLOT(model.inner), "0", 0, 1 << 20, kLater, "width of an MLP; 0 = 4 dim (gpt2), 8/3 dim (llama)"},
    {"model", "norm_epsilon", SHOAL_SLOT(model.norm_epsilon), "1e-05", 1e-12, 1e-2, kLater, "added to the variance that a norm divides by"},
    {"model", "rope_theta", SHOAL_SLOT(model.rope_theta), "10000", 1, 1e9, kLater, "llama: base of the rotary positions"},
    {"model", "rope_scaling", SHOAL_SLOT(model.rope_scaling), "[]", 0, 4, kLater, "llama: [factor, low_freq_factor, high_freq_factor, original positions] of Llama 3; [] = none"},
    {"model", "attention", SHOAL_CHOICE(model.extras, kExtrasNames), "\"none\"", 0, 0, kLater, "llama: qkv-bias as Qwen2 has it, qk-norm as Qwen3"},
    {"model", "lora_rank", SHOAL_SLOT(model.lora_rank), "0", 0, 4096, kLater, "trains adapters of this rank beside the model of from, which stays as it is; 0 = all of the model is trained"},
    {"model", "lora_alpha", SHOAL_SLOT(model.lora_alpha), "0", 0, 65536, kLater, "adapters act times lora_alpha / lora_rank; 0 = times 2"},
    {"model", "lora_targets", SHOAL_TEXTS(model.lora_targets), "[]", 1, 64, kLater, "matrices of a layer that have adapters, as [\"q_proj\", \"v_proj\"]; [] = all"},
    {"model", "boundary", SHOAL_SLOT(model.boundary), "0", 0, 65536, kLater, "values of a token that the model sends from stage to stage, fewer than dim; 0 = all"},
    {"model", "boundary_table", SHOAL_SLOT(model.boundary_table), "\"auto\"", 0, 65536, kLater, "width of the token table behind each cut, dim at most; 0 = none; auto: up to a twentieth of a stage's layers"},
    {"model", "cuts", SHOAL_SLOT(model.cuts), "[]", 0, 255, kLater, "layers in front of which the model sends only boundary values; [] = where stages meet"},
    {"model", "weights", SHOAL_SLOT(model.weights), "[]", 0, 256, kLater, "digests of each stage's first weights; launch writes them"},

    {"data", "path", SHOAL_TEXTS(data.paths), "", 1, 4096, kLocal, "token file, relative to this file; or a list of them"},
    {"data", "weights", SHOAL_SLOT(data.weights), "[]", 0, 64, kLater, "share of each file in the training samples; [] = by size"},
    {"data", "validation", SHOAL_SLOT(data.validation), "\"\"", 0, 4096, kLocal, "a token file for validation; empty = the last tenth of each file"},
    {"data", "tokenizer", SHOAL_SLOT(data.tokenizer), "\"\"", 0, 4096, kLocal, "the tokenizer.json that made the ids"},
    {"data", "digests", SHOAL_SLOT(data.digests), "[]", 0, 65, kLater, "of the files, validation last; launch writes them and --resume checks them"},
    {"data", "tokenizer_digest", SHOAL_SLOT(data.tokenizer_digest), "[]", 0, 1, kLater, "of the tokenizer; launch writes it and --resume checks it"},
    {"data", "width", SHOAL_CHOICE(data.width, kWidthNames), "\"u8\"", 0, 0, kShared, "bytes, or little-endian ids of 16 or 32 bits"},
    {"data", "sequences", SHOAL_DERIVED(data.sequences), "\"auto\"", 1, 4096, kShared, "B: windows of one microbatch; auto: as few as fill the pipe, and not so few that devices idle (shoal plan)"},
    {"data", "validation_samples", SHOAL_SLOT(data.validation_samples), "0", 0, kCountMax, kShared, "at most this many validation samples, of 4 sequences each where sequences is auto; 0 = all"},
    {"data", "validate_every", SHOAL_SLOT(data.validate_every), "0", 0, kStepsMax, kShared, "steps between estimates of the validation loss (64 samples or 256 sequences at most); 0 = none"},

    {"optimizer", "lr", SHOAL_DERIVED(optimizer.lr), "\"auto\"", 1e-12, 10, kShared, "peak learning rate of AdamW; auto: by the parameters (shoal plan)"},
    {"optimizer", "beta1", SHOAL_SLOT(optimizer.beta1), "0.9", 0, 0.999999, kShared, "decay of the first moment"},
    {"optimizer", "beta2", SHOAL_SLOT(optimizer.beta2), "0.95", 0, 0.999999, kShared, "decay of the second moment"},
    {"optimizer", "eps", SHOAL_SLOT(optimizer.eps), "1e-8", 1e-15, 1, kShared, "added to the root of the second moment"},
    {"optimizer", "weight_decay", SHOAL_SLOT(optimizer.weight_decay), "0.1", 0, 10, kShared, "of matrices and embeddings"},
    {"optimizer", "clip_norm", SHOAL_SLOT(optimizer.clip_norm), "1.0", 0, 1e6, kShared, "of a stage's mean gradient; 0 = no clipping"},
    {"optimizer", "look_ahead", SHOAL_SLOT(optimizer.look_ahead), "\"auto\"", 0, 4, kShared, "updates that a step looks ahead; auto: 1 where gradients may be late, else 0"},
    {"optimizer", "delay_max", SHOAL_SLOT(optimizer.delay_max), "0", 0, 63, kShared, "diloco: inner steps that a gradient may be late; a later one is dropped by name, the rest of its microbatch counts; 0 = any"},
    {"optimizer", "inner", SHOAL_CHOICE(optimizer.inner, kInnerNames), "\"adamw\"", 0, 0, kShared, "muon: of the layers' matrices; the rest keeps AdamW, beta1 is its momentum"},

    {"schedule", "tokens", SHOAL_SLOT(schedule.tokens), "0", 0, kCountMax, kShared, "length of the cosine; 0 = from steps"},
    {"schedule", "steps", SHOAL_SLOT(schedule.steps), "0", 0, kStepsMax, kShared, "the same in steps; 0 = from [end]"},
    {"schedule", "warmup_tokens", SHOAL_DERIVED(schedule.warmup_tokens), "\"auto\"", 0, kCountMax, kShared, "linear warm-up; auto: 2 / (1 - beta2) steps, a fiftieth to a tenth of the run"},
    {"schedule", "min_lr_factor", SHOAL_SLOT(schedule.min_lr_factor), "0.1", 1e-9, 1, kShared, "the cosine ends at lr times this"},

    {"pipeline", "stages", SHOAL_SLOT(pipeline.stages), "1", 1, 256, kShared, "parts the model is cut into"},
    {"pipeline", "layers_per_stage", SHOAL_SLOT(pipeline.layers_per_stage), "[]", 0, 256, kShared, "a split of your own; [] = balanced by cost"},
    {"pipeline", "replicas", SHOAL_SLOT(pipeline.replicas), "1", 1, 256, kShared, "peers expected per stage: the batch of solo"},
    {"pipeline", "in_flight", SHOAL_SLOT(pipeline.in_flight), "\"auto\"", 1, 4096, kShared, "microbatches under way; auto: what fills the pipe at a small price (shoal plan)"},
    {"pipeline", "in_flight_ramp", SHOAL_SLOT(pipeline.in_flight_ramp), "\"auto\"", 0, 2, kShared, "[0.1, 0.6] = few until a tenth of the schedule, all from 0.6 on; auto: that where all at once would cost too much; [] = all"},
    {"pipeline", "routing", SHOAL_CHOICE(pipeline.routing, kRoutingNames), "\"rendezvous\"", 0, 0, kLater, "how each sender chooses the peer of the next stage"},
    {"pipeline", "rebalance", SHOAL_CHOICE(pipeline.rebalance, kRebalanceNames), "\"auto\"", 0, 0, kLater, "auto: peers whose owners named no stage are asked to serve the weakest one where that pays; off: nobody is"},
    {"pipeline", "rebalance_horizon_s", SHOAL_SLOT(pipeline.rebalance_horizon_s), "600", 1, 1e6, kLater, "for so many seconds the swarm is taken to stay as it is: a move that takes longer is not asked for"},

    {"sync", "rule", SHOAL_CHOICE(sync.rule, kRuleNames), "\"diloco\"", 0, 0, kShared, "how the replicas of a stage agree"},
    {"sync", "mode", SHOAL_CHOICE(sync.mode, kModeNames), "\"auto\"", 0, 0, kShared, "overlap = a step's microbatches are issued beside those of the one before; drain = behind them, so no gradient is late; auto: which takes less time to a loss (shoal plan)"},
    {"sync", "inner_batch", SHOAL_DERIVED(sync.inner_batch), "\"auto\"", 1, kBatchMax, kShared, "diloco: targets of one replica's inner step; auto: by the length of the run"},
    {"sync", "inner_steps", SHOAL_SLOT(sync.inner_steps), "10", 1, 1e6, kShared, "diloco: inner steps between rounds (H)"},
    {"sync", "outer_lr", SHOAL_SLOT(sync.outer_lr), "0.7", 1e-6, 10, kShared, "diloco: outer learning rate"},
    {"sync", "outer_momentum", SHOAL_SLOT(sync.outer_momentum), "0.9", 0, 0.999999, kShared, "diloco: outer Nesterov momentum"},
    {"sync", "payload", SHOAL_CHOICE(sync.payload, kPayloadNames), "\"auto\"", 0, 0, kLater, "diloco: what a round's deltas travel as; auto: int8"},
    {"sync", "warm_steps", SHOAL_SLOT(sync.warm_steps), "0", 0, kStepsMax, kShared, "diloco: allreduce for the first steps"},
    {"sync", "microbatches_per_step", SHOAL_DERIVED(sync.microbatches_per_step), "\"auto\"", 1, 1024, kShared, "allreduce (and warm steps): of one global step; auto: by the length of the run"},
    {"sync", "round_budget_s", SHOAL_SLOT(sync.round_budget_s), "0", 0, 86400, kShared, "a round is given up after it; 0 = from its bytes and measured rates"},
    {"sync", "round_cap_s", SHOAL_SLOT(sync.round_cap_s), "0", 0, 86400, kShared, "diloco: a round at least this often; 0 = by tokens only"},

    {"wire", "forward", SHOAL_CHOICES(wire.forward, kWireNames), "\"auto\"", 1, 255, kShared, "codec of activations; auto: raw, or int8 where a line is slow; a list: by edge, stages - 1"},
    {"wire", "backward", SHOAL_CHOICES(wire.backward, kWireNames), "\"auto\"", 1, 255, kShared, "codec of gradients; auto: raw, or int8 where a line is slow; a list: by edge, stages - 1"},
    {"wire", "base_mib", SHOAL_SLOT(wire.base_mib), "256", 1, 1 << 20, kShared, "aq4, aq2: MiB of bases a peer keeps for each direction"},

    {"timing", "lease_s", SHOAL_SLOT(timing.lease_s), "4", 0.05, 3600, kShared, "a holder's claim ends after this without renewal"},
    {"timing", "membership_s", SHOAL_SLOT(timing.membership_s), "10", 0.1, 3600, kShared, "a session is fenced after this without a beat"},

    {"checkpoint", "every_s", SHOAL_SLOT(checkpoint.every_s), "60", 0, 1e6, kShared, "seconds between two checkpoints of a peer's stage on its own disk, at least; 0 = none"},
    {"checkpoint", "keep", SHOAL_SLOT(checkpoint.keep), "2", 2, 64, kShared, "checkpoints that a peer keeps; the oldest is overwritten"},
    {"checkpoint", "restore_after_s", SHOAL_SLOT(checkpoint.restore_after_s), "60", 0, 86400, kShared, "a stage whose newest version nobody holds goes back to the newest one that somebody has"},

    {"admission", "mode", SHOAL_CHOICE(admission.mode, kAdmissionNames), "\"open\"", 0, 0, kShared, "keys = only those keys below"},
    {"admission", "keys", SHOAL_SLOT(admission.keys), "[]", 0, 96, kShared, "what `shoal key` prints on the machines admitted"},

    {"compute", "dtype", SHOAL_CHOICE(compute.dtype, kComputeNames), "\"fp32\"", 0, 0, kLater, "type of matrix products and attention; weights, moments, sums, norms, softmax and loss are fp32 in both"},
    {"compute", "recompute", SHOAL_CHOICE(compute.recompute, kRecomputeNames), "\"auto\"", 0, 0, kLater, "auto: none where a peer's memory holds its share of what is in flight, else what holds more; block: a microbatch keeps what each of its layers read, and each layer's forward runs again for the backward; stage: it keeps what its stage was sent, and the whole forward runs again; the last stage needs none"},

    {"executor", "kind", SHOAL_CHOICE(executor.kind, kExecutorNames), "\"torch\"", 0, 0, kShared, "integer and paced are for measuring the swarm"},
    {"executor", "forward_ms", SHOAL_SLOT(executor.forward_ms), "0", 0, 1e6, kShared, "paced: duration of one stage's forward"},
    {"executor", "backward_ms", SHOAL_SLOT(executor.backward_ms), "0", 0, 1e6, kShared, "paced: duration of one stage's backward"},
    {"executor", "state_mib", SHOAL_SLOT(executor.state_mib), "0", 0, 1 << 20, kShared, "paced: MiB of one stage's parameters; 0 = 8 floats"},

    {"end", "tokens", SHOAL_SLOT(end.tokens), "0", 0, kCountMax, kShared, "the run ends here; 0 = no such limit"},
    {"end", "steps", SHOAL_SLOT(end.steps), "0", 0, kStepsMax, kShared, "or here"},

    {"report", "sample_every", SHOAL_SLOT(report.sample_every), "0", 0, 1e6, kLocal, "validations between two continuations that launch shows; 0 = none"},
    {"report", "sample_tokens", SHOAL_SLOT(report.sample_tokens), "48", 1, 4096, kLocal, "tokens of one"},
    {"report", "sample_prompt", SHOAL_SLOT(report.sample_prompt), "\"\"", 0, 4096, kLocal, "what it continues; empty = a document's beginning"},
};
// clang-format on
#undef SHOAL_SLOT
#undef SHOAL_CHOICE
#undef SHOAL_TEXTS
#undef SHOAL_CHOICES

// Levenshtein's distance with adjacent swaps (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string number_text(double value) {
  std::ostringstream out;
  out << std::setprecision(12) << value;
  return out.str();
}

std::span<const OptionRow> option_table() { return kTable; }

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > 64) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string type_text(const OptionRow& row) {
  RunConfig scratch;
  const OptionSlot slot = row.slot(scratch);
  if (std::holds_alternative<std::string*>(slot)) return "text";
  if (std::holds_alternative<double*>(slot)) return "number";
  if (std::holds_alternative<Auto<double>*>(slot) || std::holds_alternative<DerivedSlot<double>>(slot))
    return "auto or number";
  if (std::holds_alternative<Auto<std::uint32_t>*>(slot) || std::holds_alternative<DerivedSlot<std::uint32_t>>(slot) ||
      std::holds_alternative<DerivedSlot<std::uint64_t>>(slot))
    return "auto or integer";
  if (std::holds_alternative<Auto<std::vector<double>>*>(slot)) return "auto or list of numbers";
  if (std::holds_alternative<std::vector<std::uint32_t>*>(slot)) return "list of integers";
  if (std::holds_alternative<std::vector<double>*>(slot)) return "list of numbers";
  if (std::holds_alternative<std::vector<PeerId>*>(slot)) return "list of keys";
  if (std::holds_alternative<std::vector<Digest>*>(slot)) return "list of digests";
  if (std::holds_alternative<TextsSlot>(slot)) return "text, or a list of them";
  if (const ChoiceSlot* choice = std::get_if<ChoiceSlot>(&slot)) return "one of " + list_text(choice->names);
  if (const ChoicesSlot* choices = std::get_if<ChoicesSlot>(&slot))
    return "one of " + list_text(choices->names) + ", or a list of them";
  return "integer";
}

bool takes_auto(const OptionRow& row) { return type_text(row).starts_with("auto or "); }

std::string describe_options() {
  std::ostringstream out;
  std::string_view section;
  for (const OptionRow& row : option_table()) {
    if (row.section != section) out << (section.empty() ? "" : "\n") << '[' << row.section << "]\n";
    section = row.section;
    const std::string type = type_text(row);
    out << "  " << std::left << std::setw(22) << row.key << std::setw(26) << (type.size() < 26 ? type : type + "  ")
        << std::setw(12) << (row.fallback.empty() ? "required" : row.fallback);
    if (type.ends_with("integer") || type.ends_with("number")) {
      out << std::setw(22) << (number_text(row.min) + " .. " + number_text(row.max));
    } else {
      out << std::setw(22) << "";
    }
    out << ' ' << row.help << '\n';
  }
  return out.str();
}

}  // namespace shoal
