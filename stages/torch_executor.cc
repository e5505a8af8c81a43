#include "stages/torch_executor.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <sstream>

#include "common/check.h"
#include "kernels/accumulate.h"
#include "stages/chunked_loss.h"
#include "stages/muon.h"
#include "stages/torch_device.h"
#include "stages/torch_family.h"
#include "stages/torch_guard.h"
#include "stages/torch_memory.h"
#include "stages/torch_tensors.h"
#include "stages/torch_text.h"

namespace shoal {
namespace {

// Pieces of at least this many floats: below it a second thread costs more than it saves.
constexpr std::int64_t kParallelGrain = 1 << 15;

ParallelFor torch_for() {
  return [](std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body) {
    at::parallel_for(0, static_cast<std::int64_t>(count), static_cast<std::int64_t>(grain),
                     [&](std::int64_t begin, std::int64_t end) {
                       body(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
                     });
  };
}

bool all_finite_parallel(std::span<const float> values) {
  std::atomic<bool> finite = true;
  at::parallel_for(
      0, static_cast<std::int64_t>(values.size()), kParallelGrain, [&](std::int64_t begin, std::int64_t end) {
        const auto piece = values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
        if (!all_finite(piece)) finite.store(false, std::memory_order_relaxed);
      });
  return finite;
}

Status screen(std::span<const float> values, const MicrobatchId& microbatch, std::string_view role) {
  if (all_finite_parallel(values)) return Status::success();
  return check_finite(values, microbatch, role);
}

// stages/muon.h's, with tensor operations. A new tensor.
at::Tensor orthogonalised(const at::Tensor& matrix) {
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  x = x.div(x.norm().add(kNewtonSchulzFloor));
  for (int step = 0; step < kNewtonSchulzSteps; ++step) {
    const at::Tensor gram = x.mm(x.t());
    const at::Tensor factor = gram.mul(kNewtonSchulz[1]).add_(gram.mm(gram), kNewtonSchulz[2]);
    x = x.mul(kNewtonSchulz[0]).add_(factor.mm(x));
  }
  return tall ? x.t() : x;
}

// Columns [first, first + T) of (B, T + 1) tokens as int64 (B, T) on the host.
at::Tensor token_columns(const HostTensor& tokens, std::int64_t first) {
  return ids_of(tokens).narrow(1, first, tokens.shape[1] - 1).contiguous();
}

}  // namespace

struct TorchExecutor::TorchGraph : WindowedExecutor::Graph {
  std::vector<at::Tensor>
      inputs;         // what gradients are wanted of: the parameters in arena order, then the input activation if any
  at::Tensor output;  // (B, T, d), or the sum of the losses on the last stage
};

TorchExecutor::TorchExecutor(const StageSpec& spec, const std::string& device, const TorchOptions& options)
    : WindowedExecutor(spec, options.recompute),
      arena_(spec, device),
      parameters_(parameters_of(spec)),
      weights_(spec, options.compute),
      threads_(options.threads),
      host_math_(arena_.on_host() && !options.tensor_math) {
  use_threads();
  if (options.forward_only) return;
  for (const ArenaRole role : {ArenaRole::kCurrent, ArenaRole::kOther, ArenaRole::kMoment1, ArenaRole::kMoment2,
                               ArenaRole::kAccumulatorA, ArenaRole::kAccumulatorB}) {
    arena_.flat(role);  // memory that is short shows here, not in the middle of a run
  }
}

// The number belongs to the calling thread in some builds of libtorch, so each thread that computes sets it once.
void TorchExecutor::use_threads() const {
  thread_local int set = 0;
  if (set == threads_) return;
  at::set_num_threads(threads_);
  set = threads_;
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
  const at::AutoGradMode mode(keep_graph);
  const std::span<const at::Tensor> leaves = arena_.leaves(weights);
  auto graph = std::make_unique<TorchGraph>();
  graph->inputs.assign(leaves.begin(), leaves.end());
  const ModelSpec& model = spec().model;
  const TorchFamily& family = layers_of(model.family);
  const auto part = [&](std::uint32_t number) { return weights_.of_part(arena_, weights, number); };
  const TokenPlaces places = family.places(model, 0, model.positions, arena_.flat(weights).options());
  at::Tensor x;
  if (spec().is_first()) {
    x = family.embed(model, token_columns(input.tokens, 0).to(arena_.device()), places, part(0));
  } else {
    x = on_device(input.activation, arena_.device());
    if (keep_graph) x.requires_grad_(true);
    graph->inputs.push_back(x);
  }
  for (std::uint32_t layer = spec().first_layer; layer < spec().end_layer; ++layer)
    x = family.layer(model, x, places, part(1 + layer), nullptr);
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
    graph->output = x;
    computed.activation = host_tensor_of(x);
    SHOAL_TRY(screen(computed.activation.f32(), input.microbatch, "output activation"));
  }
  if (keep_graph) computed.graph = std::move(graph);
  return computed;
}

Result<HostTensor> TorchExecutor::differentiate(Graph& graph, const StageInput& input, const HostTensor& gradient,
                                                ArenaRole accumulator, float sign) {
  return guard_torch([&] { return run_backward(static_cast<TorchGraph&>(graph), input, gradient, accumulator, sign); });
}

Result<HostTensor> TorchExecutor::run_backward(TorchGraph& graph, const StageInput& input, const HostTensor& gradient,
                                               ArenaRole accumulator, float sign) {
  use_threads();
  const at::Tensor seed = spec().is_last() ? at::ones_like(graph.output) : on_device(gradient, arena_.device());
  const std::vector<at::Tensor> all = torch::autograd::grad({graph.output}, graph.inputs, {seed});
  HostTensor input_gradient;
  if (!spec().is_first()) {
    input_gradient = host_tensor_of(all.back());
    SHOAL_TRY(screen(input_gradient.f32(), input.microbatch, "input gradient"));
  }
  SHOAL_TRY(accumulate(std::span(all).first(parameters_.size()), input, accumulator, sign));
  return input_gradient;
}

// Screens all, then adds all (with sign 0 nothing): an error leaves the window as it was.
Status TorchExecutor::accumulate(std::span<const at::Tensor> gradients, const StageInput& input, ArenaRole accumulator,
                                 float sign) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> contiguous;
  for (const at::Tensor& gradient : gradients) contiguous.push_back(gradient.contiguous());
  if (!host_math_) {
    at::Tensor finite = at::isfinite(contiguous[0]).all();
    for (std::size_t i = 1; i < contiguous.size(); ++i) finite = finite.logical_and(at::isfinite(contiguous[i]).all());
    if (!finite.item<bool>()) {
      for (std::size_t i = 0; i < contiguous.size(); ++i) {
        SHOAL_TRY(screen(floats_of(contiguous[i].cpu()), input.microbatch, "gradient of " + parameters_[i].name));
      }
    }
    if (sign == 0) return Status::success();
    for (std::size_t i = 0; i < contiguous.size(); ++i) {
      const auto offset = static_cast<std::int64_t>(parameters_[i].offset);
      arena_.flat(accumulator).narrow(0, offset, contiguous[i].numel()).add_(contiguous[i].view({-1}), sign);
    }
    return Status::success();
  }
  for (std::size_t i = 0; i < contiguous.size(); ++i) {
    SHOAL_TRY(screen(floats_of(contiguous[i]), input.microbatch, "gradient of " + parameters_[i].name));
  }
  if (sign == 0) return Status::success();
  const std::span<float> sums = arena_.span(accumulator);
  for (std::size_t i = 0; i < contiguous.size(); ++i) {
    const std::span<const float> values = floats_of(contiguous[i]);
    at::parallel_for(0, contiguous[i].numel(), kParallelGrain, [&](std::int64_t begin, std::int64_t end) {
      const auto at = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
      const Status added =
          accumulate_checked(sums.subspan(parameters_[i].offset + at, count), values.subspan(at, count), sign);
      SHOAL_CHECK(added.ok());
    });
  }
  return Status::success();
}

