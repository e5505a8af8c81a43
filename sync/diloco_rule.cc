// DiLoCo (Douillard et al. 2023, algorithm 1): every replica trains alone; a round moves the anchor by Nesterov on the
// mean delta.
#include "kernels/nesterov.h"
#include "sync/outer_rule.h"
#include "sync/rule_arrays.h"

namespace shoal {
namespace {

class DilocoRule final : public OuterRule {
 public:
  explicit DilocoRule(const DilocoOptions& options) : options_(options) {}
  RuleId id() const override { return RuleId::kDiloco; }
  std::unique_ptr<PayloadSum> make_sum(Bytes own, std::size_t parts) const override {
    const DenseSum how = options_.sum ? DenseSum::kExactSum : DenseSum::kWeightedMean;
    if (options_.payload == CodecId::kRaw) return make_dense_sum(how, std::move(own), parts);
    return make_coded_sum(options_.payload, how, std::move(own), parts);
  }
  std::vector<ArenaRole> shared_roles() const override { return {ArenaRole::kOuterMomentum}; }
  std::vector<ArenaRole> candidate_roles() const override { return {ArenaRole::kCandidateOuter}; }

  Status take_snapshot(StageExecutor& executor, const RoundContext& context) override {
    SHOAL_TRY(check_no_fragment(context));
    Arena& arena = executor.arena();
    arena.copy(ArenaRole::kCurrent, ArenaRole::kSnapshot);
    if (executor.shift_pending()) add_role(arena, ArenaRole::kShift, ArenaRole::kSnapshot);
    for (const ArenaRole role : {ArenaRole::kAnchor, ArenaRole::kOuterMomentum}) arena.span(role);  // all are there
    return {};
  }

  // delta = anchor - snapshot.
  Result<Payload> contribute(StageExecutor& executor, const RoundContext& context) override {
    Arena& arena = executor.arena();
    Buffer delta(arena.size() * sizeof(float));
    if (context.weight == 0) return Payload{std::move(delta).freeze(), 0, 0};
    const std::span<const float> anchor = arena.span(ArenaRole::kAnchor);
    const std::span<const float> snapshot = arena.span(ArenaRole::kSnapshot);
    const std::span<float> values = delta.as<float>();
    for (std::size_t i = 0; i < anchor.size(); ++i) values[i] = anchor[i] - snapshot[i];
    SHOAL_TRY(check_all_finite(values, "the delta of a round"));
    const CountTag tag = arena.tag(ArenaRole::kSnapshot) - arena.tag(ArenaRole::kAnchor);
    return Payload{std::move(delta).freeze(), context.weight, tag};
  }

  // Nesterov on the mean delta, operation by operation in kernels/nesterov_rule.h: every member must get the same bits.
  Result<Digest> prepare(StageExecutor& executor, const RoundContext&, Payload reduced) override {
    Arena& arena = executor.arena();
    const std::span<const float> deltas = dense_values(reduced.bytes);
    SHOAL_CHECK_EQ(deltas.size(), arena.size());
    const std::span<const float> anchor = arena.span(ArenaRole::kAnchor);
    const std::span<const float> momentum = arena.span(ArenaRole::kOuterMomentum);
    const std::span<float> candidate = arena.span(ArenaRole::kCandidate);
    const std::span<float> candidate_momentum = arena.span(ArenaRole::kCandidateOuter);
    const NesterovRates rates{static_cast<float>(options_.outer_lr), static_cast<float>(options_.outer_momentum)};
    nesterov_apply(rates, {anchor, momentum, deltas, candidate, candidate_momentum});
    SHOAL_TRY(check_all_finite(candidate, "the new anchor"));
    SHOAL_TRY(check_all_finite(candidate_momentum, "the new outer momentum"));
    arena.tag(ArenaRole::kCandidate) = arena.tag(ArenaRole::kAnchor) + reduced.tag;
    reduced.bytes = Bytes();
    subtract_roles(arena, ArenaRole::kCandidate, ArenaRole::kSnapshot, ArenaRole::kCandidateShift);
    return candidate_digest(executor, *this);
  }

  void commit(StageExecutor& executor, const RoundContext&) override {
    Arena& arena = executor.arena();
    executor.set_shift();
    arena.move(ArenaRole::kCandidate, ArenaRole::kAnchor);
    arena.move(ArenaRole::kCandidateOuter, ArenaRole::kOuterMomentum);
    release(arena);
  }

  void abandon(StageExecutor& executor, const RoundContext&) override { release(executor.arena()); }

 private:
  static void release(Arena& arena) {
    for (const ArenaRole role :
         {ArenaRole::kSnapshot, ArenaRole::kCandidate, ArenaRole::kCandidateOuter, ArenaRole::kCandidateShift})
      arena.release(role);
  }

  DilocoOptions options_;
};

}  // namespace

std::unique_ptr<OuterRule> make_diloco_rule(const DilocoOptions& options) {
  return std::make_unique<DilocoRule>(options);
}

}  // namespace shoal
