#include "stages/torch_screen.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>

#include <atomic>

#include "kernels/accumulate.h"
#include "stages/torch_tensors.h"
#include "stages/windowed_executor.h"

namespace shoal {

ParallelFor torch_for() {
  return [](std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body) {
    at::parallel_for(0, static_cast<std::int64_t>(count), static_cast<std::int64_t>(grain),
                     [&](std::int64_t begin, std::int64_t end) {
                       body(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
                     });
  };
}

Status screen(std::span<const float> values, const MicrobatchId& microbatch, std::string_view role) {
  std::atomic<bool> finite = true;
  torch_for()(values.size(), kParallelGrain, [&](std::size_t begin, std::size_t end) {
    if (!all_finite(values.subspan(begin, end - begin))) finite.store(false, std::memory_order_relaxed);
  });
  if (finite) return Status::success();
  return check_finite(values, microbatch, role);
}

Status screen(const at::Tensor& values, const MicrobatchId& microbatch, std::string_view role) {
  if (values.is_cpu()) return screen(floats_of(values), microbatch, role);
  if (at::isfinite(values).all().item<bool>()) return Status::success();
  return screen(floats_of(values.cpu()), microbatch, role);
}

Status screen_gradients(std::span<const at::Tensor> gradients, std::span<const ParameterSpec> parameters,
                        const MicrobatchId& microbatch) {
  for (std::size_t i = 0; i < gradients.size(); ++i)
    SHOAL_TRY(screen(gradients[i], microbatch, "gradient of " + parameters[i].name));
  return Status::success();
}

}  // namespace shoal