Result<double> TorchExecutor::window_norm(ArenaRole accumulator, const InnerStep& step) {
  use_threads();
  if (host_math_) return mean_gradient_norm(arena_.span(accumulator), step.targets, torch_for());
  return guard_torch([&]() -> Result<double> {
    const at::NoGradGuard no_grad;
    const at::Tensor wide = arena_.flat(accumulator).to(at::kDouble);
    const double norm = std::sqrt(wide.dot(wide).item<double>());
    return check_mean_gradient_norm(norm / static_cast<double>(step.targets));
  });
}

void TorchExecutor::write_step(ArenaRole accumulator, const InnerStep& step, double norm,
                               std::span<const float> shift) {
  use_threads();
  const AdamWFactors factors = adamw_factors(step, norm);
  if (!host_math_) return write_step_with_tensors(accumulator, factors, shift);
  AdamWArrays arrays;
  arrays.parameters = arena_.span(ArenaRole::kCurrent);
  arrays.gradient_sum = arena_.span(accumulator);
  arrays.moment1 = arrays.moment1_out = arena_.span(ArenaRole::kMoment1);
  arrays.moment2 = arrays.moment2_out = arena_.span(ArenaRole::kMoment2);
  arrays.parameters_out = arena_.span(ArenaRole::kOther);
  arrays.shift = shift;
  adamw_apply(parameters_, factors, arrays, torch_for());
}

