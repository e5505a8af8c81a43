#include "stages/late_gradients.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace shoal {

struct LateGradients::Noted {
  torch::autograd::Edge made;
  std::size_t parameter;
  Make make;
};

struct LateGradients::Ready {
  at::Tensor gradient_of_made;
  std::size_t parameter;
  Make make;
};

LateGradients::LateGradients()
    : noted_(std::make_unique<std::vector<Noted>>()), ready_(std::make_unique<std::vector<Ready>>()) {}
LateGradients::~LateGradients() = default;

void LateGradients::add(const at::Tensor& made, std::size_t parameter, Make make) {
  noted_->push_back({torch::autograd::impl::gradient_edge(made), parameter, std::move(make)});
}

bool LateGradients::has(std::size_t parameter) const {
  return std::ranges::find(*noted_, parameter, &Noted::parameter) != noted_->end();
}

std::vector<at::Tensor> LateGradients::pass_back(const at::Tensor& output, const at::Tensor& seed,
                                                 std::span<const at::Tensor> inputs) {
  torch::autograd::edge_list wanted;
  for (const at::Tensor& input : inputs) wanted.push_back(torch::autograd::impl::gradient_edge(input));
  for (const Noted& noted : *noted_) wanted.push_back(noted.made);
  std::vector<at::Tensor> gradients = torch::autograd::Engine::get_default_engine().execute(
      {torch::autograd::impl::gradient_edge(output)}, {seed}, false, false, false, wanted);
  for (const at::Tensor& gradient : gradients) SHOAL_CHECK(gradient.defined());
  for (std::size_t i = 0; i < noted_->size(); ++i) {
    Noted& noted = (*noted_)[i];
    ready_->push_back({std::move(gradients[inputs.size() + i]), noted.parameter, std::move(noted.make)});
  }
  noted_->clear();
  gradients.resize(inputs.size());
  return gradients;
}

void LateGradients::make(std::span<at::Tensor> gradients) {
  for (Ready& ready : *ready_) {
    gradients[ready.parameter] = ready.make(ready.gradient_of_made).to(at::kFloat);
    ready = {};
  }
  ready_->clear();
}

}  // namespace shoal
