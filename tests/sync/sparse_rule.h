#pragma once
// A toy rule with a sparse payload: a member brings a few (index, value) pairs, in any number. It shows that rounds
// carry what they do not understand; the arena it leaves alone.
#include <map>
#include <vector>

#include "sync/outer_rule.h"

namespace shoal::test {

struct SparseValue {
  std::uint32_t index = 0;
  float value = 0;
  bool operator==(const SparseValue&) const = default;
};
inline constexpr std::uint32_t kSparseCount = 1000;  // of the values that most payloads leave out

inline Bytes pack_sparse(const std::vector<SparseValue>& values) {
  return Bytes::copy_of(bytes_of(std::span<const SparseValue>(values)));
}
inline std::vector<SparseValue> parse_sparse(const Bytes& bytes) {
  std::vector<SparseValue> values(bytes.size() / sizeof(SparseValue));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class SparseSum final : public PayloadSum {
 public:
  SparseSum(Bytes own, std::size_t parts) : own_(parse_sparse(own)), count_(parts) {}
  std::uint64_t own_bytes() const override { return own_.size() * sizeof(SparseValue); }
  Bytes part(std::size_t index) const override {
    const PartRange range = part_range(kSparseCount, count_, index);
    std::vector<SparseValue> inside;
    for (const SparseValue& each : own_)
      if (each.index >= range.begin && each.index < range.end) inside.push_back(each);
    return pack_sparse(inside);
  }
  Result<Bytes> open(std::size_t index, const Bytes& piece) const override {
    const PartRange range = part_range(kSparseCount, count_, index);
    if (piece.size() % sizeof(SparseValue) != 0) return make_error(ErrorCode::kMalformed, "half a sparse value");
    for (const SparseValue& each : parse_sparse(piece))
      if (each.index < range.begin || each.index >= range.end)
        return make_error(ErrorCode::kMalformed, "a sparse value of another part");
    return piece;
  }
  double size_of(const Bytes&) const override { return 0; }  // of other places in each
  double own_size(std::size_t) const override { return 0; }
  double agreement(std::size_t, const Bytes&) const override { return 0; }
  void add(const Bytes& piece, std::uint64_t, std::uint64_t, double) override {
    for (const SparseValue& each : parse_sparse(piece)) sum_[each.index] += each.value;
  }
  Bytes finish(std::size_t) override {
    std::vector<SparseValue> values;
    for (const auto& [index, value] : sum_) values.push_back({index, value});
    return pack_sparse(values);
  }
  void take(std::size_t index, const Bytes& sum) override { parts_[index] = parse_sparse(sum); }
  Bytes result() override {
    std::vector<SparseValue> all;
    for (const auto& [index, part] : parts_) all.insert(all.end(), part.begin(), part.end());
    return pack_sparse(all);
  }

 private:
  std::vector<SparseValue> own_;
  std::size_t count_;  // of parts
  std::map<std::uint32_t, float> sum_;
  std::map<std::size_t, std::vector<SparseValue>> parts_;
};

class SparseRule final : public OuterRule {
 public:
  RuleId id() const override { return RuleId::kDiloco; }
  std::unique_ptr<PayloadSum> make_sum(Bytes own, std::size_t parts) const override {
    return std::make_unique<SparseSum>(std::move(own), parts);
  }
  Status take_snapshot(StageExecutor&, const RoundContext&) override { return {}; }
  Result<Payload> contribute(StageExecutor&, const RoundContext&) override { return Payload{}; }
  Result<Digest> prepare(StageExecutor&, const RoundContext&, Payload) override { return Digest{}; }
  void commit(StageExecutor&, const RoundContext&) override {}
  void abandon(StageExecutor&, const RoundContext&) override {}
  std::vector<ArenaRole> shared_roles() const override { return {}; }
  std::vector<ArenaRole> candidate_roles() const override { return {}; }
};

}  // namespace shoal::test
