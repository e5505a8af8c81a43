#include "tests/torch/twin_kernels.h"

#include <algorithm>

#include "kernels/adamw_rule.h"
#include "kernels/norm.h"

namespace shoal {
namespace {

Status begin_screen(NonFinite* screen, CudaStream) {
  *screen = {};
  return Status::success();
}

Status look(const float* values, std::size_t n, std::uint64_t index, NonFinite* screen, CudaStream) {
  const NonFinite found = screen_twin({values, n});
  screen->count += found.count;
  if (found.count > 0) screen->first = std::min(screen->first, index + found.first);
  return Status::success();
}

Status add(const NonFinite* screen, float* sum, const float* gradient, std::size_t n, float sign, CudaStream) {
  if (screen->count == 0) accumulate_twin({sum, n}, {gradient, n}, sign);
  return Status::success();
}

Status norm_blocks(const float* values, std::size_t n, double* sums, CudaStream) {
  for (std::size_t begin = 0; begin < n; begin += kNormBlock)
    *sums++ = sum_of_squares({values + begin, std::min(kNormBlock, n - begin)});
  return Status::success();
}

Status scale(const double* sums, std::size_t blocks, std::uint64_t targets, double clip_norm, StepScale* scale,
             CudaStream) {
  double total = 0;
  for (std::size_t i = 0; i < blocks; ++i) total += sums[i];
  *scale = step_scale(total, targets, clip_norm);
  return Status::success();
}

Status adamw(const AdamWRates& rates, const StepScale* scale, const AdamWRange* ranges, std::size_t range_count,
             const AdamWFlat& arrays, std::size_t n, CudaStream) {
  AdamWRates scaled = rates;
  scaled.gradient_scale = scale->gradient_scale;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < range_count && scale->usable != 0; ++i) {
    const std::size_t end = std::min<std::size_t>(ranges[i].end, n);
    if (ranges[i].skipped == 0) adamw_range_twin(scaled, ranges[i].keep, arrays, begin, end);
    begin = end;
  }
  return Status::success();
}

}  // namespace

const StepKernels kTwinKernels{begin_screen, look, add, norm_blocks, scale, adamw};

}  // namespace shoal
