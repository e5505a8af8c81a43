#include "authority/membership.h"

#include <algorithm>

#include "authority/list_change.h"
#include "common/crypto/sign.h"
#include "state/state_transfer.h"
#include "transport/signed_list.h"

namespace shoal {

std::vector<std::uint8_t> end_text(const RunId& run, const std::string& reason) {
  const std::string text = "shoal end 1\n" + std::string(run.bytes.begin(), run.bytes.end()) + reason;
  return {text.begin(), text.end()};
}

Status check_end(const End& end, const RunId& run) {
  Signature signature;
  if (end.signature.size() == signature.size()) {
    std::copy(end.signature.begin(), end.signature.end(), signature.begin());
    if (verify(as_peer(run), end_text(run, end.reason), signature)) return {};
  }
  return make_error(ErrorCode::kCorrupt, "an end of the run that the run's key did not sign");
}

struct Membership::State {
  State(MembershipOptions given, MembershipPort& port, EventLoop& loop)
      : options(std::move(given)), port(port), loop(loop) {}
  ~State() { stop_timer(); }

  MembershipOptions options;
  MembershipPort& port;
  EventLoop& loop;
  Phase phase = Phase::kIdle;
  std::optional<StageId> stage;
  std::optional<MemberList> list;
  std::uint64_t id = 0;     // of the list
  TimePoint next_ask{};     // for a list
  bool was_member = false;  // the list has held us
  bool round_wanted = false;
  TimerId timer = 0;

  void stop_timer() {
    if (timer != 0) loop.cancel(timer);
    timer = 0;
  }

  void arm(Duration delay) {
    stop_timer();
    timer = loop.after(delay, [this] {
      loop.name_callback("membership tick");
      timer = 0;
      say();
    });
  }

  // What is to be said regularly: the request until it is answered, then beats.
  void say() {
    if (phase == Phase::kIdle || phase == Phase::kOver) return;
    if (phase == Phase::kJoining) {
      arm(options.join_retry);
      return port.send_to_authority(options.request);
    }
    arm(options.beat_period);
    Beat beat = port.make_beat();
    beat.leaving = beat.leaving || phase == Phase::kLeaving;
    port.send_to_authority(std::move(beat));
    if (phase == Phase::kLeaving) port.send_to_authority(Leave{round_wanted});
  }

  void over() {
    phase = Phase::kOver;
    stop_timer();
  }

  Status take(const Fenced& message) {
    if (message.session == options.self) fenced(message.reason);
    return {};
  }

  Status take(const Goodbye&) {
    if (phase != Phase::kLeaving) return {};
    over();
    port.on_goodbye();
    return {};
  }

  Status take(const End& end) {
    over();
    port.on_end(end.reason);
    return {};
  }

  void fenced(const std::string& reason) {
    over();
    port.on_fenced(reason);
  }

  Status take(const JoinAnswer& answer) {
    if (phase == Phase::kJoining) answered(answer);
    return {};
  }

  void answered(const JoinAnswer& answer) {
    if (answer.unreachable && !answer.accepted) {
      arm(options.dial_retry);
      return port.on_unreachable(answer.reason);
    }
    if (answer.later && !answer.accepted) {
      arm(options.dial_retry);
      return port.on_later(answer.reason);
    }
    if (!answer.accepted) {
      over();
      return port.on_refused(answer.reason);
    }
    phase = Phase::kMember;
    stage = answer.stage;
    arm(options.beat_period);
    port.on_joined(answer);
  }

  std::optional<Epoch> known() const { return list ? std::optional(list->epoch) : std::nullopt; }
  static Status unless_stale(const Error& error) {
    return error.code == ErrorCode::kStale ? Status::success() : Status(error);
  }

  Status take(const Members& members) {
    auto next = open_member_list(members, options.run, known());
    if (!next.ok()) return unless_stale(next.error());
    follow(std::move(*next), list_id(members.body));
    return Status::success();
  }

  Status take(const MembersChange& message) {
    const auto opened = open_list_change(message, options.run, known());
    if (!opened.ok()) return unless_stale(opened.error());
    const ListChange& change = *opened;
    if (!list || change.base != list->epoch || change.base_id != id) {
      ask(list ? list->epoch : Epoch(0), id);
      return Status::success();
    }
    MemberList next = *list;
    if (const Status applied = apply_change(change, next); !applied.ok()) {
      ask(Epoch(0), 0);
      return applied;
    }
    follow(std::move(next), change.id);
    return Status::success();
  }

