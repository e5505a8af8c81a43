#include "runtime/plan/stage_memory.h"

#include <algorithm>

#include "compression/codec.h"
#include "runtime/config/derived_options.h"
#include "runtime/plan/flight_plan.h"
#include "stages/adapters.h"
#include "stages/boundary.h"

namespace shoal {
namespace {

constexpr std::uint64_t kFloat = 4, kNarrow = 2;  // bytes
constexpr std::uint64_t kNarrowCopies = 3;        // of both parameter buffers, and of the anchor while it is evaluated
constexpr std::uint64_t kPreparedArrays =
    4;  // the sum, or the shift, and three others; what a round started from is one

Shape shape_between(const RunConfig& config) {
  return {config.data.sequences, config.model.positions, config.model.wire_width()};
}

// As a codec sends it; "auto" may come to raw.
std::uint64_t frame_of(const RunConfig& config, CodecId codec) {
  return codec_for(codec).frame_bytes(shape_between(config), DType::kF32);
}

// An activation on its edge, at either end. A codec of differences keeps the base that follows too, a frame of int8,
// and its sender both the difference and the key frame.
std::uint64_t activation_frames(const RunConfig& config, StageId edge, bool sent) {
  const CodecId codec = config.wire.forward.at(edge).or_else(CodecId::kRaw);
  if (!is_delta(codec)) return frame_of(config, codec);
  return 2 * frame_of(config, CodecId::kInt8) + (sent ? frame_of(config, codec) : 0);
}

std::uint64_t gradient_frame(const RunConfig& config, StageId edge) {
  return frame_of(config, config.wire.backward.at(edge).or_else(CodecId::kRaw));
}

// Bytes of a token that cuts add to the graph of the layers beside them. Behind a cut: what the layer reads, which
// elsewhere the layer before made, and rows of the token table. In front of one: what crosses; in bf16 a copy of what
// the layer made is kept in place of that.
std::int64_t graph_of_halves(const RunConfig& config, const StageSpec& spec) {
  const std::int64_t d = spec.model.dim, k = spec.model.boundary, r = spec.model.boundary_table, wide = kFloat;
  const bool narrow = config.compute.dtype == ComputeType::kBf16;
  const std::int64_t factor = narrow ? kNarrow : kFloat;
  const std::int64_t up = wide * d + factor * (r < d ? r : 0) + (narrow ? factor * k : 0);
  const std::int64_t down = wide * k - (wide - factor) * d;
  std::int64_t all = 0, largest = 0;
  for (std::uint32_t layer = spec.first_layer; layer < spec.end_layer; ++layer) {
    const std::int64_t bytes = (spec.model.cut_at(layer) ? up : 0) + (spec.model.cut_at(layer + 1) ? down : 0);
    all += bytes;
    largest = std::max(largest, bytes);
  }
  return config.compute.recompute == Recompute::kBlock ? largest : all;
}

// With what the embedding made; on the last stage with the gradient of the rows that the head reads, and what the norm
// in front of it keeps, which in gpt2 is nothing.
std::uint64_t graph_of(const RunConfig& config, const StageSpec& spec) {
  const std::uint64_t layers = spec.end_layer - spec.first_layer, dim = spec.model.dim;
  const LayerFloats floats = row_of(spec.model.family).layer_floats(spec.model);
  const bool narrow = config.compute.dtype == ComputeType::kBf16;
  const std::uint64_t layer = kFloat * floats.wide + (narrow ? kNarrow : kFloat) * floats.narrow;
  const std::uint64_t once = kFloat * dim * ((spec.is_first() ? 1u : 0u) + (spec.is_last() ? 2u : 0u));
  const std::uint64_t at_a_time = config.compute.recompute == Recompute::kBlock ? 1 : layers;
  const auto halves = static_cast<std::uint64_t>(graph_of_halves(config, spec));  // less than the layers even below 0
  return (at_a_time * layer + once + halves) * config.targets_per_microbatch();
}

// What the layers behind a stage's first one read.
std::uint64_t inputs_behind_first(const RunConfig& config, const StageSpec& spec) {
  std::uint64_t floats = 0;
  for (std::uint32_t layer = spec.first_layer + 1; layer < spec.end_layer; ++layer)
    floats += spec.model.cut_at(layer) ? spec.model.wire_width() : spec.model.dim;
  return kFloat * floats * config.targets_per_microbatch();
}

// What each layer read; the first one of a stage behind another reads what was decoded, which is one of the frames.
std::uint64_t inputs_of_layers(const RunConfig& config, const StageSpec& spec) {
  if (config.compute.recompute != Recompute::kBlock) return 0;
  const std::uint64_t embedded = spec.is_first() ? kFloat * spec.model.dim * config.targets_per_microbatch() : 0;
  return embedded + inputs_behind_first(config, spec);
}

// What a backward has made while a whole graph is there: the gradients of tables behind cuts, which are as large as the
// tables and made first. Where layers' graphs are made one after the other, what it has made when it comes to that of
// the first layer, beyond the inputs of layers that went meanwhile; with the first matrix of that layer's own, which is
// made before anything of the graph goes.
std::uint64_t gradients_beside_graph(const RunConfig& config, const StageSpec& spec) {
  const bool by_block = config.compute.recompute == Recompute::kBlock;
  std::uint64_t made = 0, largest = 0;
  for (const ParameterSpec& one : parameters_of(spec)) {
    const std::uint64_t bytes = kFloat * static_cast<std::uint64_t>(element_count(one.shape));
    if ((one.looked_up && one.part != 0) || (by_block && one.part > 1 + spec.first_layer)) {
      made += bytes;
    } else if (by_block && one.part == 1 + spec.first_layer) {
      largest = std::max(largest, bytes);
    }
  }
  made += largest;
  return made - std::min(made, by_block ? inputs_behind_first(config, spec) : 0);
}

// Beside its graph: the decoded input, which undoes need, and frames as they came and go. Once the graph is gone, also
// the gradient as it was decoded, and as it goes up.
std::uint64_t frames_of_entry(const RunConfig& config, const StageSpec& spec, std::uint64_t graph_waiting) {
  const std::uint64_t decoded = kFloat * spec.model.wire_width() * config.targets_per_microbatch();
  const Route route = spec.route();
  const std::uint64_t before = (route.before ? decoded + activation_frames(config, *route.before, false) : 0) +
                               (route.next ? activation_frames(config, spec.stage, true) : 0);
  const std::uint64_t behind = (route.next ? decoded : 0) + (route.before ? gradient_frame(config, *route.before) : 0);
  return before + behind - std::min(behind, graph_waiting);
}

std::uint64_t bases_of(const RunConfig& config, const StageSpec& spec) {
  const auto of_edge = [&](StageId edge) {
    const Auto<CodecId>& codec = config.wire.forward.at(edge);
    return codec.given && is_delta(*codec.given) ? config.base_bytes() : 0;
  };
  const Route route = spec.route();
  return (route.before ? of_edge(*route.before) : 0) + (route.next ? of_edge(spec.stage) : 0);
}

// The weights that products read.
std::uint64_t narrow_copies(const RunConfig& config, const StageSpec& spec) {
  if (config.compute.dtype != ComputeType::kBf16) return 0;
  const auto multiplied = [](const StageSpec& of) {
    std::uint64_t count = 0;
    for (const ParameterSpec& one : parameters_of(of))
      if (one.is_factor()) count += static_cast<std::uint64_t>(element_count(one.shape));
    return count;
  };
  return kNarrow * (kNarrowCopies * multiplied(spec) + (has_adapters(spec.model) ? multiplied(base_of(spec)) : 0));
}

// A piece of logits and its softmax, and the head's gradient as it is made (stages/chunked_loss.h); as it is handed on
// it is one of `gradients`.
std::uint64_t loss_of(const RunConfig& config, const StageSpec& spec) {
  if (!spec.is_last()) return 0;
  const ModelSpec& model = spec.model;
  const std::uint64_t rows = std::min<std::uint64_t>(loss_rows(model), config.targets_per_microbatch());
  return kFloat * model.vocabulary * (2 * rows + (has_adapters(model) ? 0 : model.dim));
}

// While parts of a round are put together (sync/reducer.h): its own part, the sum, and what it started from or, with
// allreduce, nothing; parts that travel as frames are there encoded, sent and received, and decoded.
std::uint64_t round_of(const RunConfig& config, std::uint64_t array) {
  const bool alone = config.pipeline.replicas < 2;
  if (traits_of(config.sync.rule).every_step) return (alone ? 3 : 4) * array;
  const CodecId codec = payload_codec(config);
  if (codec == CodecId::kRaw) return (alone ? 3 : 5) * array;
  const Shape flat{static_cast<std::int64_t>(array / kFloat)};
  return 4 * array + 2 * codec_for(codec).frame_bytes(flat, DType::kF32);
}

}  // namespace

std::string mebibyte_text(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

std::uint64_t StageMemory::peak(std::uint64_t entries) const {
  // One graph goes while the gradients grow.
  const std::uint64_t here = graphs_wait ? graph : 0;
  const std::uint64_t pass = std::max(graph + beside_graph, gradients) - here + passing + (inputs_wait ? 0 : inputs);
  return state() + loss + entries * entry() + std::max(round, prepared) + pass;
}

StageMemory stage_memory(const RunConfig& config, const StageSpec& spec) {
  const std::uint64_t trained = parameter_count(spec), array = kFloat * trained;
  const bool every_step = traits_of(config.sync.rule).every_step;
  StageMemory memory;
  memory.trained = trained;
  memory.parameters = memory.second_buffer = array;
  memory.moments = memory.accumulators = 2 * array;
  memory.anchor = (every_step ? 1 : 2) * array;
  memory.narrow = narrow_copies(config, spec);
  if (has_adapters(spec.model)) memory.base = 2 * kFloat * parameter_count(base_of(spec));
  memory.bases = bases_of(config, spec);
  memory.graph = graph_of(config, spec);
  memory.graphs_wait = config.compute.keeps_graphs() && !spec.is_last();
  memory.inputs = inputs_of_layers(config, spec);
  memory.inputs_wait = !spec.is_last();
  memory.frames =
      frames_of_entry(config, spec, (memory.graphs_wait ? memory.graph : 0) + (memory.inputs_wait ? memory.inputs : 0));
  memory.round = round_of(config, array);
  memory.prepared = kPreparedArrays * array;
  memory.gradients = array;
  memory.beside_graph = gradients_beside_graph(config, spec);
  memory.passing =
      kFloat * row_of(spec.model.family).layer_floats(spec.model).passing * config.targets_per_microbatch();
  memory.loss = loss_of(config, spec);
  memory.image = (every_step ? 3 : 2) * array;
  return memory;
}

std::span<const Recompute> recomputes_of(const RunConfig& config) {
  static constexpr Recompute kAll[] = {Recompute::kNone, Recompute::kBlock, Recompute::kStage};
  const Recompute given = config.compute.recompute;
  if (given == Recompute::kAuto && config.executor.kind == ExecutorKind::kTorch) return kAll;
  const auto* const found = std::ranges::find(kAll, given);
  return {found == std::end(kAll) ? kAll : found, 1};  // whole numbers keep no graphs
}

RunConfig with_recompute(RunConfig config, Recompute recompute) {
  config.compute.recompute = recompute;
  return config;
}

std::uint64_t entries_with(const RunConfig& config, std::size_t credits) {
  return std::max<std::uint64_t>(1, std::min<std::uint64_t>(credits, in_flight_most(config)));
}

std::uint64_t process_bytes(const RunConfig& config, const StageSpec& spec, std::size_t credits,
                            std::uint64_t program_bytes) {
  if (config.executor.kind != ExecutorKind::kTorch) return 0;
  return program_bytes + stage_memory(config, spec).needed(entries_with(config, credits));
}

std::uint64_t solo_bytes(const RunConfig& config, std::span<const StageSpec> specs) {
  std::uint64_t bytes = kProgramBytes, kept = 0, largest = 0;
  for (const StageSpec& spec : specs) {
    const StageMemory memory = stage_memory(config, spec);
    bytes += memory.frames + memory.inputs + memory.loss;
    if (config.compute.keeps_graphs() || spec.is_last()) kept += memory.graph;
    largest = std::max(largest, memory.graph + memory.passing);
  }
  return bytes + std::max(kept, largest);
}

std::size_t usual_credits(const RunConfig& config) {
  const std::uint64_t replicas = std::max<std::uint64_t>(1, config.pipeline.replicas);
  return std::clamp<std::size_t>((in_flight_most(config) + replicas - 1) / replicas, kCreditsUsual, kCreditsMax);
}

Result<std::size_t> credits_within(std::uint64_t memory_bytes, const RunConfig& config, const StageSpec& spec) {
  const StageMemory memory = stage_memory(config, spec);
  const std::uint64_t least = memory.needed(kCreditsLeast);
  if (memory_bytes < least)
    return make_error(ErrorCode::kTooLarge, "stage " + std::to_string(spec.stage.value) + " needs about " +
                                                mebibyte_text(least) + " of memory, allowed are " +
                                                mebibyte_text(memory_bytes) + ": give more with --memory");
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(kCreditsLeast + (memory_bytes - least) / std::max<std::uint64_t>(1, memory.entry()),
                              kCreditsMax));  // a model of one stage keeps nothing of an entry
}

}  // namespace shoal
