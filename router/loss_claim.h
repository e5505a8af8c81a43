#pragma once
// What a peer may say of a microbatch's loss: its targets are those that the sample has, and its mean loss a target, in
// nats, is between 0 and that of a uniform guess with kLossAboveUniform more. What is outside is no loss of this model,
// and one such word would be the run's. Pure. Thread: any.
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>

#include "transport/messages.h"

namespace shoal {

inline constexpr double kLossAboveUniform = 64;  // a model that diverges gets there; its gradients soon are not finite

struct LossBound {
  std::uint64_t targets = 0;  // of a microbatch: sequences x positions
  std::uint64_t vocabulary = 1;

  double most() const { return std::log(static_cast<double>(vocabulary)) + kLossAboveUniform; }
  // Why it is no loss of such a microbatch; empty: it is one.
  std::string refusal(const Gradient& said) const { return refusal(said.loss_sum, said.targets); }
  std::string refusal(double loss_sum, std::uint64_t of) const {
    std::ostringstream text;
    if (of != targets) {
      text << "it says a loss of " << of << " targets, and the sample has " << targets;
    } else if (const double mean = loss_sum / static_cast<double>(targets); !(mean >= 0 && mean <= most())) {
      text << "it says a mean loss of " << mean << " nats a target, which is not between 0 and " << most();
    }
    return text.str();
  }
};

}  // namespace shoal
