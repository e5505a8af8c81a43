// Payloads of plain floats: what allreduce and diloco bring.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/check.h"
#include "sync/payload.h"
#include "sync/rule_arrays.h"

namespace shoal {
namespace {

class DensePayloadSum final : public PayloadSum {
 public:
  DensePayloadSum(DenseSum how, Bytes own, std::size_t members, std::size_t self)
      : how_(how), own_(std::move(own)), members_(members), sum_(range(self).size()), result_(own_.size()) {
    SHOAL_CHECK_EQ(own_.size() % sizeof(float), 0u);
  }

  Bytes part(std::size_t index) const override {
    const PartRange r = range(index);
    return own_.slice(r.begin * sizeof(float), r.size() * sizeof(float));
  }

  Status check(std::size_t index, const Bytes& piece) const override {
    const std::size_t wanted = range(index).size() * sizeof(float);
    if (piece.size() != wanted)
      return make_error(ErrorCode::kMalformed,
                        "a part of " + std::to_string(piece.size()) + " bytes instead of " + std::to_string(wanted));
    return check_all_finite(dense_values(piece), "a part of a round");
  }

  void add(const Bytes& piece, std::uint64_t weight, std::uint64_t total) override {
    const double factor =
        how_ == DenseSum::kWeightedMean ? static_cast<double>(weight) / static_cast<double>(total) : 1.0;
    const std::span<const float> values = dense_values(piece);
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += factor * static_cast<double>(values[i]);
  }

  Bytes finish() override {
    Buffer buffer(sum_.size() * sizeof(float));
    std::transform(sum_.begin(), sum_.end(), buffer.as<float>().begin(),
                   [](double value) { return static_cast<float>(value); });
    sum_ = {};
    return std::move(buffer).freeze();
  }

  void take(std::size_t index, const Bytes& sum) override {
    if (!sum.empty()) std::memcpy(result_.data() + range(index).begin * sizeof(float), sum.data(), sum.size());
  }

  Bytes result() override { return std::move(result_).freeze(); }

 private:
  PartRange range(std::size_t index) const { return part_range(own_.size() / sizeof(float), members_, index); }

  DenseSum how_;
  Bytes own_;
  std::size_t members_;
  std::vector<double> sum_;  // of our part
  Buffer result_;
};

}  // namespace

PartRange part_range(std::size_t count, std::size_t members, std::size_t part) {
  const std::size_t base = count / members, longer = count % members;
  const std::size_t begin = part * base + std::min(part, longer);
  return {begin, begin + base + (part < longer ? 1 : 0)};
}

std::unique_ptr<PayloadSum> make_dense_sum(DenseSum how, Bytes own, std::size_t members, std::size_t self) {
  SHOAL_CHECK_LT(self, members);
  return std::make_unique<DensePayloadSum>(how, std::move(own), members, self);
}

std::span<const float> dense_values(const Bytes& bytes) {
  SHOAL_CHECK_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float), 0u);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace shoal
