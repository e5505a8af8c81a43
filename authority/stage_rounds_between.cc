// Between two rounds: what members missed, what a round says against them, members that leave, going back, the last
// rounds.
#include <algorithm>
#include <utility>

#include "authority/member_decisions.h"
#include "authority/stage_rounds.h"
#include "common/log.h"
#include "events/delay.h"
#include "events/session_end.h"
#include "sync/round_budget.h"

namespace shoal {
namespace {

// Overtaken fetches of a joiner, each of which gives it the time for another: without a bound, by its word alone, it
// could keep a place that it never fills.
constexpr std::uint32_t kOvertakenFetchesMax = 12;
constexpr Duration kOpenAgainOfMember = 100ms;  // for each member of the round, between two repeats of its opening

// With the entries of that member alone: the names of all, to all, would grow with the square of a stage's members.
RoundCommit as_told_to(const Session& session, const RoundCommit& commit) {
  RoundCommit told{commit.stage, commit.round, commit.version, commit.digest, commit.tag,
                   commit.step,  {},           commit.back_to};
  for (const Secured& secured : commit.secured)
    if (secured.session == session) told.secured.push_back(secured);
  return told;
}

std::optional<double> lower_median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Twice the time of a stage's whole state at the rate that rounds are planned for while none is known: a joiner's line
// may be slower than any that a round went over.
Duration state_patience(std::uint64_t payload, RuleId rule) {
  constexpr std::size_t kTwo = 2;  // each of so many sends in a round as much as it brings
  return round_budget((1 + traits_of(rule).shared_arrays) * payload, kTwo, 0);
}

// Whether a checkpoint that a member says it has is newer than another one; one of a version that no round made is
// none.
bool is_newer(const std::optional<DiskState>& one, const std::optional<DiskState>& other, Version newest) {
  if (!one || one->version > newest) return false;
  return !other || one->version > other->version || (one->version == other->version && one->age_s < other->age_s);
}

}  // namespace

StageStatus StageRounds::status() const {
  StageStatus one;
  one.stage = line_.stage;
  one.secured = line_.secured;
  one.version = line_.version;
  std::vector<double> delays;
  for (const auto& [session, member] : members()) {
    ++one.members;
    one.serving += member->member.serving ? 1 : 0;
    if (member->ahead()) one.ahead.push_back(session);
    if (member->member.serving && member->said.stranded) one.stranded.push_back(session);
    one.holders += line_.has_newest(*member) ? 1 : 0;
    if (is_newer(member->said.on_disk, one.on_disk, line_.version)) one.on_disk = member->said.on_disk;
    if (!member->member.serving || member->said.steps < kDelayWindows) continue;
    delays.push_back(member->said.delay);
  }
  if (missing_since_) {
    one.back_to = line_.restorable(members());
    one.back_in = std::max(Duration(0), *missing_since_ + options_.restore_after - loop_.now());
  }
  one.delay = lower_median(std::move(delays));
  if (line_.last_commit)
    for (const Secured& secured : line_.last_commit->secured) one.last_members.push_back(secured.session);
  return one;
}

// ---- what members missed ----

void StageRounds::send_commit(const MemberState& member, const RoundCommit& commit) {
  // A newer one than `commit` is not durable yet.
  if (member.named && member.named->round < commit.round) port_.send(member.member.peer, *member.named);
  port_.send(member.member.peer, as_told_to(member.member.session, commit));
}

void StageRounds::on_link_up(MemberState& member) {
  member.lists.on_link = false;  // it asks when it sees that it missed one
  if (line_.last_abandon) port_.send(member.member.peer, *line_.last_abandon);
  member.commit_sent_at = {};
  repeat(member);
}

// An opening names all members to each of them: with many it is repeated less often, so that the bytes of a second grow
// with the members and not with their square.
void StageRounds::repeat(MemberState& member) {
  const TimePoint now = loop_.now();
  if (now - member.commit_sent_at < 1s) return;
  if (line_.last_commit_sent && member.version < line_.last_commit_sent->version) {
    member.commit_sent_at = now;
    return send_commit(member, *line_.last_commit_sent);
  }
  if (!round_ || !round_->sent) return;
  const bool new_link = member.commit_sent_at == TimePoint{};
  const Duration most = std::max<Duration>(1s, std::chrono::milliseconds(round_->open.budget_ms) / 4);
  const Duration of_all = static_cast<int>(round_->members.size()) * kOpenAgainOfMember;
  const Duration again = new_link ? 1s : std::clamp<Duration>(of_all, 1s, most);
  if (now - std::max(round_->sent_at, member.commit_sent_at) < again) return;
  const RoundMember* said = round_->find(member.member.session);
  if (said == nullptr || said->decided()) return;
  member.commit_sent_at = now;
  if (round_->step && !said->contributed) port_.send(member.member.peer, *round_->step);
  port_.send(member.member.peer, round_->open);
}

void StageRounds::on_beat(MemberState& member, const Beat& beat) {
  // What a joiner has fetched and does not serve yet is nothing that it could give to others.
  if (beat.version <= line_.version) member.version = beat.serving ? beat.version : Version(0);
  member.settled = beat.version == line_.version ? beat.settled_targets : 0;
  note_fetch(member, beat);
  if (beat.leaving && !member.leaves()) member.leaving = Leaving::kSaid;
  const bool was_ready = member.ready();
  member.enter(phase_after_beat(member.phase(), beat.serving, beat.version, line_.version));
  if (member.ready() && !was_ready) detector_.note_start(loop_.now() - member.fetch.idle_since);
  line_.note_had(member);
}

void StageRounds::note_fetch(MemberState& member, const Beat& beat) {
  if (!beat.behind || beat.version >= line_.version) return member.fetch.since.reset();
  const TimePoint now = loop_.now();
  if (member.fetch.since && beat.version <= member.fetch.from) return;
  if (member.fetch.since) {  // it has fetched a version, as a joiner its first, and that is not the newest any more
    const Duration took = std::min<Duration>(now - *member.fetch.since, fetch_patience());
    if (!member.ready() && ++member.fetch.overtaken <= kOvertakenFetchesMax) member.fetch.idle_since = now;
    if (hold(took + took / 2, fetch_hold_allowed_at_))
      join_hold_allowed_at_ = std::max(join_hold_allowed_at_, fetch_hold_allowed_at_);
  }
  member.fetch.since = now;
  member.fetch.from = beat.version;
}

void StageRounds::on_joiner() { (void)hold(options_.join_hold, join_hold_allowed_at_); }

bool StageRounds::hold(Duration time, TimePoint& allowed_at) {
  constexpr int kTimesApart = 10;
  const TimePoint now = loop_.now();
  if (now < allowed_at) return false;
  hold_until_ = std::max(hold_until_, now + time);
  hold_for_ = round_ ? std::max(hold_for_, time) : Duration(0);
  allowed_at = now + kTimesApart * time;
  return true;
}

// ---- what a round says against members ----

// Once may be a fault of its memory, and the next attempt goes without it where enough are left. A step cannot: the
// session would end for what it missed, and the next one of the same peer would begin with a clean sheet.
void StageRounds::name_contradicting(const OpenRound& round) {
  for (const Session& session : round.contradicting()) {
    MemberState* member = book_.find(session);
    if (member == nullptr) continue;
    const std::string what = "it agreed on a weight or tag of the whole that is not that of the contributions";
    if (std::exchange(member->blame.contradicted, true)) {
      decisions_.end_for_misconduct(session, what + ", in two rounds");
      continue;
    }
    if (diloco_active()) blames_.leave_out(*member);
    port_.write({.event = EventKind::kRoundFailed,
                 .stage = line_.stage,
                 .about = session,
                 .round = round.open.round,
                 .cause = what});
    log_warning("stage ", line_.stage, ": session ", short_name(session), ": ", what,
                ". Its session ends at the second time");
  }
}

void StageRounds::end_left_out() {
  if (course_.is_over() || diloco_active()) return;
  std::vector<Session> out;
  for (const auto& [session, member] : members())
    if (rests(*member)) out.push_back(session);
  for (const Session& session : out)
    decisions_.end_session(session, blames_.ends_because(*book_.find(session)), true, {});
}

// Nobody is one that cannot fetch, since nobody else holds the newest version.
void StageRounds::end_squatters() {
  const TimePoint now = loop_.now();
  const bool to_fetch = !line_.secured || line_.held(members());
  const Duration to_fetch_it = state_patience(payload(), options_.rule) + options_.membership;
  const Duration patience = std::max(fetch_patience(), to_fetch_it) + detector_.start_patience();
  std::vector<Session> squatters;
  for (const auto& [session, member] : members()) {
    if (member->ready() || member->leaves() || !to_fetch || course_.is_over()) member->fetch.idle_since = now;
    if (now - member->fetch.idle_since > patience) squatters.push_back(session);
  }
  for (const Session& session : squatters)
    decisions_.end_for_misconduct(session, "it neither fetched the stage's state nor served for " +
                                               std::to_string(static_cast<int>(seconds_of(patience))) + " s");
}

// ---- leaving ----

bool StageRounds::waits_for_round(MemberState& member, const Leave& leave) {
  const Session& session = member.member.session;
  const bool in_round = round_ && round_->find(session) != nullptr;
  if (!in_round && !(leave.round_wanted && member.ready() && !rests(member))) return false;
  if (member.leaving != Leaving::kAsked && in_round && diloco_active() && round_->has_contribution(session))
    member.leave_after = round_->open.round;
  member.leaving = Leaving::kAsked;
  return true;
}

void StageRounds::on_over(const Session& session, const PeerId& peer, bool fenced) {
  if (round_ && round_->find(session) != nullptr) {
    if (round_->sent) try_decide(true);
    if (round_) {
      abandon("a member's session is over");
      retry_pause_.reset();
      retry_at_ = loop_.now();
    }
  }
  blames_.on_over(peer, fenced);
}

// Members that asked to leave may go when a round that they were part of is committed.
void StageRounds::release_leavers(const std::vector<Session>& among) {
  std::vector<std::pair<Session, PeerId>> free;
  for (const auto& [session, member] : members()) {
    if (member->leaving != Leaving::kAsked || member->leave_after >= line_.round_committed) continue;
    if (std::ranges::find(among, session) != among.end()) free.emplace_back(session, member->member.peer);
  }
  const bool stays = !free.empty() && std::ranges::any_of(members(), [&](const auto& entry) {
    return line_.has_newest(*entry.second) &&
           std::ranges::none_of(free, [&](const auto& one) { return one.first == entry.first; });
  });
  if (!stays && !free.empty()) {  // the anchor would go with them: one asks again
    book_.find(free.back().first)->leaving = Leaving::kSaid;
    free.pop_back();
  }
  for (const auto& [session, peer] : free)
    decisions_.end_session(session, std::string(kLeft), false, [this, peer = peer] { port_.send(peer, Goodbye{}); });
}

// ---- going back ----

void StageRounds::maybe_restore() {
  if (round_ || gave_up_ || course_.is_over() || !line_.missing(members())) return missing_since_.reset();
  const TimePoint now = loop_.now();
  if (!missing_since_) missing_since_ = now;
  const auto version = line_.restorable(members());
  if (version && (now - *missing_since_ >= options_.restore_after || !line_.one_may_come(members())))
    restore_to(*version);
}

void StageRounds::restore_to(Version version) {
  RecentCommits::TakenBack taken = line_.recent.behind(version);
  RoundCommit commit;
  commit.stage = line_.stage;
  commit.round = RoundId(++line_.round_used.value);
  commit.version = Version(line_.version.value + 1);
  commit.digest = *line_.recent.digest_of(version);
  commit.back_to = version;
  log_warning("stage ", line_.stage, ": nobody holds version ", line_.version, " any more: back to version ", version,
              ", called ", commit.version, " from now on. ", taken.entries(),
              " contributions that later rounds secured are taken back");
  line_.push(commit, taken, port_.settled(line_.stage), loop_.now());
  book_.note_commit(commit, taken);
  last_commit_at_ = loop_.now();
  missing_since_.reset();
  retry_pause_.reset();
  for (const auto& [session, member] : members()) {
    member->settled = 0;
    member->commit_sent_at = loop_.now();
  }
  log_.decide(LogCommit{commit, port_.paths_logged()}, [this, commit, taken = std::move(taken)] {
    line_.last_commit_sent = commit;
    say_restored(commit, taken);
    for (const auto& [session, member] : members()) send_commit(*member, commit);
  });
}

void StageRounds::say_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken) {
  port_.write(restored_event(commit.stage, commit.round, commit.version, *commit.back_to, commit.digest, taken.tag,
                             taken.secured, "nobody holds the version before"));
  port_.on_restored(commit, taken);
}

