#pragma once
// What the authority's log says, brought back into the book and the stages. Rounds that were opened and not committed
// are over: their commit never left.
//
// Thread: loop only.   Borrows: options, port, loop, book, stages, also by what has to be told again.
#include <functional>
#include <memory>
#include <vector>

#include "authority/authority_log.h"
#include "authority/member_book.h"
#include "authority/stage_rounds.h"

namespace shoal {

class LogReplay {
 public:
  using Tell = std::function<void()>;

  LogReplay(const AuthorityOptions& options, AuthorityPort& port, const EventLoop& loop, MemberBook& book,
            const std::vector<std::unique_ptr<StageRounds>>& stages)
      : options_(options), port_(port), loop_(loop), book_(book), stages_(stages) {}

  // Applies the records in order. What has to be told again once they are durable, in order. ERRORS: kCorrupt (another
  // run's log, or one that contradicts itself).
  Result<std::vector<Tell>> apply(const std::vector<LogRecord>& records);

 private:
  Status replay(const LogStart& record) const;
  Status replay(const LogMember& record);
  Status replay(const LogOver& record);
  Status replay(const LogOpen& record);
  Status replay(const LogCommit& record);
  Status replay(const LogStage& record);
  Status replay(const LogAgain& record);
  Status replay(const LogOverAgain& record);
  Result<StageRounds*> stage_of(StageId stage) const;

  const AuthorityOptions& options_;
  AuthorityPort& port_;
  const EventLoop& loop_;
  MemberBook& book_;
  const std::vector<std::unique_ptr<StageRounds>>& stages_;
  std::vector<Tell> again_;
};

}  // namespace shoal
