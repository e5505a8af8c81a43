#include "runtime/solo/replica_rounds.h"

#include <optional>
#include <string>
#include <utility>

#include "runtime/config/outer_rules.h"
#include "sync/reducer.h"

namespace shoal {
namespace {

// Every member owns a part. Returns what all sent.
std::uint64_t exchange(std::vector<Reducer>& members) {
  std::uint64_t bytes = 0;
  for (Reducer& member : members) member.cut().job();
  for (std::size_t from = 0; from < members.size(); ++from) {
    for (std::size_t to = 0; to < members.size(); ++to) {
      if (to == from) continue;
      Reducer::Piece piece = members[from].piece_for(to);
      bytes += piece.bytes.size();
      members[to].add(from, std::move(piece));
    }
  }
  return bytes;
}

Result<std::uint64_t> share_sums(std::vector<Reducer>& members) {
  std::uint64_t bytes = 0;
  for (std::size_t owner = 0; owner < members.size(); ++owner) {
    members[owner].sum_own_part().job();
    SHOAL_ASSIGN(const Reducer::Piece sum, members[owner].take_own_part());
    for (std::size_t to = 0; to < members.size(); ++to) {
      if (to == owner) continue;
      bytes += sum.bytes.size();
      members[to].take(owner, sum);
    }
  }
  return bytes;
}

}  // namespace

ReplicaRounds::ReplicaRounds(const RunConfig& config)
    : rules_(outer_rules_of(config)),
      every_step_(traits_of(config.sync.rule).every_step ? config.sync.rule : RuleId::kAllreduce),
      of_rounds_(config.sync.rule) {}

Status ReplicaRounds::hold(const std::vector<ReplicaPart>& replicas, RuleId rule, const InnerStep& step) {
  RoundContext context;
  context.round = RoundId{rounds_ + 1};
  context.base = Version{rounds_};
  context.inner = step;
  for (std::size_t stage = 0; stage < replicas.front().chain->stages().size(); ++stage)
    if (const Status held = hold_stage(replicas, stage, *rules_.of(rule), context); !held.ok())
      return make_error(held.code(), "round " + std::to_string(context.round.value) + " of stage " +
                                         std::to_string(stage) + ": " + held.error().message);
  ++rounds_;
  return {};
}

Status ReplicaRounds::hold_stage(const std::vector<ReplicaPart>& replicas, std::size_t stage, OuterRule& rule,
                                 RoundContext context) {
  std::vector<Reducer> members;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    context.weight = replicas[i].weight;
    StageExecutor& executor = *replicas[i].chain->stages()[stage];
    SHOAL_TRY(rule.take_snapshot(executor, context));
    SHOAL_ASSIGN(Payload own, rule.contribute(executor, context));
    const std::uint64_t weight = own.weight;
    const CountTag tag = own.tag;
    members.emplace_back(RoundShape{replicas.size(), i, all_own(replicas.size())},
                         rule.make_sum(std::move(own.bytes), replicas.size()), weight, tag);
  }
  bytes_ += exchange(members);
  SHOAL_ASSIGN(const std::uint64_t sums, share_sums(members));
  bytes_ += sums;
  std::optional<Digest> agreed;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    StageExecutor& executor = *replicas[i].chain->stages()[stage];
    context.weight = replicas[i].weight;
    members[i].join().job();
    SHOAL_ASSIGN(Payload reduced, members[i].take_result());
    SHOAL_ASSIGN(const Digest digest, rule.prepare(executor, context, std::move(reduced)));
    if (agreed.value_or(digest) != digest) return make_error(ErrorCode::kCorrupt, "replicas came to other bits");
    agreed = digest;
    rule.commit(executor, context);
  }
  return {};
}

}  // namespace shoal