// ---- the last rounds ----

bool StageRounds::awaited(const MemberState& member) { return member.serves() && !member.flushed && !member.ahead(); }

bool StageRounds::last_due() const {
  if (!last_wanted_ || !last_made_) return last_wanted_;
  return std::ranges::any_of(members(), [&](const auto& entry) {
    const MemberState& member = *entry.second;
    return awaited(member) && line_.has_newest(member) && !rests(member);
  });
}

void StageRounds::want_last() {
  last_wanted_ = !traits_of(options_.rule).every_step;
  blames_.try_now();
  maybe_open();
}

// A member that was behind catches up, in about the time of a round's bytes; one that rests is tried again.
void StageRounds::tend_last() {
  if (!last_wanted_ || !last_made_ || round_) return;
  bool anyone = false, one_rests = false;
  for (const auto& [session, member] : members()) {
    if (!awaited(*member)) continue;
    anyone = true;
    one_rests = one_rests || rests(*member);
  }
  last_wanted_ = anyone && loop_.now() < last_until_;
  if (last_wanted_ && one_rests) blames_.try_now();
}

bool StageRounds::finished() {
  if (round_) return false;
  const bool no_step = next_step() == nullptr;
  // With steps still to come that nobody sends, the warm-up never ends: there is nothing beyond the last step to
  // secure.
  if (no_step && !diloco_active()) last_wanted_ = false;
  if (gave_up_) return true;
  const bool anyone = std::ranges::any_of(members(), [](const auto& entry) { return entry.second->ready(); });
  return no_step && (!anyone || !last_wanted_);  // a step waits for whoever comes
}

void StageRounds::give_up() {
  gave_up_ = true;
  if (round_) abandon("the run ends without waiting for it");
}

}  // namespace shoal
