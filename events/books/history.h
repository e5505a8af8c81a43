#pragma once
// How a run went, in at most kBinsMax bins of equal width: when they are full, each two become one, so that the memory
// is bounded and the whole run is there. Value.
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace shoal {

class History {
 public:
  static constexpr std::size_t kBinsMax = 512;
  static constexpr double kWidthFirst = 1;  // seconds

  struct Bin {
    double loss = 0, weight = 0;  // sum of nats over `weight` targets
    double loss_least = std::numeric_limits<double>::infinity(), loss_most = -loss_least;  // of the steps
    double validation = 0;
    std::uint32_t validations = 0;
    std::uint64_t targets = 0;  // committed
    std::uint32_t rounds = 0, faults = 0;

    void merge(const Bin& later);
  };

  // Times may go back a little: what is older than the first bin is counted there.
  void on_loss(double time, double loss, std::uint64_t targets);
  void on_validation(double time, double loss);
  void on_targets(double time, std::uint64_t targets) { at(time).targets += targets; }
  void on_round(double time) { ++at(time).rounds; }
  void on_fault(double time) { ++at(time).faults; }

  double begin() const { return begin_; }  // of the first bin; 0 while there is none
  double width() const { return width_; }
  const std::vector<Bin>& bins() const { return bins_; }

 private:
  Bin& at(double time);

  double begin_ = 0, width_ = kWidthFirst;
  std::vector<Bin> bins_;
};

}  // namespace shoal
