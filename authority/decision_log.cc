#include "authority/decision_log.h"

namespace shoal {

void DecisionLog::decide(const LogRecord& record, std::function<void()> effect) {
  if (failed_) return;
  Result<Bytes> packed = pack_log_record(record);
  if (!packed.ok()) return fail(packed.error());
  file_->append(*packed);
  syncs_.push_back(loop_.now());
  file_->sync(lifetime_.guard([this, effect = std::move(effect)](const Status& synced) {
    if (failed_) return;
    if (!synced.ok()) return fail(synced.error());
    syncs_.pop_front();
    effect();
  }));
}

void DecisionLog::fail(const Error& error) {
  failed_ = true;
  port_.on_log_failure(error);
}

bool DecisionLog::overdue() {
  const TimePoint now = loop_.now();
  const Duration waited = syncs_.empty() ? Duration::zero() : now - syncs_.front();
  if (waited < kSyncOverdue) return false;
  if (now >= next_notice_) {
    next_notice_ = now + kSyncSaidAgain;
    port_.on_slow_log(waited);
  }
  return true;
}

Status DecisionLog::compact(const std::vector<LogRecord>& records, std::function<void(Status)> done) {
  if (failed_ || file_->compacting()) return make_error(ErrorCode::kBusy, "the authority's log takes nothing now");
  std::vector<Bytes> packed;
  for (const LogRecord& record : records) {
    SHOAL_ASSIGN(packed.emplace_back(), pack_log_record(record));
    if (packed.back().size() > kAuthorityLog.record_bytes_max)
      return make_error(ErrorCode::kTooLarge, "a record of the authority's log would be too large");
  }
  file_->compact(std::move(packed), lifetime_.guard(std::move(done)));
  return {};
}

}  // namespace shoal
