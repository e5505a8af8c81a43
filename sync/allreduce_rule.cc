// The reference rule: gradients of one step are summed over the members, and all apply the same AdamW step to the same
// parameters.
#include <algorithm>

#include "stages/adamw.h"
#include "sync/outer_rule.h"
#include "sync/rule_arrays.h"

namespace shoal {
namespace {

ArenaRole accumulator_role(WindowSlot window) {
  return window == WindowSlot::kA ? ArenaRole::kAccumulatorA : ArenaRole::kAccumulatorB;
}

class AllreduceRule final : public OuterRule {
 public:
  explicit AllreduceRule(const AllreduceOptions& options) : options_(options) {}
  RuleId id() const override { return RuleId::kAllreduce; }
  std::unique_ptr<PayloadSum> make_sum(Bytes own, std::size_t parts) const override {
    return make_dense_sum(options_.exact ? DenseSum::kExactSum : DenseSum::kSum, std::move(own), parts);
  }
  std::vector<ArenaRole> shared_roles() const override { return {ArenaRole::kMoment1, ArenaRole::kMoment2}; }
  std::vector<ArenaRole> candidate_roles() const override {
    return {ArenaRole::kCandidateMoment1, ArenaRole::kCandidateMoment2};
  }

  // The window is closed and nobody makes inner steps, so nothing of it changes until the commit. (An image that is
  // made meanwhile pulls the moments again, the same bits.)
  Status take_snapshot(StageExecutor& executor, const RoundContext& context) override {
    SHOAL_TRY(check_no_fragment(context));
    Arena& arena = executor.arena();
    if (context.weight > 0) read_role(arena, accumulator_role(context.window));
    for (const ArenaRole role : {ArenaRole::kAnchor, ArenaRole::kMoment1, ArenaRole::kMoment2}) read_role(arena, role);
    return {};
  }

  Result<Payload> contribute(StageExecutor& executor, const RoundContext& context) override {
    Arena& arena = executor.arena();
    if (context.weight == 0) return Payload{Buffer(arena.size() * sizeof(float)).freeze(), 0, 0};
    const ArenaRole role = accumulator_role(context.window);
    const std::span<const float> sum = arena.span(role);
    SHOAL_TRY(check_all_finite(sum, "the gradient sum of a step"));
    return Payload{Bytes::copy_of(bytes_of(sum)), context.weight, arena.tag(role)};
  }

  // Writes kCandidate and not kOther: graphs of forwards may still read kOther until the commit flips.
  Result<Digest> prepare(StageExecutor& executor, const RoundContext& context, Payload reduced) override {
    Arena& arena = executor.arena();
    SHOAL_CHECK_EQ(reduced.bytes.size(), arena.size() * sizeof(float));
    if (reduced.weight == 0) {
      std::ranges::copy(arena.span(ArenaRole::kAnchor), arena.span(ArenaRole::kCandidate).begin());
      keep_moments(arena);
    } else {
      SHOAL_TRY(options_.exact ? subtract(arena, reduced) : adamw(executor, context, reduced));
    }
    arena.tag(ArenaRole::kCandidate) = arena.tag(ArenaRole::kAnchor) + reduced.tag;
    return candidate_digest(executor, *this);
  }

  void commit(StageExecutor& executor, const RoundContext& context) override {
    SHOAL_CHECK_EQ(executor.unsettled_at_other(), 0u);
    Arena& arena = executor.arena();
    executor.begin_write();
    arena.copy(ArenaRole::kCandidate, ArenaRole::kOther);
    executor.flip();
    arena.move(ArenaRole::kCandidate, ArenaRole::kAnchor);
    arena.copy(ArenaRole::kCandidateMoment1, ArenaRole::kMoment1);
    arena.copy(ArenaRole::kCandidateMoment2, ArenaRole::kMoment2);
    if (context.weight > 0) executor.clear_window(context.window);
    release(arena);
  }

  void abandon(StageExecutor& executor, const RoundContext&) override { release(executor.arena()); }

 private:
  static Status subtract(Arena& arena, const Payload& reduced) {
    const std::span<const float> anchor = arena.span(ArenaRole::kAnchor);
    const std::span<float> candidate = arena.span(ArenaRole::kCandidate);
    const std::span<const float> sum = dense_values(reduced.bytes);
    for (std::size_t i = 0; i < candidate.size(); ++i) candidate[i] = anchor[i] - sum[i];
    keep_moments(arena);
    return Status::success();
  }

  static void keep_moments(Arena& arena) {
    std::ranges::copy(arena.span(ArenaRole::kMoment1), arena.span(ArenaRole::kCandidateMoment1).begin());
    std::ranges::copy(arena.span(ArenaRole::kMoment2), arena.span(ArenaRole::kCandidateMoment2).begin());
  }

  static Status adamw(StageExecutor& executor, const RoundContext& context, const Payload& reduced) {
    Arena& arena = executor.arena();
    InnerStep step = context.inner;
    step.targets = reduced.weight;
    AdamWArrays arrays;
    arrays.parameters = arena.span(ArenaRole::kAnchor);  // which the parameters are
    arrays.gradient_sum = dense_values(reduced.bytes);
    arrays.moment1 = arena.span(ArenaRole::kMoment1);
    arrays.moment2 = arena.span(ArenaRole::kMoment2);
    arrays.parameters_out = arena.span(ArenaRole::kCandidate);
    arrays.moment1_out = arena.span(ArenaRole::kCandidateMoment1);
    arrays.moment2_out = arena.span(ArenaRole::kCandidateMoment2);
    const std::vector<ParameterSpec> parameters = parameters_of(executor.spec());
    Result<double> norm = adamw_step(parameters, step, arrays);
    return norm.ok() ? Status::success() : Status(norm.error());
  }

  static void release(Arena& arena) {
    for (const ArenaRole role : {ArenaRole::kCandidate, ArenaRole::kCandidateMoment1, ArenaRole::kCandidateMoment2})
      arena.release(role);
  }

  AllreduceOptions options_;
};

}  // namespace

std::unique_ptr<OuterRule> make_allreduce_rule(const AllreduceOptions& options) {
  return std::make_unique<AllreduceRule>(options);
}

}  // namespace shoal
