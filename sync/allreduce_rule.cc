// The reference rule: gradients of one step are summed over the members, and all apply the same AdamW step to the same
// parameters.
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

  Result<Payload> contribute(StageExecutor& executor, const RoundContext& context) override {
    SHOAL_TRY(check_no_fragment(context));
    Arena& arena = executor.arena();
    if (context.weight == 0) return Payload{Buffer(arena.size() * sizeof(float)).freeze(), 0, 0};
    const ArenaRole role = accumulator_role(context.window);
    const std::span<const float> sum = read_role(arena, role);
    SHOAL_TRY(check_all_finite(sum, "the gradient sum of a step"));
    return Payload{Bytes::copy_of(bytes_of(sum)), context.weight, arena.tag(role)};
  }

  // Writes kCandidate and not kOther: graphs of forwards may still read kOther until the commit flips.
  Result<Digest> prepare(StageExecutor& executor, const RoundContext& context, const Payload& reduced) override {
    Arena& arena = executor.arena();
    SHOAL_CHECK_EQ(reduced.bytes.size(), arena.size() * sizeof(float));
    if (reduced.weight == 0) {
      copy_role(arena, ArenaRole::kCurrent, ArenaRole::kCandidate);
      copy_role(arena, ArenaRole::kMoment1, ArenaRole::kCandidateMoment1);
      copy_role(arena, ArenaRole::kMoment2, ArenaRole::kCandidateMoment2);
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
    copy_role(arena, ArenaRole::kCandidate, ArenaRole::kOther);
    executor.flip();
    copy_role(arena, ArenaRole::kCandidate, ArenaRole::kAnchor);
    copy_role(arena, ArenaRole::kCandidateMoment1, ArenaRole::kMoment1);
    copy_role(arena, ArenaRole::kCandidateMoment2, ArenaRole::kMoment2);
    if (context.weight > 0) executor.clear_window(context.window);
    release(arena);
  }

  void abandon(StageExecutor& executor, const RoundContext&) override { release(executor.arena()); }

 private:
  static Status subtract(Arena& arena, const Payload& reduced) {
    const std::span<const float> current = read_role(arena, ArenaRole::kCurrent);
    const std::span<float> candidate = arena.span(ArenaRole::kCandidate);
    const std::span<const float> sum = dense_values(reduced.bytes);
    for (std::size_t i = 0; i < candidate.size(); ++i) candidate[i] = current[i] - sum[i];
    arena.push(ArenaRole::kCandidate);
    copy_role(arena, ArenaRole::kMoment1, ArenaRole::kCandidateMoment1);
    copy_role(arena, ArenaRole::kMoment2, ArenaRole::kCandidateMoment2);
    return Status::success();
  }

  static Status adamw(StageExecutor& executor, const RoundContext& context, const Payload& reduced) {
    Arena& arena = executor.arena();
    InnerStep step = context.inner;
    step.targets = reduced.weight;
    AdamWArrays arrays;
    arrays.parameters = read_role(arena, ArenaRole::kCurrent);
    arrays.gradient_sum = dense_values(reduced.bytes);
    arrays.moment1 = read_role(arena, ArenaRole::kMoment1);
    arrays.moment2 = read_role(arena, ArenaRole::kMoment2);
    arrays.parameters_out = arena.span(ArenaRole::kCandidate);
    arrays.moment1_out = arena.span(ArenaRole::kCandidateMoment1);
    arrays.moment2_out = arena.span(ArenaRole::kCandidateMoment2);
    const std::vector<ParameterSpec> parameters = parameters_of(executor.spec());
    Result<double> norm = adamw_step(parameters, step, arrays);
    if (!norm.ok()) return norm.error();
    for (const ArenaRole role : {ArenaRole::kCandidate, ArenaRole::kCandidateMoment1, ArenaRole::kCandidateMoment2})
      arena.push(role);
    return Status::success();
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
