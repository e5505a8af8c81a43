#pragma once
// How the replicas of a stage agree: what a member brings to a round and what the reduced result becomes. Pure
// arithmetic on the arena. The round (sync/round.h) moves the payload and decides nothing about its meaning: its bytes
// are the rule's, as is how they are cut and added (make_sum). So the same interface carries: every step (allreduce,
// DeMo), every H steps (DiLoCo), sparse or coded payloads (sync/payload.h), fragments in turn (streaming: `fragment`,
// which RoundOpen carries), one partner (NoLoCo: two members), own state (ArenaRole::kRuleState). Late deltas (async)
// need more than this interface: a round takes only members that stand on its base.
//
// Thread: take_snapshot(), commit() and abandon() touch the parameters: device thread only. What lies between, all
// that goes through arrays, runs beside the device, which computes meanwhile: contribute() and prepare() read what
// stands until the round is over (the anchor, the shared roles, the snapshot, a closed window) and write candidates,
// which nobody else looks at. So nothing else of a round runs meanwhile, nor does the device load a state.
// id(), every_step(), make_sum() and the roles: any thread. The order of calls in a round: take_snapshot, contribute,
// prepare, then commit or abandon, which may follow any of the first three. A crash before the commit leaves the anchor
// as it was.
#include <cstdint>
#include <memory>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/rule_id.h"
#include "stages/executor.h"
#include "sync/payload.h"

namespace shoal {

struct RoundContext {
  RoundId round;
  Version base;                        // of the anchor it starts from; the result is base + 1
  std::uint64_t weight = 0;            // targets that this member brings; 0 = it takes part without work
  WindowSlot window = WindowSlot::kA;  // allreduce: the step's window (anything when weight is 0)
  InnerStep inner;             // allreduce: rate and constants of the step; `targets` is taken from the reduced weight
  std::uint32_t fragment = 0;  // of the stage's line; the first, 0, is all of the parameters
};

class OuterRule {
 public:
  virtual ~OuterRule() = default;
  virtual RuleId id() const = 0;
  bool every_step() const { return traits_of(id()).every_step; }  // a window belongs to one step, a round to one window
  // How the payloads of one round become one; `own` = what contribute() brought, cut into so many parts.
  virtual std::unique_ptr<PayloadSum> make_sum(Bytes own, std::size_t parts) const = 0;
  // Takes what the round is about out of the device's way: the parameters and a shift that waits for their next write;
  // allreduce: the window, which stands until the commit. ERRORS: kUnsupported (a fragment, of a rule that takes all at
  // once).
  virtual Status take_snapshot(StageExecutor& executor, const RoundContext& context) = 0;
  // What this member brings. A member without work brings weight 0 and zeros. ERRORS: kNonFinite (nothing of it may
  // travel).
  virtual Result<Payload> contribute(StageExecutor& executor, const RoundContext& context) = 0;
  // Writes the candidates and returns the digest all members must agree on (new anchor and all state a joiner fetches).
  // Deterministic. The sum's memory is freed on the way. ERRORS: kNonFinite.
  virtual Result<Digest> prepare(StageExecutor& executor, const RoundContext& context, Payload reduced) = 0;
  // The candidate becomes the anchor (allreduce: the parameters too, and the window is cleared; diloco: the parameters
  // follow with their next write). REQUIRES (allreduce): executor.unsettled_at_other() == 0.
  virtual void commit(StageExecutor& executor, const RoundContext& context) = 0;
  // Frees the candidates; the window or the local steps stay for the next attempt.
  virtual void abandon(StageExecutor& executor, const RoundContext& context) = 0;
  // What a joiner needs beside the anchor, in this order (allreduce: both moments; diloco: the outer momentum).
  virtual std::vector<ArenaRole> shared_roles() const = 0;
  // Where prepare writes what becomes shared_roles()[i].
  virtual std::vector<ArenaRole> candidate_roles() const = 0;
};

struct AllreduceOptions {
  // Candidate = parameters - sum of gradients, without AdamW and division: for executors whose arithmetic is exact
  // (stages/integer_executor.h), where the anchor then proves to the last unit what was counted.
  bool exact = false;
};
struct DilocoOptions {
  double outer_lr = 0.7, outer_momentum = 0.9;  // Nesterov; Douillard et al. 2023, algorithm 1
  // Sum of deltas instead of their mean weighted by targets: with outer_lr 1 and momentum 0 exact on integers.
  bool sum = false;
  CodecId payload = CodecId::kRaw;  // of pieces and sums; raw: as floats
};
std::unique_ptr<OuterRule> make_allreduce_rule(const AllreduceOptions& options = {});
std::unique_ptr<OuterRule> make_diloco_rule(const DilocoOptions& options = {});

// One of each. Shared with the device jobs of a round: they may outlive a session.
struct OuterRules {
  std::shared_ptr<OuterRule> allreduce = make_allreduce_rule(), diloco = make_diloco_rule();
  std::shared_ptr<OuterRule> of(RuleId id) const;  // nullptr: this build has no such rule
};

// Digest over the rule, the anchor's tag, anchor and shared roles: what "the same state" means, whatever version it is
// called. BLAKE2b-256; host memory; roles are pulled.
Digest state_digest(StageExecutor& executor, const OuterRule& rule);
// The same over the candidates of a prepared round.
Digest candidate_digest(StageExecutor& executor, const OuterRule& rule);
// Puts the candidate and its roles in the place of the anchor and the shared roles, and touches nothing else: for an
// executor that is given up, so that an image of what was prepared can be made. REQUIRES: a prepared round.
void adopt_candidate(StageExecutor& executor, const OuterRule& rule);

}  // namespace shoal
