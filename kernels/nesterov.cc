#include "kernels/nesterov.h"

#include "common/check.h"
#include "kernels/fast_cpu.h"
#include "kernels/nesterov_rule.h"

namespace shoal {
namespace {

void require_one_length(const NesterovArrays& a) {
  for (const std::size_t other : {a.momentum.size(), a.delta.size(), a.anchor_out.size(), a.momentum_out.size()})
    SHOAL_CHECK_EQ(other, a.anchor.size());
}

void apply_from(std::size_t first, const NesterovRates& rates, const NesterovArrays& a) {
  for (std::size_t i = first; i < a.anchor.size(); ++i) {
    const NesterovElement next = nesterov_element(rates, {a.anchor[i], a.momentum[i]}, a.delta[i]);
    a.anchor_out[i] = next.anchor;
    a.momentum_out[i] = next.momentum;
  }
}

}  // namespace

void nesterov_apply_twin(const NesterovRates& rates, const NesterovArrays& arrays) {
  require_one_length(arrays);
  apply_from(0, rates, arrays);
}

void nesterov_apply(const NesterovRates& rates, const NesterovArrays& arrays) {
  require_one_length(arrays);
#if SHOAL_WITH_NET
  apply_from(fast_cpu::nesterov(rates, arrays), rates, arrays);
#else
  apply_from(0, rates, arrays);
#endif
}

}  // namespace shoal
