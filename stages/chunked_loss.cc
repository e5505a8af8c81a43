#include "stages/chunked_loss.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace shoal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// d(sum)/d(rows) and d(sum)/d(head); the head's is undefined where the head is not trained.
struct Gradients {
  at::Tensor rows, head;
};

at::Tensor losses_of(const at::Tensor& rows, const Weight& head, const at::Tensor& targets, std::int64_t piece,
                     Gradients* gradients) {
  const bool trained = (*head).requires_grad();
  const at::NoGradGuard no_grad;
  const std::int64_t count = rows.size(0);
  at::Tensor losses = at::empty({count}, rows.options());
  if (gradients != nullptr) {
    gradients->rows = at::empty_like(rows);
    if (trained) gradients->head = at::zeros_like(*head);
  }
  for (std::int64_t first = 0; first < count; first += piece) {
    const std::int64_t some = std::min(piece, count - first);
    const at::Tensor part = as_factor(rows.narrow(0, first, some), head);
    const at::Tensor wanted = targets.narrow(0, first, some).unsqueeze(1);
    // One expression would hold the bf16 logits until its end, a third piece beside the two of loss_bytes().
    at::Tensor values = part.matmul(head.product->t()).to(rows.scalar_type());
    values = at::log_softmax(values, 1);
    losses.narrow(0, first, some).copy_(values.gather(1, wanted).squeeze(1).neg_());
    if (gradients == nullptr) continue;
    // d(loss)/d(logits): the softmax, less 1 at the target.
    values.exp_();
    values.scatter_add_(1, wanted, at::empty_like(wanted, values.options()).fill_(-1));
    const at::Tensor outer = as_factor(values, head);
    gradients->rows.narrow(0, first, some).copy_(outer.matmul(*head.product));
    if (!trained) continue;
    if (part.scalar_type() == rows.scalar_type()) {
      gradients->head.addmm_(outer.t(), part);
    } else {
      gradients->head.add_(outer.t().matmul(part));
    }
  }
  return losses;
}

struct SumOfLosses : torch::autograd::Function<SumOfLosses> {
  // `values`: the head's, in which it is differentiable.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& values,
                            const Weight* head, const at::Tensor& targets, std::int64_t piece, at::Tensor* losses) {
    (void)values;
    Gradients gradients;
    *losses = losses_of(rows, *head, targets, piece, &gradients);
    context->save_for_backward({gradients.rows, gradients.head});
    return losses->sum();
  }
  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const variable_list saved = context->get_saved_variables();
    return {saved[0].mul(outer[0]), saved[1].defined() ? saved[1].mul(outer[0]) : at::Tensor(), {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor chunked_cross_entropy(const at::Tensor& rows, const Weight& head, const at::Tensor& targets,
                                 std::int64_t piece, at::Tensor& losses) {
  if (at::GradMode::is_enabled()) return SumOfLosses::apply(rows, *head, &head, targets, piece, &losses);
  losses = losses_of(rows, head, targets, piece, nullptr);
  return losses.sum();
}

}  // namespace shoal
