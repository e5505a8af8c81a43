#include <gtest/gtest.h>

#include <cmath>

#include "stages/adamw.h"
#include "state/state_image.h"
#include "sync/outer_rule.h"
#include "tests/sync/sync_fixtures.h"
#include "tests/sync/wide_executor.h"

namespace shoal {
namespace {

using test::contributed;
using test::count_entry;
using test::fill;
using test::kTargetsOfEntry;
using test::payload_of;
using test::tiny_spec;
using test::values_of;
using test::WideExecutor;

TEST(DilocoRuleTest, MovesTheAnchorByNesterovOnTheMeanDelta) {
  WideExecutor executor;
  const auto rule = make_diloco_rule({.outer_lr = 0.7, .outer_momentum = 0.9});
  fill(executor, ArenaRole::kAnchor, 1.0f, 0.25f);
  fill(executor, ArenaRole::kCurrent, 0.5f, 0.125f);
  fill(executor, ArenaRole::kOuterMomentum, -0.5f, 0.0625f);
  executor.arena().tag(ArenaRole::kAnchor) = 100;
  executor.arena().tag(ArenaRole::kCurrent) = 142;
  const std::vector<float> anchor = values_of(executor, ArenaRole::kAnchor),
                           current = values_of(executor, ArenaRole::kCurrent),
                           momentum = values_of(executor, ArenaRole::kOuterMomentum);
  RoundContext context;
  context.base = Version(3);
  context.weight = 8;
  const Payload payload = contributed(*rule, executor, context).value();
  EXPECT_EQ(payload.weight, 8u);
  EXPECT_EQ(payload.tag, 42u);
  for (std::size_t i = 0; i < anchor.size(); ++i) ASSERT_EQ(values_of(payload)[i], anchor[i] - current[i]);

  const Digest digest = rule->prepare(executor, context, payload).value();
  EXPECT_EQ(values_of(executor, ArenaRole::kAnchor), anchor) << "prepare writes candidates only";
  rule->commit(executor, context);
  for (std::size_t i = 0; i < anchor.size(); ++i) {
    const float delta = anchor[i] - current[i];
    const float next = 0.9f * momentum[i] + delta;
    ASSERT_FLOAT_EQ(values_of(executor, ArenaRole::kOuterMomentum)[i], next);
    ASSERT_FLOAT_EQ(values_of(executor, ArenaRole::kAnchor)[i], anchor[i] - 0.7f * (delta + 0.9f * next));
  }
  EXPECT_EQ(executor.arena().tag(ArenaRole::kAnchor), 142u);
  EXPECT_EQ(state_digest(executor, *rule), digest);
  ASSERT_TRUE(executor.shift_pending());
  executor.apply_shift();
  EXPECT_EQ(executor.arena().tag(ArenaRole::kCurrent), 142u);
  for (std::size_t i = 0; i < anchor.size(); ++i)
    ASSERT_FLOAT_EQ(values_of(executor, ArenaRole::kCurrent)[i], values_of(executor, ArenaRole::kAnchor)[i]);
}

TEST(DilocoRuleTest, TrainingGoesOnWhileARoundRuns) {
  IntegerExecutor executor(tiny_spec());
  const auto rule = make_diloco_rule({.outer_lr = 1, .outer_momentum = 0, .sum = true});
  const MicrobatchId first{1, 1}, second{1, 2};
  count_entry(executor, 1, first, WindowSlot::kA);
  executor.settle(1);
  InnerStep step;
  step.targets = kTargetsOfEntry;
  ASSERT_TRUE(executor.inner_step(WindowSlot::kA, step).ok());
  RoundContext context;
  context.weight = kTargetsOfEntry;
  const Payload payload = contributed(*rule, executor, context).value();
  count_entry(executor, 2, second, WindowSlot::kB);
  executor.settle(2);
  ASSERT_TRUE(executor.inner_step(WindowSlot::kB, step).ok());
  ASSERT_TRUE(rule->prepare(executor, context, payload).ok());
  rule->commit(executor, context);
  EXPECT_EQ(executor.arena().tag(ArenaRole::kAnchor), count_tag(first));
  executor.apply_shift();
  EXPECT_EQ(executor.arena().tag(ArenaRole::kCurrent), count_tag(first) + count_tag(second));
  const IntegerGradient a = integer_gradient(first, StageId(0), 0), b = integer_gradient(second, StageId(0), 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(values_of(executor, ArenaRole::kAnchor)[i], -a[i]);
    EXPECT_EQ(values_of(executor, ArenaRole::kCurrent)[i], -a[i] - b[i]);
  }
}

TEST(DilocoRuleTest, TheSnapshotHoldsAShiftThatWaitsForTheNextWrite) {
  WideExecutor executor;
  const auto rule = make_diloco_rule({.outer_lr = 0.5, .outer_momentum = 0});
  fill(executor, ArenaRole::kCurrent, 1, 0);
  executor.arena().tag(ArenaRole::kCurrent) = 3;
  RoundContext context;
  context.weight = 1;
  ASSERT_TRUE(rule->prepare(executor, context, contributed(*rule, executor, context).value()).ok());
  rule->commit(executor, context);
  const Payload next = contributed(*rule, executor, context).value();
  EXPECT_TRUE(executor.shift_pending()) << "the device need not write for it";
  for (const float delta : values_of(next)) ASSERT_EQ(delta, 0.0f) << "it is the anchor";
  EXPECT_EQ(next.tag, 0u);
  ASSERT_TRUE(rule->prepare(executor, context, payload_of(std::vector<float>(next.bytes.size() / 4, 1.0f), 1, 5)).ok());
  rule->commit(executor, context);
  executor.apply_shift();
  EXPECT_EQ(values_of(executor, ArenaRole::kCurrent)[0], 0.0f) << "both shifts";
  EXPECT_EQ(values_of(executor, ArenaRole::kCurrent), values_of(executor, ArenaRole::kAnchor));
  EXPECT_EQ(executor.arena().tag(ArenaRole::kCurrent), executor.arena().tag(ArenaRole::kAnchor));
}

TEST(DilocoRuleTest, RefusesANonFiniteDelta) {
  WideExecutor executor;
  const auto rule = make_diloco_rule();
  executor.arena().span(ArenaRole::kCurrent)[3] = NAN;
  RoundContext context;
  context.weight = 1;
  const Result<Payload> payload = contributed(*rule, executor, context);
  ASSERT_FALSE(payload.ok());
  EXPECT_EQ(payload.code(), ErrorCode::kNonFinite);
}

TEST(RulesTest, HaveAsManySharedArraysAsTheirTraitsSay) {
  const OuterRules rules;
  for (std::size_t i = 0; i < std::size(kRuleTraits); ++i) {
    const auto rule = rules.of(static_cast<RuleId>(i));
    ASSERT_NE(rule, nullptr) << kRuleNames[i];
    EXPECT_EQ(rule->shared_roles().size(), kRuleTraits[i].shared_arrays) << kRuleNames[i];
  }
}

TEST(RulesTest, RefuseAFragmentByName) {
  WideExecutor executor;
  RoundContext context;
  context.fragment = 2;
  for (const RuleId id : {RuleId::kAllreduce, RuleId::kDiloco}) {
    const auto rule = id == RuleId::kAllreduce ? make_allreduce_rule() : make_diloco_rule();
    const Result<Payload> payload = contributed(*rule, executor, context);
    ASSERT_EQ(payload.code(), ErrorCode::kUnsupported);
    EXPECT_NE(payload.error().message.find("fragment 2"), std::string::npos);
  }
}

TEST(AllreduceRuleTest, AppliesTheSharedAdamWToTheSummedGradient) {
  WideExecutor executor;
  const auto rule = make_allreduce_rule();
  fill(executor, ArenaRole::kCurrent, 0.5f, 0.01f);
  fill(executor, ArenaRole::kAnchor, 0.5f, 0.01f);
  fill(executor, ArenaRole::kMoment1, 0.1f, 0.001f);
  fill(executor, ArenaRole::kMoment2, 0.2f, 0.002f);
  fill(executor, ArenaRole::kAccumulatorA, 3.0f, -0.05f);
  executor.arena().tag(ArenaRole::kAccumulatorA) = 77;
  RoundContext context;
  context.base = Version(5);
  context.weight = 16;
  context.inner.lr = 0.01;
  context.inner.step = 6;
  Payload payload = contributed(*rule, executor, context).value();
  std::vector<float> sum = values_of(payload);
  EXPECT_EQ(sum, values_of(executor, ArenaRole::kAccumulatorA));
  EXPECT_EQ(payload.tag, 77u);
  for (float& value : sum) value *= 2;  // as if another member had brought the same
  payload = test::payload_of(sum, payload.weight * 2, payload.tag * 2);

  std::vector<float> parameters = values_of(executor, ArenaRole::kCurrent),
                     m1 = values_of(executor, ArenaRole::kMoment1), m2 = values_of(executor, ArenaRole::kMoment2);
  InnerStep step = context.inner;
  step.targets = 32;
  AdamWArrays arrays;
  arrays.parameters = arrays.parameters_out = parameters;
  arrays.moment1 = arrays.moment1_out = m1;
  arrays.moment2 = arrays.moment2_out = m2;
  arrays.gradient_sum = sum;
  const std::vector<ParameterSpec> specs = parameters_of(tiny_spec());
  ASSERT_TRUE(adamw_step(specs, step, arrays).ok());

  const std::vector<float> other_before = values_of(executor, ArenaRole::kOther);
  const Digest digest = rule->prepare(executor, context, payload).value();
  EXPECT_EQ(values_of(executor, ArenaRole::kOther), other_before) << "graphs may still read it until the commit";
  rule->commit(executor, context);
  EXPECT_EQ(executor.stamp(), 1u);
  EXPECT_EQ(values_of(executor, ArenaRole::kCurrent), parameters);
  EXPECT_EQ(values_of(executor, ArenaRole::kAnchor), parameters);
  EXPECT_EQ(values_of(executor, ArenaRole::kMoment1), m1);
  EXPECT_EQ(values_of(executor, ArenaRole::kMoment2), m2);
  for (const float value : values_of(executor, ArenaRole::kAccumulatorA)) ASSERT_EQ(value, 0.0f);
  EXPECT_EQ(executor.arena().tag(ArenaRole::kAccumulatorA), 0u);
  EXPECT_EQ(executor.arena().tag(ArenaRole::kCurrent), 154u);
  EXPECT_EQ(state_digest(executor, *rule), digest);
}

TEST(AllreduceRuleTest, AMemberWithoutEntriesMakesTheSameStep) {
  IntegerExecutor busy(tiny_spec()), idle(tiny_spec());
  const auto rule = make_allreduce_rule({.exact = true});
  count_entry(busy, 1, {1, 9}, WindowSlot::kB);
  busy.settle(1);
  RoundContext with_work, without;
  with_work.window = WindowSlot::kB;
  with_work.weight = kTargetsOfEntry;
  const Payload sum = contributed(*rule, busy, with_work).value();
  const Payload nothing = contributed(*rule, idle, without).value();
  EXPECT_EQ(nothing.weight, 0u);
  EXPECT_EQ(values_of(nothing), std::vector<float>(kIntegerParameters, 0.0f));
  EXPECT_EQ(rule->prepare(busy, with_work, sum).value(), rule->prepare(idle, without, sum).value());
  rule->commit(busy, with_work);
  rule->commit(idle, without);
  EXPECT_EQ(values_of(busy, ArenaRole::kCurrent), values_of(idle, ArenaRole::kCurrent));
  EXPECT_EQ(state_digest(busy, *rule), state_digest(idle, *rule));
}

TEST(AllreduceRuleTest, AnAbandonedRoundKeepsTheWindowForTheNextAttempt) {
  IntegerExecutor executor(tiny_spec());
  const auto rule = make_allreduce_rule({.exact = true});
  count_entry(executor, 1, {1, 9}, WindowSlot::kA);
  executor.settle(1);
  RoundContext context;
  context.weight = kTargetsOfEntry;
  const Payload first = contributed(*rule, executor, context).value();
  const Digest digest = rule->prepare(executor, context, first).value();
  rule->abandon(executor, context);
  const Payload second = contributed(*rule, executor, context).value();
  EXPECT_EQ(values_of(second), values_of(first));
  EXPECT_EQ(second.tag, first.tag);
  EXPECT_EQ(rule->prepare(executor, context, second).value(), digest);
}

TEST(AllreduceRuleTest, AStepThatNobodyHoldsEntriesOfChangesNothingButTheVersion) {
  WideExecutor executor;
  const auto rule = make_allreduce_rule();
  fill(executor, ArenaRole::kCurrent, 0.5f, 0.01f);
  fill(executor, ArenaRole::kAnchor, 0.5f, 0.01f);
  RoundContext context;
  const Payload empty = contributed(*rule, executor, context).value();
  const std::vector<float> before = values_of(executor, ArenaRole::kCurrent);
  ASSERT_TRUE(rule->prepare(executor, context, empty).ok());
  rule->commit(executor, context);
  EXPECT_EQ(values_of(executor, ArenaRole::kCurrent), before);
}

// ---- state images ----
std::function<const OuterRule*(RuleId)> both_rules(const OuterRule& allreduce, const OuterRule& diloco) {
  return [&](RuleId id) { return id == RuleId::kAllreduce ? &allreduce : &diloco; };
}

TEST(StateImageTest, CarriesTheStateThatItsDigestNames) {
  const auto allreduce = make_allreduce_rule();
  const auto diloco = make_diloco_rule();
  for (const OuterRule* rule : {allreduce.get(), diloco.get()}) {
    WideExecutor donor, joiner;
    fill(donor, ArenaRole::kAnchor, 1, 0.5f);
    fill(donor, ArenaRole::kOuterMomentum, 2, 0.5f);
    fill(donor, ArenaRole::kMoment1, 3, 0.5f);
    fill(donor, ArenaRole::kMoment2, 4, 0.5f);
    donor.arena().tag(ArenaRole::kAnchor) = 99;
    fill(joiner, ArenaRole::kCurrent, -7, 1);
    fill(joiner, ArenaRole::kMoment1, -7, 1);
    const Bytes image = make_state_image(donor, *rule, Version(12));
    EXPECT_EQ(digest_of_image(image), state_digest(donor, *rule));
    const Result<StateHeader> loaded =
        load_state_image(joiner, image, StateLoad::kFresh, both_rules(*allreduce, *diloco));
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->version, Version(12));
    EXPECT_EQ(state_digest(joiner, *rule), state_digest(donor, *rule));
    EXPECT_EQ(values_of(joiner, ArenaRole::kCurrent), values_of(donor, ArenaRole::kAnchor));
    EXPECT_EQ(joiner.arena().tag(ArenaRole::kCurrent), 99u);
    EXPECT_EQ(values_of(joiner, ArenaRole::kMoment1)[5], rule == diloco.get() ? 0.0f : 5.5f);
  }
}

TEST(StateImageTest, AnAdoptedCandidateIsTheStateThatItsMembersAgreedOn) {
  const auto allreduce = make_allreduce_rule();
  const auto diloco = make_diloco_rule();
  for (OuterRule* rule : {allreduce.get(), diloco.get()}) {
    WideExecutor executor;
    fill(executor, ArenaRole::kCurrent, 1, 0.5f);
    fill(executor, ArenaRole::kAnchor, 1, 0.25f);
    fill(executor, ArenaRole::kOuterMomentum, 2, 0.5f);
    executor.arena().tag(ArenaRole::kAnchor) = 40;
    executor.arena().tag(ArenaRole::kCurrent) = 41;
    RoundContext context;
    context.base = Version(8);
    const std::vector<float> values(executor.arena().size(), 0.125f);
    const Digest agreed = rule->prepare(executor, context, payload_of(values, rule == diloco.get() ? 3 : 0, 2)).value();
    const std::vector<float> current = values_of(executor, ArenaRole::kCurrent);
    adopt_candidate(executor, *rule);
    EXPECT_EQ(digest_of_image(make_state_image(executor, *rule, Version(9))), agreed);
    EXPECT_EQ(executor.arena().tag(ArenaRole::kAnchor), 42u);
    EXPECT_EQ(values_of(executor, ArenaRole::kCurrent), current) << "it is a commit of no round";
    EXPECT_EQ(executor.arena().tag(ArenaRole::kCurrent), 41u);
    EXPECT_FALSE(executor.shift_pending());
  }
}

TEST(StateImageTest, AStageBeginsWithTheParametersOfItsSeedAsTheAnchor) {
  WideExecutor executor;
  begin_from_seed(executor);
  std::vector<float> expected(executor.arena().size());
  initialise(tiny_spec(), expected);
  EXPECT_EQ(values_of(executor, ArenaRole::kCurrent), expected);
  EXPECT_EQ(values_of(executor, ArenaRole::kAnchor), expected);
  EXPECT_EQ(executor.arena().tag(ArenaRole::kAnchor), 0u);
  IntegerExecutor integers(tiny_spec());
  begin_from_seed(integers);
  EXPECT_EQ(values_of(integers, ArenaRole::kAnchor), std::vector<float>(integers.arena().size()));
}

TEST(StateImageTest, ALateMemberShiftsByTheNewAnchorMinusTheOldOne) {
  const auto diloco = make_diloco_rule();
  WideExecutor donor, late;
  fill(donor, ArenaRole::kAnchor, 10, 0);
  donor.arena().tag(ArenaRole::kAnchor) = 50;
  fill(late, ArenaRole::kAnchor, 4, 0);
  late.arena().tag(ArenaRole::kAnchor) = 20;
  fill(late, ArenaRole::kCurrent, 5, 0);  // has trained by 1 since
  late.arena().tag(ArenaRole::kCurrent) = 23;
  const Bytes image = make_state_image(donor, *diloco, Version(2));
  ASSERT_TRUE(load_state_image(late, image, StateLoad::kShiftFromAnchor, [&](RuleId) { return diloco.get(); }).ok());
  late.apply_shift();
  EXPECT_EQ(values_of(late, ArenaRole::kCurrent)[0], 11.0f);
  EXPECT_EQ(late.arena().tag(ArenaRole::kCurrent), 53u);
  EXPECT_EQ(values_of(late, ArenaRole::kAnchor)[0], 10.0f);
}

TEST(StateImageTest, ALateMemberThatTheCommitNamesShiftsByTheNewAnchorMinusItsSnapshot) {
  const auto diloco = make_diloco_rule();
  WideExecutor donor, late;
  fill(donor, ArenaRole::kAnchor, 10, 0);
  donor.arena().tag(ArenaRole::kAnchor) = 53;
  late.arena().tag(ArenaRole::kAnchor) = 20;
  fill(late, ArenaRole::kAnchor, 4, 0);
  fill(late, ArenaRole::kCurrent, 5, 0);
  late.arena().tag(ArenaRole::kCurrent) = 23;
  RoundContext context;
  context.weight = 3;
  ASSERT_EQ(contributed(*diloco, late, context)->tag, 3u);
  fill(late, ArenaRole::kCurrent, 7, 0);  // goes on training
  late.arena().tag(ArenaRole::kCurrent) = 27;
  const Bytes image = make_state_image(donor, *diloco, Version(2));
  ASSERT_TRUE(load_state_image(late, image, StateLoad::kShiftFromSnapshot, [&](RuleId) { return diloco.get(); }).ok());
  late.apply_shift();
  EXPECT_EQ(values_of(late, ArenaRole::kCurrent)[0], 12.0f);
  EXPECT_EQ(late.arena().tag(ArenaRole::kCurrent), 57u);
}

TEST(StateImageTest, RefusesWhatDoesNotFit) {
  const auto diloco = make_diloco_rule();
  const auto rules = [&](RuleId) -> const OuterRule* { return diloco.get(); };
  WideExecutor donor, joiner;
  IntegerExecutor smaller(tiny_spec());
  const Bytes image = make_state_image(donor, *diloco, Version(1));
  for (std::size_t cut : {std::size_t{0}, std::size_t{7}, kStateHeaderBytes - 1, kStateHeaderBytes, image.size() - 1})
    EXPECT_EQ(parse_state_header(image.view().first(cut)).code(), ErrorCode::kMalformed) << cut;
  EXPECT_EQ(load_state_image(smaller, image, StateLoad::kFresh, rules).code(), ErrorCode::kMalformed);
  donor.arena().span(ArenaRole::kAnchor)[2] = INFINITY;
  const std::vector<float> before = values_of(joiner, ArenaRole::kAnchor);
  EXPECT_EQ(load_state_image(joiner, make_state_image(donor, *diloco, Version(1)), StateLoad::kFresh, rules).code(),
            ErrorCode::kNonFinite);
  EXPECT_EQ(values_of(joiner, ArenaRole::kAnchor), before);
}

}  // namespace
}  // namespace shoal
