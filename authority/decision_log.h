#pragma once
// The authority's log with the order of its effects: a decision is one record, and is durable before its effect runs;
// effects run in the order of the decisions. If the log fails nothing is decided any more.
//
// Thread: loop only.   Borrows: port, loop.   Bounds: decisions that are not durable yet.
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "authority/authority_log.h"
#include "authority/authority_port.h"
#include "common/event_loop.h"
#include "common/lifetime.h"

namespace shoal {

class DecisionLog {
 public:
  static constexpr Duration kSyncOverdue = 2s;
  static constexpr Duration kSyncSaidAgain = 30s;

  DecisionLog(std::unique_ptr<RecordLog> file, AuthorityPort& port, EventLoop& loop)
      : file_(std::move(file)), port_(port), loop_(loop) {}

  // Logs the decision, and runs `effect` once it is durable.
  void decide(const LogRecord& record, std::function<void()> effect);
  // Makes durable what was read. `done` is not called when the log is gone by then.
  void sync(std::function<void(Status)> done) { file_->sync(lifetime_.guard(std::move(done))); }
  // The log says from now on what these records say. ERRORS: kTooLarge (a record would be), kBusy (it is under way, or
  // the log failed); `done` is not called then.
  Status compact(const std::vector<LogRecord>& records, std::function<void(Status)> done);
  void fail(const Error& error);
  bool failed() const { return failed_; }
  bool settled() const { return file_->settled(); }  // all that was read is durable
  bool idle() const { return syncs_.empty(); }       // the effects of all decisions have run
  bool overdue();                                    // a sync has not returned for kSyncOverdue; says so
  std::size_t bytes() const { return file_->bytes(); }

 private:
  std::unique_ptr<RecordLog> file_;
  AuthorityPort& port_;
  EventLoop& loop_;
  bool failed_ = false;
  std::deque<TimePoint> syncs_;  // decisions whose effect has not run: when their sync was asked for
  TimePoint next_notice_{};
  Lifetime lifetime_;
};

}  // namespace shoal