  void ask(Epoch epoch, std::uint64_t of) {
    if ((phase != Phase::kMember && phase != Phase::kLeaving) || loop.now() < next_ask) return;
    next_ask = loop.now() + options.list_retry;
    port.send_to_authority(MembersQuery{epoch, of});
  }

  Status take(const BeatAck& ack) {
    const Epoch ours = list ? list->epoch : Epoch(0);
    // What is told was durable before. So a lower one than ours means that an older log was put back: it is told there.
    if (ack.list_epoch > ours || (ack.list_epoch.value > 0 && ack.list_epoch < ours)) ask(ours, id);
    port.on_status(ack);
    return {};
  }

  void follow(MemberList next, std::uint64_t next_id) {
    id = next_id;
    bool holds_us = false;
    for (const StageMembers& entry : next.stages)
      for (const Member& member : entry.members) holds_us = holds_us || member.session == options.self;
    list = std::move(next);
    const bool dropped = was_member && !holds_us && phase == Phase::kMember;
    was_member = was_member || holds_us;
    port.on_members(*list);
    if (dropped && phase == Phase::kMember) fenced("the newest member list does not hold this session");
  }
};

Membership::Membership(MembershipOptions options, MembershipPort& port, EventLoop& loop)
    : state_(std::make_unique<State>(std::move(options), port, loop)) {}
Membership::~Membership() = default;

void Membership::start() {
  if (state_->phase != Phase::kIdle) return;
  state_->phase = Phase::kJoining;
  state_->say();
}

void Membership::on_authority_up() { state_->say(); }

Status Membership::on_message(const MembershipMessage& message) {
  if (state_->phase == Phase::kOver || state_->phase == Phase::kIdle) return Status::success();
  return std::visit([this](const auto& m) { return state_->take(m); }, message);
}

void Membership::beat_now() {
  if (state_->phase == Phase::kMember || state_->phase == Phase::kLeaving) state_->say();
}

void Membership::leave(bool round_wanted) {
  if (state_->phase != Phase::kMember && state_->phase != Phase::kLeaving) return;
  state_->phase = Phase::kLeaving;
  state_->round_wanted = round_wanted;
  state_->say();
}

void Membership::leave_at_once() {
  if (state_->phase == Phase::kOver || state_->phase == Phase::kIdle) return;
  state_->port.send_to_authority(Goodbye{});
  state_->over();
}

void Membership::stop() { state_->over(); }

Membership::Phase Membership::phase() const { return state_->phase; }
std::optional<StageId> Membership::stage() const { return state_->stage; }
const std::optional<MemberList>& Membership::list() const { return state_->list; }

std::optional<StageId> Membership::empty_stage() const {
  if (!state_->list) return std::nullopt;
  const auto empty = std::ranges::find_if(state_->list->stages, [](const StageMembers& stage) {
    return std::ranges::none_of(stage.members, &Member::serving);
  });
  return empty == state_->list->stages.end() ? std::nullopt : std::optional(empty->stage);
}

const StageMembers* Membership::stage_members() const {
  if (!state_->stage || !state_->list) return nullptr;
  const auto found = std::ranges::find(state_->list->stages, *state_->stage, &StageMembers::stage);
  return found == state_->list->stages.end() ? nullptr : &*found;
}

std::vector<PeerId> Membership::donors() const {
  std::vector<PeerId> donors;
  if (const StageMembers* stage = stage_members())
    for (const Member& member : stage->members)
      if (may_donate(member) && member.session != state_->options.self) donors.push_back(member.peer);
  return donors;
}

bool Membership::last_holder() const {
  const StageMembers* stage = stage_members();
  // What never secured a round has no anchor that could be lost: every member begins from the seed, or from the first
  // weights.
  return stage != nullptr && std::ranges::none_of(stage->members, [&](const Member& member) {
           return member.session != state_->options.self && (may_donate(member) || !stage->secured);
         });
}

}  // namespace shoal
