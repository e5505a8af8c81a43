#include "runtime/config/outer_rules.h"

#include "runtime/config/derived_options.h"

namespace shoal {

OuterRules outer_rules_of(const RunConfig& config) {
  const bool exact = config.executor.kind != ExecutorKind::kTorch;
  AllreduceOptions allreduce;
  allreduce.exact = exact;
  DilocoOptions diloco;
  diloco.sum = exact;
  diloco.payload = payload_codec(config);
  diloco.outer_lr = exact ? 1 : config.sync.outer_lr;
  diloco.outer_momentum = exact ? 0 : config.sync.outer_momentum;
  return {.allreduce = make_allreduce_rule(allreduce), .diloco = make_diloco_rule(diloco)};
}

}  // namespace shoal
