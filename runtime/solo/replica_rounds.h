#pragma once
// The rounds of replicas that live in one process, by what a swarm's are made of: its rules, their payloads, the
// reducer. Nothing travels, and nobody is slow or missing. Thread: the one that computes.
#include <cstdint>
#include <vector>

#include "common/result.h"
#include "runtime/config/config.h"
#include "runtime/solo/stage_chain.h"
#include "sync/outer_rule.h"

namespace shoal {

// One replica's part in a round.
struct ReplicaPart {
  StageChain* chain = nullptr;  // borrowed
  std::uint64_t weight = 0;     // targets that it brings
};

class ReplicaRounds {
 public:
  explicit ReplicaRounds(const RunConfig& config);

  // A round of every stage each. ERRORS of both: the rule's, Reducer's; kCorrupt (replicas came to other bits).
  //
  // All make one step of their open windows' gradients, by the rule of every step.
  Status step_together(const std::vector<ReplicaPart>& replicas, const InnerStep& step) {
    return hold(replicas, every_step_, step);
  }
  // All stand on the result of [sync] rule with their next step.
  Status merge(const std::vector<ReplicaPart>& replicas) { return hold(replicas, of_rounds_, {}); }

  std::uint64_t rounds() const { return rounds_; }
  std::uint64_t bytes() const { return bytes_; }  // of pieces and sums that all replicas would have sent

 private:
  Status hold(const std::vector<ReplicaPart>& replicas, RuleId rule, const InnerStep& step);
  Status hold_stage(const std::vector<ReplicaPart>& replicas, std::size_t stage, OuterRule& rule, RoundContext context);

  OuterRules rules_;
  RuleId every_step_, of_rounds_;
  std::uint64_t rounds_ = 0, bytes_ = 0;
};

}  // namespace shoal
