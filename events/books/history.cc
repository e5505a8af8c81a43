#include "events/books/history.h"

#include <algorithm>
#include <cmath>

namespace shoal {

void History::Bin::merge(const Bin& later) {
  loss += later.loss;
  weight += later.weight;
  loss_least = std::min(loss_least, later.loss_least);
  loss_most = std::max(loss_most, later.loss_most);
  validation += later.validation;
  validations += later.validations;
  targets += later.targets;
  rounds += later.rounds;
  faults += later.faults;
}

History::Bin& History::at(double time) {
  if (bins_.empty()) begin_ = std::floor(time);
  const auto place = [this, time] { return std::max(0.0, std::floor((time - begin_) / width_)); };
  while (place() >= static_cast<double>(kBinsMax)) {
    for (std::size_t i = 0; 2 * i < bins_.size(); ++i) {
      Bin pair = bins_[2 * i];
      if (2 * i + 1 < bins_.size()) pair.merge(bins_[2 * i + 1]);
      bins_[i] = pair;
    }
    bins_.resize((bins_.size() + 1) / 2);
    width_ *= 2;
  }
  const auto index = static_cast<std::size_t>(place());
  if (index >= bins_.size()) bins_.resize(index + 1);
  return bins_[index];
}

void History::on_loss(double time, double loss, std::uint64_t targets) {
  if (!std::isfinite(loss) || targets == 0) return;
  Bin& bin = at(time);
  bin.loss += loss * static_cast<double>(targets);
  bin.weight += static_cast<double>(targets);
  bin.loss_least = std::min(bin.loss_least, loss);
  bin.loss_most = std::max(bin.loss_most, loss);
}

void History::on_validation(double time, double loss) {
  if (!std::isfinite(loss)) return;
  Bin& bin = at(time);
  bin.validation += loss;
  ++bin.validations;
}

}  // namespace shoal
