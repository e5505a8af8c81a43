#include "authority/member_book.h"

#include <algorithm>
#include <utility>

#include "authority/patience.h"
#include "common/log.h"
#include "events/delay.h"
#include "events/session_end.h"
#include "transport/envelope.h"

namespace shoal {
namespace {

// Between two lists that are told: what changes meanwhile goes together, under one signature. Each is a message to
// every member, so the pause grows with them.
constexpr Duration kListPauseMin = 250ms, kListPauseMax = 1s, kListPauseOfMember = 5ms;
constexpr Duration kListAgain = 1s;      // between two answers to one member that asks
constexpr Duration kBeatFresh = 2500ms;  // two beats and their way here
constexpr Duration kLinkBack = 1s;       // in which a link that broke is up again, and its peer beat
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

MemberBook::MemberBook(const AuthorityOptions& options, AuthorityPort& port, EventLoop& loop,
                       std::function<void(const Error&)> on_failure)
    : options_(options),
      port_(port),
      loop_(loop),
      on_failure_(std::move(on_failure)),
      stages_(options.stages),
      lists_(options.run, [&port](ByteView bytes) { return port.sign(bytes); }) {}

MemberBook::~MemberBook() { close(); }

// ---- members ----

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

// ---- life ----

void MemberBook::on_link_up(const Remote& from) {
  if (from.role == PeerRole::kPeer) linked_[from.peer] = from.session;
}

void MemberBook::on_link_down(const Remote& from) {
  const auto at = linked_.find(from.peer);
  if (at != linked_.end() && at->second == from.session) linked_.erase(at);
  if (MemberState* member = find(from.session)) member->lists.on_link = false;
}

std::set<PeerId> MemberBook::reachable() const {
  std::set<PeerId> peers;
  for (const auto& [peer, session] : linked_) peers.insert(peer);
  for (const auto& [session, member] : members_) peers.insert(member.member.peer);
  return peers;
}

// A longer gap than `membership` passed while we were away.
void MemberBook::on_beat(MemberState& member, const Beat& beat) const {
  constexpr double kGapKept = 0.9;  // of the longest one, a beat
  const TimePoint now = loop_.now();
  const Duration gap = std::min<Duration>(now - member.beats.heard_at, options_.membership);
  member.beats.longest_gap = std::max(gap, from_seconds(kGapKept * seconds_of(member.beats.longest_gap)));
  const Duration job = std::chrono::milliseconds(beat.job_ms);
  if (job < member.jobs.present &&
      member.jobs.present > job_patience(believed(member, member.jobs.longest), options_.membership))
    member.jobs.extended = true;
  member.jobs.longest = std::chrono::milliseconds(beat.longest_ms);
  member.jobs.longest_any = std::max(member.jobs.longest_any, member.jobs.longest);
  if (job == Duration(0) ||
      job < member.jobs.present) {  // what ran has ended, or began and ended since the beat before
    member.jobs.longest_seen =
        std::max(member.jobs.longest_seen, std::min<Duration>(member.jobs.longest_any, now - member.jobs.present_from));
    member.jobs.present_from = job == Duration(0) ? now : member.beats.heard_at;
  }
  member.jobs.present = job;
  member.beats.heard_at = now;
  member.said.movable = beat.movable;
  member.said.capacity = beat.capacity;
  member.said.on_disk = beat.on_disk;
  member.said.stranded = beat.stranded;
  member.said.delay = std::min<double>(beat.delay_milli / 1000.0, DelayHistogram::kBins - 1);
  member.said.steps = beat.inner_steps;
  member.said.held.clear();
  if (!beat.serving)
    member.said.held.assign(beat.held.begin(), beat.held.begin() + std::min(beat.held.size(), limits::kHeldStatesMax));
  member.beats.came = true;
}

Duration MemberBook::ticked() { return loop_.now() - std::exchange(last_tick_, loop_.now()); }

void MemberBook::all_heard() {
  for (auto& [session, member] : members_) member.beats.heard_at = member.fetch.idle_since = loop_.now();
}

void MemberBook::forgive(Duration silence) {
  for (auto& [session, member] : members_)
    member.beats.heard_at = std::min(loop_.now(), member.beats.heard_at + silence);
}

bool MemberBook::beats(const MemberState& member) const { return loop_.now() - member.beats.heard_at <= kBeatFresh; }

// After a sleep of ours the beats of some are read before those of others: nobody is away before the next tick.
bool MemberBook::away(const MemberState& member) const {
  const TimePoint now = loop_.now();
  if (now - last_tick_ > kSlept) return false;
  const auto link = linked_.find(member.member.peer);
  const bool linked = link != linked_.end() && link->second == member.member.session;
  return now - member.beats.heard_at >
         (linked ? std::max<Duration>(kBeatFresh, 2 * member.beats.longest_gap) : kLinkBack);
}

Duration MemberBook::believed(const MemberState& member, Duration claimed) const {
  const Duration seen = std::max(options_.membership, member.jobs.longest_seen);
  if (claimed <= seen) return claimed;
  std::vector<Duration> others;
  for (const auto& [session, other] : of(member.stage))
    if (other != &member) others.push_back(other->jobs.longest_any);
  if (others.empty()) return seen;
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>((others.size() - 1) / 2);
  std::nth_element(others.begin(), middle, others.end());
  return std::min(claimed, std::max(seen, *middle));
}

Duration MemberBook::start_patience() const {
  return longest_start_ > Duration(0) ? from_seconds(kJobFactor * seconds_of(longest_start_)) : kFirstJob;
}

bool MemberBook::makes_progress(const MemberState& member) const {
  return member.ready() || loop_.now() - member.fetch.idle_since <= std::max(options_.membership, start_patience());
}

Duration MemberBook::silence_patience(const MemberState& member) const {
  return std::max(options_.membership, 2 * member.beats.longest_gap);
}

// What it claims beyond what is believed buys as much again, once.
Duration MemberBook::patience_with_job(const MemberState& member) const {
  const Duration patience = job_patience(believed(member, member.jobs.longest), options_.membership);
  return member.jobs.extended
             ? patience
             : std::min<Duration>(job_patience(member.jobs.longest, options_.membership), 2 * patience);
}

// A process whose network thread answers while its device hangs sends beats too.
std::string MemberBook::dead_because(const MemberState& member, TimePoint now) const {
  const auto text = [](Duration d) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
    return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
  };
  if (const Duration silent = now - member.beats.heard_at; silent > silence_patience(member))
    return "no sign of life within the membership time: silent for " + text(silent);
  const Duration patience = patience_with_job(member);
  if (member.jobs.present <= patience) return "";
  return "no sign of life from its device: a job runs for " + text(member.jobs.present) +
         (member.jobs.longest == Duration::zero()
              ? ", the first of its kind"
              : ", the longest finished one of its kind took " + text(member.jobs.longest)) +
         ", and at most " + text(patience) + " are waited for";
}

std::map<Session, std::string> MemberBook::dead() const {
  std::map<Session, std::string> dead;
  for (const auto& [session, member] : members_)
    if (std::string why = dead_because(member, loop_.now()); !why.empty()) dead.emplace(session, std::move(why));
  return dead;
}

std::vector<MemberLife> MemberBook::lives() const {
  std::vector<MemberLife> all;
  for (const auto& [session, member] : members_)
    all.push_back({session, member.stage, member.member.serving, member.leaves(), loop_.now() - member.beats.heard_at});
  return all;
}

// ---- the list ----

MemberList MemberBook::list_of(std::vector<StageMembers> heads) const {
  MemberList list;
  list.run = options_.run;
  list.epoch = epoch_;
  list.stages = std::move(heads);
  for (const auto& [session, member] : members_) {
    Member shown = member.member;
    shown.version = member.version;
    list.stages[member.stage.value].members.push_back(std::move(shown));
  }
  return list;
}

// A list that is too large would end the run, and its log would end every later life of it: so it is seen to before the
// member is decided. What members change later (versions, epochs) is counted at its largest.
bool MemberBook::fits(MemberList list, const Whereabouts& whereabouts, const std::optional<Session>& older) const {
  constexpr std::uint64_t kLargest = UINT64_MAX;
  list.epoch = Epoch(kLargest);
  Member joiner{Session{kLargest, kLargest}, PeerId{}, whereabouts, true, Version(kLargest)};
  list.stages.front().members.push_back(joiner);
  for (StageMembers& stage : list.stages) {
    stage.epoch = Epoch(kLargest);
    stage.version = Version(kLargest);
    stage.round = RoundId(kLargest);
    std::erase_if(stage.members, [&](const Member& member) { return member.session == older; });
    for (Member& member : stage.members) member.version = Version(kLargest);
  }
  const auto packed = pack_member_list(list);
  return packed.ok() && packed->size() <= options_.list_bytes_max;
}

void MemberBook::publish(MemberList list) {
  published_ = std::move(list);
  if (published_.epoch == epoch_) stale_ = false;
  port_.on_members(published_);
  if (list_timer_ != 0) return;
  if (loop_.now() >= next_list_) return tell_list();
  list_timer_ = loop_.at(next_list_, [this] {
    list_timer_ = 0;
    tell_list();
  });
}

void MemberBook::tell_list() {
  if (closed_) return;
  next_list_ = loop_.now() + std::clamp<Duration>(static_cast<int>(members_.size()) * kListPauseOfMember, kListPauseMin,
                                                  kListPauseMax);
  const Result<Message> news = lists_.tell(published_);
  if (!news.ok()) return on_failure_(news.error());
  for (const auto& [session, member] : members_)
    if (member.lists.on_link) port_.send(member.member.peer, *news);
}

void MemberBook::close() {
  closed_ = true;
  if (list_timer_ != 0) loop_.cancel(std::exchange(list_timer_, 0));
}

// Lists are told once they are durable, so a member has none that our log lacks, unless it lies. Its word is no proof,
// so nothing but the warning follows. It takes our lists again when they have passed the one it has.
void MemberBook::name_newer_list(MemberState& member, Epoch epoch) {
  if (std::exchange(member.lists.newer_one_said, true)) return;
  const Session session = member.member.session;
  const std::string cause = "it says that it has list " + std::to_string(epoch.value) + ", and list " +
                            std::to_string(told().value) + " is the newest here";
  port_.write(
      {.event = EventKind::kMember, .stage = member.stage, .about = session, .state = "newer list", .cause = cause});
  if (member.of_this_life) return log_warning("stage ", member.stage, ": session ", short_name(session), ": ", cause);
  log_warning("stage ", member.stage, ": session ", short_name(session), ": ", cause,
              ". Was an older copy of authority.log put back? HINT: stop, put the newer one back and resume; else "
              "members keep their older lists until newer ones come");
}

void MemberBook::send_list(MemberState& member, Epoch epoch, std::uint64_t id) {
  if (loop_.now() < member.lists.next) return;
  member.lists.next = loop_.now() + kListAgain;
  if (const Epoch newest = told(); newest.value > 0 && epoch > newest) return name_newer_list(member, epoch);
  for (Message& message : lists_.since(epoch, id)) port_.send(member.member.peer, std::move(message));
  member.lists.on_link = true;
}

void MemberBook::show_list(const PeerId& reader, Epoch epoch, std::uint64_t id) {
  if ((epoch == told() && id == lists_.id()) || loop_.now() < next_shown_) return;
  next_shown_ = loop_.now() + kShownEvery;
  for (Message& message : lists_.since(Epoch(0), 0)) port_.send(reader, std::move(message));
}

// ---- what rounds secured ----

void MemberBook::note_commit(const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  if (commit.back_to)
    tally_.take_back(commit.stage, taken);
  else
    tally_.add(commit);
  note_named(commit);
  change_list();
  stale_ = true;
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
  std::vector<LogShares::Share> shares;
  for (const auto& [of, entries] : tally_.shares) shares.push_back({of.first, of.second, entries});
  add_in_parts(shares, &LogShares::shares, records);
  std::vector<LogSessions::Over> over;
  for (const auto& [session, left] : over_) over.push_back({session, left});
  add_in_parts(over, &LogSessions::over, records);
}

}  // namespace shoal
