#include "runtime/stage_peer/stage_session.h"

#include <algorithm>

namespace shoal {

CourierOptions courier_options(const StageSession& session) {
  return {.ahead = session.spec.route().next, .lease = session.config->lease()};
}

EntryCredits entry_credits(const StageSession& session) {
  return {session.credits, std::max<std::size_t>(2, session.credits / 4)};
}

LedgerOptions ledger_options(const StageSession& session) {
  return {.self = session.self,
          .stage = session.spec.stage,
          .next = session.spec.route().next,
          .lease = session.config->lease(),
          .tag_of = session.tag_of};
}

WindowsOptions windows_options(const RunConfig& config) {
  return {.inner_batch = std::max<std::uint64_t>(1, config.sync.inner_batch),
          .delay_max = config.optimizer.delay_max,
          .drain = config.sync.mode == SyncMode::kDrain};
}

}  // namespace shoal
