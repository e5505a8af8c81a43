#pragma once
// The members of the run, the sessions that are over, the joiners that wait for a stage, and what rounds secured of
// each peer's. Whether a member lives is FailureDetector's, what others hear of it MemberLists'.
//
// Thread: loop only.   Borrows: port, loop.   Bounds: limits::kStagesMax x kReplicasMax members, 16 bytes a session
// that is over, kOverAgain of them with their reasons, kWishesMax wishes.
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "authority/authority_log.h"
#include "authority/authority_port.h"
#include "authority/member_state.h"
#include "authority/recent_commits.h"
#include "common/event_loop.h"
#include "events/event_record.h"
#include "transport/links.h"

namespace shoal {

// What the rounds of a run came to: value. Bounds: a line a peer and stage that ever contributed.
struct RoundTally {
  std::uint64_t rounds = 0;      // committed
  std::uint64_t taken_back = 0;  // entries that they secured and that a stage went back from
  std::uint64_t faults = 0;      // sessions that were over without having left
  // By peer (Session::peer_tag) and stage: the entries that are in the stage's anchor.
  std::map<std::pair<std::uint64_t, StageId>, std::uint64_t> shares;
  // By peer and stage, in this life of the process: rounds in which it was the last to agree, and how long it did so
  // behind the one before.
  struct Waits {
    std::uint64_t rounds = 0;
    Duration time{};
  };
  std::map<std::pair<std::uint64_t, StageId>, Waits> waits;

  void add(const RoundCommit& commit) {
    ++rounds;
    for (const Secured& one : commit.secured)
      if (!one.serials.empty()) shares[{one.session.peer_tag, commit.stage}] += one.serials.size();
  }
  void take_back(StageId stage, const RecentCommits::TakenBack& taken) {
    taken_back += taken.entries();
    for (const Secured& one : taken.secured) shares[{one.session.peer_tag, stage}] -= one.serials.size();
  }
};

class MemberBook {
 public:
  // For a joiner that asks for a stage while another one has no member: others may be on their way there, and then
  // everybody gets what it asked for. Two repeats of a JoinRequest fit in.
  static constexpr Duration kWishPatience = 5s;
  static constexpr std::size_t kWishesMax = 256;  // that wait at a time; more are passed over at once
  static constexpr std::size_t kOverAgain = 1024;

  MemberBook(const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop)
      : port_(port), loop_(loop), stages_(options.stages) {}

  const std::map<Session, MemberState>& members() const { return members_; }
  std::map<Session, MemberState>& members() { return members_; }
  // The part of members() that serves the stage, in the same order: what looks at a stage looks at no other one's
  // members, since every beat does. The reference stays good.
  const MembersOfStage& of(StageId stage) const { return stages_[stage.value]; }
  MemberState* find(const Session& session);                  // null: no member
  MemberState& place(const Session& session, StageId stage);  // makes it where there is none
  // Its session is over. REQUIRES: it is a member.
  void end(const Session& session, const std::string& reason, bool left);
  bool knows(const Session& session) const { return members_.contains(session) || over_.contains(session); }
  bool is_over(const Session& session) const { return over_.contains(session); }
  // To a session that is no member: Goodbye if it left, else Fenced.
  void tell_over(const Remote& to) const;
  void fence_again() const;  // after a restart, the sessions that did not leave
  // A joiner's wish cannot be granted yet. True: its request goes unanswered, and it repeats it.
  bool wish_waits(const Session& session);
  void send_to(const Session& session, Message message) const;  // nothing when it is no member

  void change_list() { ++epoch_.value; }  // a member was added or changed, or the relays were
  Epoch epoch() const { return epoch_; }  // of the list; counts the decisions that change it
  const std::vector<RelayPlace>& relays() const { return relays_; }
  void set_relays(std::vector<RelayPlace> relays) {
    relays_ = std::move(relays);
    change_list();
  }

  // ---- what rounds secured ----
  void note_commit(const RoundCommit& commit, const RecentCommits::TakenBack& taken);
  const RoundTally& tally() const { return tally_; }
  void note_wait(StageId stage, const LastToAgree& last) {
    RoundTally::Waits& waits = tally_.waits[{last.session.peer_tag, stage}];
    ++waits.rounds;
    waits.time += last.behind;
  }

  // ---- the log ----
  void replay(const LogBase& record);
  void replay(const LogShares& record);
  void replay(const LogSessions& record);
  void replay(const LogNamed& record) { note_named(record.commit); }
  void note_over(const LogOverAgain& record);
  void compact(std::vector<LogRecord>& records) const;  // what stands in front of the stages
  const std::deque<LogOverAgain>& over_lately() const { return over_lately_; }

 private:
  void note_named(const RoundCommit& commit);

  AuthorityPort& port_;
  EventLoop& loop_;
  std::map<Session, MemberState> members_;
  std::vector<MembersOfStage> stages_;
  std::map<Session, bool> over_;          // true: it left, false: fenced
  std::deque<LogOverAgain> over_lately_;  // the newest kOverAgain of them
  std::map<Session, TimePoint> wishes_;   // joiners that wait for the stage that they asked for, since when
  RoundTally tally_;
  std::vector<RelayPlace> relays_;
  Epoch epoch_;
};

}  // namespace shoal
