// Log, lists and messages of the authority.
#include "authority/authority.h"

#include <algorithm>

#include "authority/membership.h"
#include "events/delay.h"
#include "transport/envelope.h"

namespace shoal {
namespace {

std::optional<double> lower_median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Result<std::unique_ptr<Authority>> Authority::open(AuthorityOptions options, AuthorityPort& port, EventLoop& loop,
                                                   AuthorityLog log) {
  std::unique_ptr<Authority> authority(new Authority(std::move(options), port, loop, std::move(log.file)));
  SHOAL_TRY(authority->restore(log.records));
  return authority;
}

Authority::Authority(AuthorityOptions options, AuthorityPort& port, EventLoop& loop, std::unique_ptr<RecordLog> log)
    : options_(std::move(options)),
      port_(port),
      loop_(loop),
      log_(std::move(log)),
      lists_(options_.run, [this](ByteView bytes) { return port_.sign(bytes); }) {
  for (std::uint16_t i = 0; i < options_.stages; ++i) {
    stages_.emplace_back();
    stages_.back().stage = StageId(i);
    stages_.back().last_commit_at = loop_.now();
  }
}

Authority::~Authority() {
  for (const TimerId timer : {tick_timer_, list_timer_})
    if (timer != 0) loop_.cancel(timer);
  for (StageState& stage : stages_)
    if (stage.round) stop_round_timers(*stage.round);
}

void Authority::sync_log(std::function<void(Status)> done) { log_->sync(lifetime_.guard(std::move(done))); }

void Authority::decide(const LogRecord& record, std::function<void()> effect) {
  if (failed_) return;
  Result<Bytes> packed = pack_log_record(record);
  if (!packed.ok()) return fail_log(packed.error());
  log_->append(*packed);
  ++undurable_;
  syncs_.push_back(loop_.now());
  log_->sync(lifetime_.guard([this, effect = std::move(effect)](const Status& synced) {
    if (failed_) return;
    if (!synced.ok()) return fail_log(synced.error());
    --undurable_;
    syncs_.pop_front();
    effect();
  }));
}

void Authority::fail_log(const Error& error) {
  failed_ = true;
  port_.on_log_failure(error);
}

void Authority::send_to_session(const Session& session, Message message) {
  const auto at = members_.find(session);
  if (at != members_.end()) port_.send(at->second.member.peer, std::move(message));
}

StageState* Authority::stage_of(StageId stage) {
  return stage.value < stages_.size() ? &stages_[stage.value] : nullptr;
}

MemberState& Authority::place_member(const Session& session, StageId stage) {
  const auto [at, is_new] = members_.try_emplace(session);
  if (!is_new) stages_[at->second.stage.value].members.erase(session);
  at->second.stage = stage;
  return *(stages_[stage.value].members[session] = &at->second);
}

void Authority::drop_member(const Session& session) {
  const auto at = members_.find(session);
  SHOAL_CHECK(at != members_.end());
  stages_[at->second.stage.value].members.erase(session);
  members_.erase(at);
}

void Authority::on_message(const Remote& from, const Message& message) {
  if (failed_ || !started_) return;
  if (const auto* join = std::get_if<JoinRequest>(&message)) return on_join(from, *join);
  if (const auto* beat = std::get_if<Beat>(&message)) return on_beat(from, *beat);
  if (const auto* report = std::get_if<RoundReport>(&message)) return on_report(from, *report);
  if (const auto* leave = std::get_if<Leave>(&message)) return on_leave(from, *leave);
  if (const auto* query = std::get_if<MembersQuery>(&message)) {
    if (const auto at = members_.find(from.session); at != members_.end())
      send_list(at->second, query->epoch, query->id);
    return;
  }
  if (ended_ && std::holds_alternative<Goodbye>(message)) return void(unheard_.erase(from.session));
  if (std::holds_alternative<Goodbye>(message))
    return end_session(from.session, std::string(kLeft) + " without waiting for a round", false);
  if (const auto* step = std::get_if<Step>(&message); step && from.role == PeerRole::kTrainer) return on_step(*step);
}

void Authority::on_link_up(const Remote& from) {
  if (from.role == PeerRole::kPeer) linked_[from.peer] = from.session;
  if (!started_ || failed_) return;
  if (over_.count(from.session)) return tell_over(from);
  if (ended_) port_.send(from.peer, end_);
  const auto at = members_.find(from.session);
  if (at == members_.end()) return;
  at->second.list_sent = false;  // it asks when it sees that it missed one
  StageState& stage = *stage_of(at->second.stage);
  if (stage.last_abandon) port_.send(from.peer, *stage.last_abandon);
  at->second.commit_sent_at = {};
  repeat_what_it_missed(at->second);
}

void Authority::on_link_down(const Remote& from) {
  const auto at = linked_.find(from.peer);
  if (at != linked_.end() && at->second == from.session) linked_.erase(at);
  if (const auto member = members_.find(from.session); member != members_.end()) member->second.list_sent = false;
}

void Authority::arm_tick() {
  const Duration period = std::min<Duration>(options_.membership / 20, 250ms);
  tick_timer_ = loop_.after(period, [this] { tick(); });
}

void Authority::tick() {
  loop_.name_callback("authority tick");
  if (failed_) return;
  const TimePoint now = loop_.now();
  const Duration passed = now - std::exchange(last_tick_, now);
  if (passed > options_.membership / 2) {  // we slept, not they
    for (auto& [session, member] : members_) member.heard_at = now;
  } else if (sync_overdue(now)) {
    forgive(passed);
  } else {
    if (passed > kSlept) forgive(passed - kSlept);  // one who is always late sees who is gone nevertheless
    check_memberships(now);
  }
  for (StageState& stage : stages_) {
    maybe_restore(stage, now);
    maybe_open(stage);
  }
  if (list_dirty_ && undurable_ == 0) publish(build_list());
  check_finished();
  arm_tick();
}

void Authority::forgive(Duration silence) {
  for (auto& [session, member] : members_) member.heard_at = std::min(loop_.now(), member.heard_at + silence);
}

bool Authority::sync_overdue(TimePoint now) {
  const Duration waited = syncs_.empty() ? Duration::zero() : now - syncs_.front();
  if (waited < kSyncOverdue) return false;
  if (now >= next_sync_notice_) {
    next_sync_notice_ = now + kSyncSaidAgain;
    port_.on_slow_log(waited);
  }
  return true;
}

void Authority::end(const std::string& reason) {
  ended_ = true;
  end_ = End{reason, port_.sign(end_text(options_.run, reason))};
  for (const auto& [session, member] : members_) unheard_.insert(session);
  std::set<PeerId> peers;
  for (const auto& [peer, session] : linked_) peers.insert(peer);
  for (const auto& [session, member] : members_) peers.insert(member.member.peer);
  for (const PeerId& peer : peers) port_.send(peer, end_);
}

std::vector<StageStatus> Authority::status() const {
  std::vector<StageStatus> all;
  for (const StageState& stage : stages_) {
    StageStatus one;
    one.stage = stage.stage;
    one.secured = stage.secured;
    one.version = stage.version;
    std::vector<double> delays;
    for (const auto& [session, member] : stage.members) {
      ++one.members;
      one.serving += member->member.serving ? 1 : 0;
      if (member->ahead) one.ahead.push_back(session);
      if (member->member.serving && member->stranded) one.stranded.push_back(session);
      one.holders += member->ready && member->version == stage.version ? 1 : 0;
      if (!member->member.serving || member->steps < kDelayWindows) continue;
      delays.push_back(member->delay);
    }
    if (stage.missing_since) {
      one.back_to = restorable(stage);
      one.back_in = std::max(Duration(0), *stage.missing_since + options_.restore_after - loop_.now());
    }
    one.delay = lower_median(std::move(delays));
    if (stage.last_commit)
      for (const Secured& secured : stage.last_commit->secured) one.last_members.push_back(secured.session);
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<MemberLife> Authority::lives() const {
  std::vector<MemberLife> all;
  for (const auto& [session, member] : members_)
    all.push_back({session, member.stage, member.member.serving, member.leaving, loop_.now() - member.heard_at});
  return all;
}

}  // namespace shoal
