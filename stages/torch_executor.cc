#include "stages/torch_executor.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <new>
#include <sstream>
#include <utility>

#include "common/check.h"
#include "kernels/frame_kernels.h"
#include "stages/boundary.h"
#include "stages/chunked_loss.h"
#include "stages/torch_boundary.h"
#include "stages/torch_device.h"
#include "stages/torch_guard.h"
#include "stages/torch_memory.h"
#include "stages/torch_screen.h"
#include "stages/torch_tensors.h"
#include "stages/torch_text.h"

namespace shoal {
namespace {

std::unique_ptr<StepMath> step_math(TorchArena& arena, const std::vector<ParameterSpec>& parameters,
                                    const TorchOptions& options) {
  const StepKernels* kernels = options.kernels != nullptr ? options.kernels : cuda_step_kernels();
  StepPath path = options.step_path;
  if (path == StepPath::kBest) {
    if (arena.on_host()) return host_step_math(arena, parameters);
    path = kernels != nullptr ? StepPath::kKernels : StepPath::kTensors;
  }
  return path == StepPath::kKernels ? kernel_step_math(arena, parameters, *kernels)
                                    : tensor_step_math(arena, parameters);
}

// Columns [first, first + T) of (B, T + 1) tokens as int64 (B, T) on the host.
at::Tensor token_columns(const HostTensor& tokens, std::int64_t first) {
  return ids_of(tokens).narrow(1, first, tokens.shape[1] - 1).contiguous();
}

}  // namespace

struct TorchExecutor::TorchGraph : WindowedExecutor::Graph {
  KeptTensor activation, gradient;     // whose memory `read` and the first `seed` share
  std::vector<at::Tensor> parameters;  // leaves, in arena order
  at::Tensor read;                     // the input activation; undefined on the first stage
  at::Tensor output;                   // what the next stage reads, or the sum of the losses on the last one
  at::Tensor ids;                      // (B, T), where a part reads them
  // With Recompute::kBlock, where `output` has a graph on the last stage alone, from the head's input on:
  std::vector<at::Tensor> blocks;  // what each part read, then what the head reads
  TokenPlaces places;
  at::Tensor seed;                    // the gradient of what the next part to go through made
  std::vector<at::Tensor> gradients;  // of the parameters, as far as they are made
  LateGradients late;                 // the others
};

TorchExecutor::TorchExecutor(const StageSpec& spec, const std::string& device, const TorchOptions& options)
    : WindowedExecutor(spec, options.recompute),
      arena_(spec, device),
      parameters_(parameters_of(spec)),
      weights_(spec, options.compute),
      math_(step_math(arena_, parameters_, options)),
      threads_(options.threads),
      blocks_(options.recompute == Recompute::kBlock),
      placed_((options.as_cuda || !arena_.on_host()) && has_frame_kernels()) {
  use_threads();
  if (options.forward_only) return;
  for (const ArenaRole role : {ArenaRole::kCurrent, ArenaRole::kOther, ArenaRole::kMoment1, ArenaRole::kMoment2,
                               ArenaRole::kAccumulatorA, ArenaRole::kAccumulatorB}) {
    arena_.flat(role);  // memory that is short shows here, not in the middle of a run
  }
}

// The number belongs to the calling thread in some builds of libtorch, so each thread that computes sets it once.
void TorchExecutor::use_threads() const {
  if (!arena_.on_host()) c10::impl::VirtualGuardImpl(arena_.device().type()).setDevice(arena_.device());
  thread_local int set = 0;
  if (set == threads_) return;
  at::set_num_threads(threads_);
  set = threads_;
}

Place TorchExecutor::place() const {
  if (!placed_) return {};
  if (arena_.on_host()) return {Place::Kind::kCuda};
  const c10::Stream stream = c10::impl::VirtualGuardImpl(arena_.device().type()).getStream(arena_.device());
  return {Place::Kind::kCuda, arena_.device().index(), stream.native_handle()};
}

KeptTensor TorchExecutor::keep(const at::Tensor& made) const {
  return placed_ || arena_.on_host() ? kept_tensor_of(made, place()) : KeptTensor(host_tensor_of(made));
}

Result<KeptSpace> TorchExecutor::take_space(const Shape& shape) {
  if (!placed_) return WindowedExecutor::take_space(shape);
  return guard_torch([&]() -> Result<KeptSpace> {
    use_threads();
    const at::Tensor space = at::empty(shape, arena_.flat(ArenaRole::kCurrent).options());
    return KeptSpace{{static_cast<std::uint8_t*>(space.data_ptr()), space.nbytes()}, kept_tensor_of(space, place())};
  });
}

std::unique_ptr<TextStage> TorchExecutor::begin_text() {
  return std::make_unique<TorchText>(spec(), arena_, [this] { use_threads(); });
}

Result<WindowedExecutor::Computed> TorchExecutor::compute(const StageInput& input, ArenaRole weights, bool keep_graph) {
  auto computed = guard_torch([&] { return run_layers(input, weights, keep_graph); });
  if (weights == ArenaRole::kAnchor) arena_.forget_narrow(weights);  // evaluations are too few to keep them in memory
  return computed;
}

Result<WindowedExecutor::Computed> TorchExecutor::run_layers(const StageInput& input, ArenaRole weights,
                                                             bool keep_graph) {
  use_threads();
  const bool blocks = keep_graph && blocks_;
  const at::AutoGradMode of_layers(keep_graph && !blocks);
  const std::span<const at::Tensor> leaves = arena_.leaves(weights);
  auto graph = std::make_unique<TorchGraph>();
  graph->parameters.assign(leaves.begin(), leaves.end());
  const ModelSpec& model = spec().model;
  const TorchFamily& family = layers_of(model.family);
  const auto part = [&](std::uint32_t number) {
    return weights_.of_part(arena_, weights, number, at::GradMode::is_enabled() ? &graph->late : nullptr);
  };
  const TokenPlaces places = family.places(model, 0, model.positions, arena_.flat(weights).options());
  if (spec().is_first() || has_boundary(model)) graph->ids = token_columns(input.tokens, 0).to(arena_.device());
  at::Tensor x = graph->ids;
  if (!spec().is_first()) {
    graph->activation = input.activation;
    x = on_device(input.activation, arena_.device());
    if (keep_graph) x.requires_grad_(true);
    graph->read = x;
  }
  for (std::uint32_t number = first_part(spec()); number < 1 + spec().end_layer; ++number) {
    if (blocks) graph->blocks.push_back(x);
    x = run_part(model, number, x, graph->ids, places, part(number), nullptr);
  }
  const at::AutoGradMode of_head(keep_graph);
  if (blocks) graph->places = places;
  if (blocks && spec().is_last()) graph->blocks.push_back(x = x.detach().requires_grad_(true));
  Computed computed;
  computed.output.targets = static_cast<std::uint64_t>(sequences_of(input)) * model.positions;
  if (spec().is_last()) {
    const auto head = part(1 + model.layers);
    const at::Tensor targets = token_columns(input.tokens, 1).to(arena_.device()).view({-1});
    at::Tensor of_rows;
    graph->output =
        chunked_cross_entropy(family.final_norm(model, x, head), head.back(), targets, loss_rows(model), of_rows);
    const at::Tensor losses = of_rows.cpu();  // so that the sum can be taken in double
    SHOAL_TRY(screen(floats_of(losses), input.microbatch, "loss"));
    for (const float loss : floats_of(losses)) computed.output.loss_sum += loss;
  } else {
    if (!blocks) graph->output = x;
    const at::Tensor made = x.detach().contiguous();
    SHOAL_TRY(screen(made, input.microbatch, "output activation"));
    computed.activation = keep(made);
  }
  if (keep_graph) computed.graph = std::move(graph);
  return computed;
}

Result<KeptTensor> TorchExecutor::differentiate_input(Graph& base, const StageInput& input,
                                                      const KeptTensor& gradient) {
  return guard_torch([&]() -> Result<KeptTensor> {
    use_threads();
    auto& graph = static_cast<TorchGraph&>(base);
    graph.gradient = gradient;
    graph.seed = spec().is_last() ? at::ones_like(graph.output) : on_device(gradient, arena_.device());
    if (spec().is_first()) return KeptTensor{};
    const at::Tensor made = pass_back(graph).contiguous();
    SHOAL_TRY(screen(made, input.microbatch, "input gradient"));
    return keep(made);
  });
}

Status TorchExecutor::differentiate_weights(Graph& base, const StageInput& input, ArenaRole accumulator, float sign) {
  return guard_torch([&]() -> Status {
    use_threads();
    auto& graph = static_cast<TorchGraph&>(base);
    if (spec().is_first()) pass_back(graph);
    const at::NoGradGuard no_grad;
    graph.late.make(graph.gradients);
    for (at::Tensor& gradient : graph.gradients) gradient = gradient.contiguous();
    SHOAL_TRY(math_->screen(graph.gradients, input.microbatch));
    math_->add(graph.gradients, accumulator, sign);
    return Status::success();
  });
}

at::Tensor TorchExecutor::pass_back(TorchGraph& graph) {
  graph.gradients.resize(parameters_.size());
  if (blocks_) return pass_back_by_block(graph);
  return pass_part_back(graph, std::exchange(graph.output, {}), graph.read, std::nullopt);
}

// The gradient of what a part, or the whole stage, read: undefined where `read` is.
at::Tensor TorchExecutor::pass_part_back(TorchGraph& graph, const at::Tensor& made, const at::Tensor& read,
                                         std::optional<std::uint32_t> part) {
  std::vector<at::Tensor> wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (part.value_or(parameters_[i].part) != parameters_[i].part || graph.late.has(i)) continue;
    wanted.push_back(graph.parameters[i]);
    places.push_back(i);
  }
  if (read.defined()) wanted.push_back(read);
  std::vector<at::Tensor> made_of = graph.late.pass_back(made, graph.seed, wanted);
  for (std::size_t i = 0; i < places.size(); ++i) graph.gradients[places[i]] = std::move(made_of[i]);
  return graph.seed = read.defined() ? std::move(made_of.back()) : at::Tensor();
}

