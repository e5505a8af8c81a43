// Members of one stage on unlike machines: each computes with another instruction set, and all agree on every digest.
#include <gtest/gtest.h>

#include "common/rng.h"
#include "stages/adamw.h"
#include "state/state_image.h"
#include "tests/kernels/instruction_sets.h"
#include "tests/sync/wide_executor.h"

namespace shoal {
namespace {

using test::tiny_spec;
using test::values_of;
using test::WideExecutor;

constexpr int kRounds = 6, kStepsOfRound = 3;
constexpr std::uint64_t kTargets = 40;  // of a member's window

class MixedMachinesTest : public ::testing::Test {
 protected:
  void TearDown() override { compute_with(0); }
};

struct MixedMember {
  std::int64_t instructions = 0;
  std::unique_ptr<OuterRule> rule;
  std::unique_ptr<WideExecutor> executor = std::make_unique<WideExecutor>();
  std::unique_ptr<PayloadSum> sum;
};

std::vector<MixedMember> members_of(RuleId id, const std::vector<std::int64_t>& instructions) {
  std::vector<MixedMember> members;
  for (const std::int64_t each : instructions) {
    MixedMember member;
    member.instructions = each;
    DilocoOptions diloco;
    diloco.payload = CodecId::kInt8;
    member.rule = id == RuleId::kDiloco ? make_diloco_rule(diloco) : make_allreduce_rule();
    Rng rng(1);
    Arena& arena = member.executor->arena();
    for (float& value : arena.span(ArenaRole::kCurrent)) value = static_cast<float>(rng.normal());
    for (const ArenaRole role : {ArenaRole::kAnchor, ArenaRole::kOther})
      std::copy_n(arena.span(ArenaRole::kCurrent).begin(), arena.size(), arena.span(role).begin());
    members.push_back(std::move(member));
  }
  return members;
}

InnerStep inner_step(std::uint64_t number) {
  InnerStep step;
  step.lr = 3e-3;
  step.targets = kTargets;
  step.step = number;
  step.look_ahead = 1;
  step.look_ahead_before = number > 1 ? 1 : 0;
  return step;
}

// A gradient sum of its own for each member and step.
std::vector<float> gradient_of(std::size_t member, int step, std::size_t size) {
  Rng rng(1000 * member + static_cast<std::uint64_t>(step));
  std::vector<float> sum(size);
  for (float& value : sum) value = static_cast<float>(kTargets * 0.1 * rng.normal());
  return sum;
}

void train_member(MixedMember& member, std::size_t index, int round) {
  Arena& arena = member.executor->arena();
  for (int i = 0; i < kStepsOfRound; ++i) {
    const int number = round * kStepsOfRound + i + 1;
    const std::vector<float> sum = gradient_of(index, number, arena.size());
    AdamWArrays arrays;
    arrays.parameters = arrays.parameters_out = arena.span(ArenaRole::kCurrent);
    arrays.moment1 = arrays.moment1_out = arena.span(ArenaRole::kMoment1);
    arrays.moment2 = arrays.moment2_out = arena.span(ArenaRole::kMoment2);
    arrays.gradient_sum = sum;
    ASSERT_TRUE(adamw_step(parameters_of(tiny_spec()), inner_step(static_cast<std::uint64_t>(number)), arrays).ok());
  }
}

// Every part is summed by its owner, in member order, and opened by all: what a round's messages carry.
void send_parts(std::vector<MixedMember>& members, const std::vector<std::uint64_t>& weights) {
  const std::uint64_t total = kTargets * members.size();
  for (std::size_t part = 0; part < members.size(); ++part) {
    compute_with(members[part].instructions);
    PayloadSum& owner = *members[part].sum;
    std::vector<Bytes> pieces;
    for (MixedMember& from : members) {
      compute_with(from.instructions);
      pieces.push_back(from.sum->part(part));
    }
    compute_with(members[part].instructions);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      owner.add(owner.open(part, pieces[i]).value(), weights[i], total, 1.0);
    const Bytes made = owner.finish(part);
    for (MixedMember& to : members) {
      compute_with(to.instructions);
      to.sum->take(part, to.sum->open(part, made).value());
    }
  }
}

// The digests of all rounds, on which the members must agree, and at the end the parameters of each.
struct MixedOutcome {
  std::vector<Digest> digests;
  std::vector<std::vector<float>> parameters;
};
MixedOutcome run_rounds(RuleId id, const std::vector<std::int64_t>& instructions) {
  std::vector<MixedMember> members = members_of(id, instructions);
  MixedOutcome outcome;
  for (int round = 0; round < kRounds; ++round) {
    RoundContext context;
    context.weight = kTargets;
    context.inner = inner_step(static_cast<std::uint64_t>(round) + 1);
    std::vector<std::uint64_t> weights;
    for (std::size_t i = 0; i < members.size(); ++i) {
      compute_with(members[i].instructions);
      if (id == RuleId::kDiloco) {
        train_member(members[i], i, round);
      } else {
        Arena& arena = members[i].executor->arena();
        const std::vector<float> sum = gradient_of(i, round, arena.size());
        std::copy(sum.begin(), sum.end(), arena.span(ArenaRole::kAccumulatorA).begin());
      }
      const Payload payload = test::contributed(*members[i].rule, *members[i].executor, context).value();
      members[i].sum = members[i].rule->make_sum(payload.bytes, members.size());
      weights.push_back(payload.weight);
    }
    send_parts(members, weights);
    std::vector<Digest> digests;
    for (MixedMember& member : members) {
      compute_with(member.instructions);
      const Payload reduced{member.sum->result(), kTargets * members.size(), 0};
      digests.push_back(member.rule->prepare(*member.executor, context, reduced).value());
      member.rule->commit(*member.executor, context);
      if (member.executor->shift_pending()) member.executor->apply_shift();
    }
    for (const Digest& digest : digests) EXPECT_EQ(digest, digests[0]) << "round " << round;
    outcome.digests.push_back(digests[0]);
  }
  for (MixedMember& member : members) outcome.parameters.push_back(values_of(*member.executor, ArenaRole::kCurrent));
  return outcome;
}

TEST_F(MixedMachinesTest, AStageOfUnlikeMachinesAgreesRoundAfterRoundOnTheBitsOfAlikeOnes) {
  const std::vector<std::int64_t> sets = instruction_sets();
  const std::int64_t widest = sets.front(), narrowest = sets.back();
  for (const RuleId id : {RuleId::kDiloco, RuleId::kAllreduce}) {
    const MixedOutcome alike = run_rounds(id, {widest, widest, widest});
    EXPECT_EQ(alike.digests.size(), std::size_t{kRounds});
    EXPECT_NE(alike.digests.front(), alike.digests.back());
    for (const std::int64_t middle : sets) {
      const MixedOutcome mixed = run_rounds(id, {widest, middle, narrowest});
      EXPECT_EQ(mixed.digests, alike.digests) << hwy::TargetName(middle);
      EXPECT_EQ(mixed.parameters, alike.parameters) << hwy::TargetName(middle);
    }
  }
}

}  // namespace
}  // namespace shoal