// adamw_apply with tensor operations, for memory that the CPU does not reach.
void TorchExecutor::write_step_with_tensors(ArenaRole accumulator, const AdamWFactors& f,
                                            std::span<const float> shift) {
  must_not_throw([&] {
    const at::NoGradGuard no_grad;
    const at::Tensor gradient = arena_.flat(accumulator).mul(f.gradient_scale);
    at::Tensor moment1 = arena_.flat(ArenaRole::kMoment1), moment2 = arena_.flat(ArenaRole::kMoment2);
    at::Tensor other = arena_.flat(ArenaRole::kOther);
    const std::vector<at::Tensor> before = matrix_updates(f);
    moment2.mul_(f.beta2).addcmul_(gradient, gradient, 1 - f.beta2);
    const at::Tensor root = moment2.sqrt().mul_(f.root_scale).add_(f.eps);
    other.copy_(arena_.flat(ArenaRole::kCurrent));
    for (const ParameterSpec& parameter : parameters_) {
      if (!parameter.decays) continue;
      other.narrow(0, static_cast<std::int64_t>(parameter.offset), element_count(parameter.shape)).mul_(f.keep);
    }
    if (f.rate_before != 0) other.addcdiv_(moment1, root, f.rate_before);  // the moment before the step
    moment1.mul_(f.beta1).add_(gradient, 1 - f.beta1);
    other.addcdiv_(moment1, root, -f.rate);
    if (f.muon) write_matrices(gradient, f, before);
  });
  if (!shift.empty()) add_shift_to_other(shift);
}

// What the step before left in the second moment's place, of each matrix that Muon steps.
std::vector<at::Tensor> TorchExecutor::matrix_updates(const AdamWFactors& f) {
  std::vector<at::Tensor> updates;
  for (std::size_t i = 0; f.muon && i < parameters_.size(); ++i)
    if (parameters_[i].matrices > 0) updates.push_back(matrix_of(arena_.flat(ArenaRole::kMoment2), i).clone());
  return updates;
}

at::Tensor TorchExecutor::matrix_of(const at::Tensor& flat, std::size_t parameter) const {
  const ParameterSpec& spec = parameters_[parameter];
  return flat.narrow(0, static_cast<std::int64_t>(spec.offset), element_count(spec.shape))
      .view({spec.shape[0], spec.shape[1]});
}

// In the place of AdamW's step, which the flat operations made of them. The first moment is the same in both.
void TorchExecutor::write_matrices(const at::Tensor& gradient, const AdamWFactors& f,
                                   std::span<const at::Tensor> before) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const ParameterSpec& spec = parameters_[i];
    if (spec.matrices == 0) continue;
    const at::Tensor& old = before[next++];
    const at::Tensor mixed =
        matrix_of(arena_.flat(ArenaRole::kMoment1), i).mul(f.beta1).add_(matrix_of(gradient, i), 1 - f.beta1);
    at::Tensor update = matrix_of(arena_.flat(ArenaRole::kMoment2), i);
    at::Tensor other = matrix_of(arena_.flat(ArenaRole::kOther), i);
    const auto matrices = static_cast<std::int64_t>(spec.matrices);
    const std::int64_t cols = spec.shape[1] / matrices;
    for (std::int64_t matrix = 0; matrix < matrices; ++matrix)
      update.narrow(1, matrix * cols, cols).copy_(orthogonalised(mixed.narrow(1, matrix * cols, cols)));
    const float scale = muon_scale(static_cast<std::size_t>(spec.shape[0]), static_cast<std::size_t>(cols));
    other.copy_(matrix_of(arena_.flat(ArenaRole::kCurrent), i)).mul_(spec.decays ? f.keep : 1.0f);
    other.add_(update, -scale * f.matrix_rate).add_(old, scale * f.matrix_rate_before);
  }
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
    auto* memory = const_cast<float*>(shift.data());
    const at::Tensor host =
        at::from_blob(memory, {static_cast<std::int64_t>(shift.size())}, at::TensorOptions().dtype(at::kFloat));
    other.add_(host.to(other.device()));
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
