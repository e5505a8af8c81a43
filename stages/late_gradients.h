#pragma once
// Gradients of parameters that are made behind a backward and not in it: the gradient of a stage's input, for which
// another stage waits, waits for none of them (Qi et al. 2023, arXiv 2401.10241, section 2.1). While a graph is made,
// an operation says how a parameter's gradient follows from that of what the operation made; the pass back collects
// those, and frees the rest of its graph. Of a linear map what it read and the gradient of what it made are kept until
// then, about as much as the graph had. Internal to the files that see the tensor library. Thread: the executor's.
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace at {
class Tensor;
}

namespace shoal {

class LateGradients {
 public:
  LateGradients();
  ~LateGradients();

  // REQUIRES: `made` has a graph. `make` has nothing of it: tensors that it keeps are detached.
  using Make = std::function<at::Tensor(const at::Tensor& gradient_of_made)>;
  void add(const at::Tensor& made, std::size_t parameter, Make make);
  // Whether a pass is to leave this parameter out.
  bool has(std::size_t parameter) const;
  // From `output`, whose gradient is `seed`, to these inputs, leaves or not: their gradients. Consumes the graph; what
  // was added to it is ready to be made.
  std::vector<at::Tensor> pass_back(const at::Tensor& output, const at::Tensor& seed,
                                    std::span<const at::Tensor> inputs);
  // gradients[parameter] of all that is ready, as f32; each frees what it was made of.
  void make(std::span<at::Tensor> gradients);

 private:
  struct Noted;
  struct Ready;
  std::unique_ptr<std::vector<Noted>> noted_;  // of the graph that is being made
  std::unique_ptr<std::vector<Ready>> ready_;
};

}  // namespace shoal
