// Payloads of plain floats: what allreduce and diloco bring.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/bulk_bytes.h"
#include "common/check.h"
#include "kernels/norm.h"
#include "sync/payload.h"
#include "sync/rule_arrays.h"

namespace shoal {
namespace {

constexpr std::size_t kJudgedValues = 256;  // the mean of fewer may differ that much by chance

class DensePayloadSum final : public PayloadSum {
 public:
  DensePayloadSum(DenseSum how, Bytes own, std::size_t parts) : how_(how), own_(std::move(own)), taken_(parts) {
    SHOAL_CHECK_EQ(own_.size() % sizeof(float), 0u);
  }

  std::uint64_t own_bytes() const override { return own_.size(); }

  Bytes part(std::size_t index) const override {
    const PartRange r = range(index);
    return own_.slice(r.begin * sizeof(float), r.size() * sizeof(float));
  }

  // Frames of the wire need not be aligned.
  Result<Bytes> open(std::size_t index, const Bytes& piece) const override {
    const std::size_t wanted = range(index).size() * sizeof(float);
    if (piece.size() != wanted)
      return make_error(ErrorCode::kMalformed,
                        "a part of " + std::to_string(piece.size()) + " bytes instead of " + std::to_string(wanted));
    const bool aligned = reinterpret_cast<std::uintptr_t>(piece.data()) % alignof(float) == 0;
    const Bytes values = aligned ? piece : Bytes::copy_of(piece.view());
    SHOAL_TRY(check_all_finite(dense_values(values), "a part of a round"));
    return values;
  }

  double size_of(const Bytes& values) const override {
    const std::span<const float> floats = dense_values(values);
    return floats.size() < kJudgedValues ? 0 : root_mean_square(floats);
  }
  double own_size(std::size_t index) const override { return size_of(DensePayloadSum::part(index)); }

  void add(const Bytes& values, std::uint64_t weight, std::uint64_t total, double scale) override {
    added_.push_back({values, (how_ == DenseSum::kExactSum ? 1 : scale) * factor_of(weight, total)});
  }

  double agreement(std::size_t index, const Bytes& values) const override {
    const Bytes part = DensePayloadSum::part(index);
    const std::span<const float> own = dense_values(part), sum = dense_values(values);
    if (own.size() < kJudgedValues) return 0;
    const double lengths = std::sqrt(sum_of_squares(own) * sum_of_squares(sum));
    return lengths > 0 ? dot_product(own, sum) / lengths : 0;
  }

  // Block by block, so that the doubles stay in the cache.
  Bytes finish(std::size_t index) override {
    Buffer buffer(range(index).size() * sizeof(float));
    const std::span<float> out = buffer.as<float>();
    std::array<double, 1024> sum;
    for (std::size_t at = 0; at < out.size(); at += sum.size()) {
      const std::size_t count = std::min(sum.size(), out.size() - at);
      std::fill_n(sum.begin(), count, 0.0);
      for (const Added& each : added_) {
        const std::span<const float> values = dense_values(each.values).subspan(at, count);
        for (std::size_t i = 0; i < count; ++i) sum[i] += each.factor * static_cast<double>(values[i]);
      }
      for (std::size_t i = 0; i < count; ++i) out[at + i] = static_cast<float>(sum[i]);
    }
    note_bulk(buffer.size() * (1 + added_.size()));
    added_.clear();
    return std::move(buffer).freeze();
  }

  void take(std::size_t index, const Bytes& values) override { taken_[index] = values; }

  Bytes result() override {
    Buffer buffer(own_.size());
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      const Bytes part = std::exchange(taken_[i], {});
      if (!part.empty()) std::memcpy(buffer.data() + range(i).begin * sizeof(float), part.data(), part.size());
    }
    note_bulk(buffer.size());
    return std::move(buffer).freeze();
  }

 private:
  struct Added {
    Bytes values;
    double factor = 1;
  };
  double factor_of(std::uint64_t weight, std::uint64_t total) const {
    return how_ == DenseSum::kWeightedMean ? static_cast<double>(weight) / static_cast<double>(total) : 1.0;
  }
  PartRange range(std::size_t index) const { return part_range(own_.size() / sizeof(float), taken_.size(), index); }

  DenseSum how_;
  Bytes own_;
  std::vector<Added> added_;  // to our part
  std::vector<Bytes> taken_;  // sums, by part
};

}  // namespace

PartRange part_range(std::size_t count, std::size_t parts, std::size_t part) {
  const std::size_t base = count / parts, longer = count % parts;
  const std::size_t begin = part * base + std::min(part, longer);
  return {begin, begin + base + (part < longer ? 1 : 0)};
}

std::unique_ptr<PayloadSum> make_dense_sum(DenseSum how, Bytes own, std::size_t parts) {
  SHOAL_CHECK(parts > 0);
  return std::make_unique<DensePayloadSum>(how, std::move(own), parts);
}

std::span<const float> dense_values(const Bytes& bytes) {
  SHOAL_CHECK_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float), 0u);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace shoal