// From the head to the first part: the graph of each is made, gives its gradients, and is gone before the next.
at::Tensor TorchExecutor::pass_back_by_block(TorchGraph& graph) {
  const at::AutoGradMode mode(true);
  const ModelSpec& model = spec().model;
  const ArenaRole weights =
      arena_.leaves(ArenaRole::kCurrent)[0].is_same(graph.parameters[0]) ? ArenaRole::kCurrent : ArenaRole::kOther;
  if (spec().is_last()) {
    pass_part_back(graph, std::exchange(graph.output, {}), graph.blocks.back(), 1 + model.layers);
    graph.blocks.pop_back();
  }
  for (std::uint32_t part = 1 + spec().end_layer; part-- > first_part(spec()); graph.blocks.pop_back()) {
    if (part == 0 && parameters_.front().part != 0) continue;  // adapters have none there
    graph.late.make(graph.gradients);                          // of the part behind
    at::Tensor read = graph.blocks.back().detach();
    if (part != 0) read.requires_grad_(true);
    const auto of_part = weights_.of_part(arena_, weights, part, &graph.late);
    const at::Tensor made = run_part(model, part, read, graph.ids, graph.places, of_part, nullptr);
    pass_part_back(graph, made, part != 0 ? read : at::Tensor(), part);
  }
  return graph.seed;
}

