#include "authority/member_book.h"

#include <algorithm>
#include <utility>

#include "events/session_end.h"

namespace shoal {
namespace {

constexpr std::size_t kItemsMax = 4096;  // of one record

// A record of `Record` for each kItemsMax of them.
template <class Record, class Item>
void add_in_parts(const std::vector<Item>& items, std::vector<Item> Record::*field, std::vector<LogRecord>& records) {
  for (std::size_t at = 0; at < items.size(); at += kItemsMax) {
    Record record;
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(at);
    (record.*field).assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(kItemsMax, items.size() - at)));
    records.push_back(std::move(record));
  }
}

}  // namespace

MemberState* MemberBook::find(const Session& session) {
  const auto at = members_.find(session);
  return at == members_.end() ? nullptr : &at->second;
}

MemberState& MemberBook::place(const Session& session, StageId stage) {
  const auto [at, is_new] = members_.try_emplace(session);
  if (!is_new) stages_[at->second.stage.value].erase(session);
  at->second.stage = stage;
  return *(stages_[stage.value][session] = &at->second);
}

void MemberBook::end(const Session& session, const std::string& reason, bool left) {
  const auto at = members_.find(session);
  SHOAL_CHECK(at != members_.end());
  const StageId stage = at->second.stage;
  over_[session] = left;
  tally_.faults += is_fault(reason) ? 1 : 0;
  over_lately_.push_back({stage, session, reason});
  if (over_lately_.size() > kOverAgain) over_lately_.pop_front();
  stages_[stage.value].erase(session);
  members_.erase(at);
  change_list();
}

void MemberBook::tell_over(const Remote& to) const {
  const auto at = over_.find(to.session);
  if (at != over_.end() && at->second) return port_.send(to.peer, Goodbye{});
  port_.send(to.peer,
             Fenced{to.session, at == over_.end() ? "not a member" : "this session is over; join as a new one"});
}

void MemberBook::fence_again() const {
  for (const auto& [session, left] : over_)
    if (!left) port_.fence(session);
}

bool MemberBook::wish_waits(const Session& session) {
  const TimePoint now = loop_.now();
  std::erase_if(wishes_, [&](const auto& wish) { return now - wish.second > 2 * kWishPatience; });  // it went away
  const auto at = wishes_.find(session);
  if (at == wishes_.end() && wishes_.size() >= kWishesMax) return false;
  return now - wishes_.emplace(session, now).first->second < kWishPatience;
}

void MemberBook::send_to(const Session& session, Message message) const {
  const auto at = members_.find(session);
  if (at != members_.end()) port_.send(at->second.member.peer, std::move(message));
}

// ---- what rounds secured ----

void MemberBook::note_commit(const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  if (commit.back_to)
    tally_.take_back(commit.stage, taken);
  else
    tally_.add(commit);
  note_named(commit);
  change_list();
}

void MemberBook::note_named(const RoundCommit& commit) {
  for (const Secured& secured : commit.secured) {
    MemberState* member = find(secured.session);
    if (member == nullptr) continue;
    member->named = commit;
    member->named->secured = {secured};
  }
}

// ---- the log ----

void MemberBook::replay(const LogBase& base) {
  epoch_ = base.epoch;
  tally_.rounds = base.rounds;
  tally_.taken_back = base.taken_back;
  tally_.faults = base.faults;
}

void MemberBook::replay(const LogShares& record) {
  for (const LogShares::Share& share : record.shares) tally_.shares[{share.peer_tag, share.stage}] = share.entries;
}

void MemberBook::replay(const LogSessions& record) {
  for (const LogSessions::Over& over : record.over) over_[over.session] = over.left;
}

void MemberBook::note_over(const LogOverAgain& record) {
  if (over_lately_.empty() || over_lately_.back().session != record.session) over_lately_.push_back(record);
}

void MemberBook::compact(std::vector<LogRecord>& records) const {
  records.push_back(LogBase{epoch_, port_.paths_logged(), tally_.rounds, tally_.taken_back, tally_.faults});
  if (!relays_.empty()) records.push_back(LogRelays{relays_});
  std::vector<LogShares::Share> shares;
  for (const auto& [of, entries] : tally_.shares) shares.push_back({of.first, of.second, entries});
  add_in_parts(shares, &LogShares::shares, records);
  std::vector<LogSessions::Over> over;
  for (const auto& [session, left] : over_) over.push_back({session, left});
  add_in_parts(over, &LogSessions::over, records);
}

}  // namespace shoal
