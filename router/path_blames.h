#pragma once
// Which session forged the paths of which an element did not have its session's tag (common/crypto/path_tag.h). What
// the trainer sees is the path alone: of an element that does not fit the session that it names may have made it, or
// any that handed it on, so all of them are under suspicion. What tells them apart is how often each is.
//
// A session is the culprit when it was in kForgedMin forged paths, that is more than twice the share of its paths than
// is usual among the others of its stage (their upper median), and it outdoes all others in the path that stand out
// like that: its share is more than twice theirs, or it was in more and has no smaller share. Where two cannot be told
// apart over kForgedSure, since one forges only what the other took part in, it is the one nearer to the trainer. An
// element of stage 0 that does not fit is its sender's own. When the culprit is known, what it forged is held against
// nobody else.
//
// Value without I/O and clock. Thread: loop only. Bounds: a record a member; forget() ends it.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "router/roster.h"

namespace shoal {

class PathBlames {
 public:
  static constexpr std::uint32_t kForgedMin = 3, kForgedSure = 12;

  // Every element of it fits. A session that is no member of its stage any more has no record.
  void whole(const std::vector<EntryName>& path, const Roster& roster);
  // Element `bad` < path.size() is the first that does not fit. Returns the culprit, if it is known now. A session that
  // is no member of its stage is not under suspicion; where one had a hand in it nobody is. One that may not go is no
  // culprit.
  std::optional<Session> forged(const std::vector<EntryName>& path, std::size_t bad, const Roster& roster,
                                const std::function<bool(const Session&)>& may_go);
  void forget(const Session& session) { records_.erase(session); }
  std::uint64_t forged_paths() const { return forged_; }
  std::size_t sessions() const { return records_.size(); }

 private:
  struct Record {
    std::uint64_t whole = 0, forged = 0;
    double share() const { return forged == 0 ? 0 : static_cast<double>(forged) / static_cast<double>(whole + forged); }
  };
  // More than twice what is usual at its stage.
  bool stands_out(const Session& session, StageId stage, const Roster& roster) const;
  bool outdoes(const Session& session, const Session& other) const;

  std::map<Session, Record> records_;
  std::uint64_t forged_ = 0;
};

}  // namespace shoal