Result<double> TorchExecutor::window_norm(ArenaRole accumulator, const InnerStep& step) {
  use_threads();
  return guard_torch([&] { return math_->window_norm(accumulator, step); });
}

void TorchExecutor::write_step(ArenaRole accumulator, const InnerStep& step, double norm,
                               std::span<const float> shift) {
  use_threads();
  must_not_throw([&] { math_->write_step(accumulator, adamw_factors(step, norm), shift); });
}

void TorchExecutor::write_shift(std::span<const float> shift) {
  use_threads();
  must_not_throw([&] {
    const at::NoGradGuard no_grad;
    at::Tensor other = arena_.flat(ArenaRole::kOther);
    other.copy_(arena_.flat(ArenaRole::kCurrent));
  });
  add_shift_to_other(shift);
}

void TorchExecutor::add_shift_to_other(std::span<const float> shift) {
  SHOAL_CHECK_EQ(shift.size(), arena_.size());
  must_not_throw([&] {
    const at::NoGradGuard no_grad;
    at::Tensor other = arena_.flat(ArenaRole::kOther);
    other.add_(on_device(shift, arena_.device()));
  });
}

void TorchExecutor::zero(ArenaRole role) {
  must_not_throw([&] {
    const at::NoGradGuard no_grad;
    at::Tensor values = arena_.flat(role);
    values.zero_();
  });
}

void TorchExecutor::about_to_overwrite() {
  arena_.forget_narrow(ArenaRole::kOther);
  SHOAL_CHECK_EQ(arena_.outside_references(ArenaRole::kOther), 0u);
}

Result<std::unique_ptr<TorchExecutor>> make_torch_executor(const StageSpec& spec, const TorchOptions& options) {
  if (options.threads < 1) return make_error(ErrorCode::kInput, "threads must be at least 1");
  SHOAL_ASSIGN(const std::string device, choose_device(options.device));
  use_aligned_memory();
  return guard_torch([&]() -> Result<std::unique_ptr<TorchExecutor>> {
    return std::make_unique<TorchExecutor>(spec, device, options);
  });
}

Result<std::unique_ptr<StageExecutor>> make_torch_executor(const StageSpec& spec, const std::string& device,
                                                           int threads) {
  TorchOptions options;
  options.device = device;
  options.threads = threads;
  SHOAL_ASSIGN(std::unique_ptr<TorchExecutor> executor, make_torch_executor(spec, options));
  return std::unique_ptr<StageExecutor>(std::move(executor));
}

}  // namespace shoal
