#include "stages/torch_text.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "stages/torch_boundary.h"
#include "stages/torch_guard.h"
#include "stages/torch_tensors.h"
#include "stages/windowed_executor.h"

namespace shoal {
namespace {

Status check_text_values(std::span<const float> values, const char* role) { return check_finite(values, {}, role); }

}  // namespace

struct TorchText::Caches {
  std::vector<LayerCache> layers;
};

TorchText::TorchText(const StageSpec& spec, TorchArena& arena, std::function<void()> use_threads)
    : spec_(spec),
      weights_(spec, ComputeType::kFp32),
      arena_(arena),
      use_threads_(std::move(use_threads)),
      caches_(std::make_unique<Caches>()) {
  caches_->layers.resize(1 + spec.end_layer - first_part(spec));
}

TorchText::~TorchText() = default;

std::uint64_t TorchText::bytes() const {
  std::uint64_t bytes = 0;
  for (const LayerCache& cache : caches_->layers)
    for (const at::Tensor& tensor : cache.held) bytes += tensor.nbytes();
  return bytes;
}

Result<HostTensor> TorchText::extend(const HostTensor& tokens, FrameCoder& coder) {
  SHOAL_TRY(check_text(spec_, tokens, places_));
  const Shape shape{1, tokens.shape[1], spec_.model.wire_width()};
  HostTensor activation;
  if (!spec_.is_first()) {
    Buffer memory(static_cast<std::size_t>(element_count(shape)) * sizeof(float));
    SHOAL_ASSIGN(const double size, coder.decode({DType::kF32, shape, {memory.data(), memory.size()}}));
    activation = make_host_tensor(DType::kF32, shape, std::move(memory));
    if (!std::isfinite(size)) SHOAL_TRY(check_text_values(activation.f32(), "a text's activation"));
  }
  const std::vector<LayerCache> before = caches_->layers;  // shares the tensors
  Result<HostTensor> made = guard_torch([&] { return compute(tokens, activation); });
  Status passed = made.ok() ? check_text_values(made->f32(), "what a text became") : Status(made.error());
  if (passed.ok() && !spec_.is_last()) passed = coder.encode({made->view()});
  if (!passed.ok()) {
    caches_->layers = before;
    return passed.error();
  }
  places_ += static_cast<std::uint64_t>(tokens.shape[1]);
  if (!spec_.is_last()) return HostTensor{};
  return made;
}

Result<HostTensor> TorchText::compute(const HostTensor& tokens, const HostTensor& activation) {
  use_threads_();
  const at::NoGradGuard no_grad;
  const ModelSpec& model = spec_.model;
  const TorchFamily& family = layers_of(model.family);
  const auto part = [&](std::uint32_t number) { return weights_.of_part(arena_, ArenaRole::kAnchor, number); };
  const std::int64_t count = tokens.shape[1];
  const TokenPlaces places =
      family.places(model, static_cast<std::int64_t>(places_), count, arena_.flat(ArenaRole::kAnchor).options());
  const at::Tensor ids = ids_of(tokens).to(arena_.device());
  at::Tensor x = spec_.is_first() ? ids : on_device(activation, arena_.device());
  std::size_t cache = 0;
  for (std::uint32_t number = first_part(spec_); number < 1 + spec_.end_layer; ++number)
    x = run_part(model, number, x, ids, places, part(number), &caches_->layers[cache++]);
  if (!spec_.is_last()) return host_tensor_of(x);
  const auto head = part(1 + model.layers);
  const at::Tensor last = family.final_norm(model, x.narrow(1, count - 1, 1), head);
  return host_tensor_of(last.matmul((*head.back()).t()).view({-1}));
}

}  // namespace shoal
