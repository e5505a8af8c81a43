#include "transport/relay/relay_desk.h"

#include <sys/epoll.h>

#include <algorithm>

#include "common/os/descriptors.h"
#include "transport/signed_list.h"

namespace shoal {
namespace {

constexpr int kTurnsAtOnce = 64;  // then others are heard
constexpr std::size_t kDescriptorsShare = 16;

std::size_t half_open_max() {
  return std::min<std::size_t>(kRelayHalfOpenMax, std::max<std::size_t>(1, descriptors_max() / kDescriptorsShare));
}

}  // namespace

RelayDesk::RelayDesk(const RelayOptions& options, int epoll)
    : options_(options),
      epoll_(epoll),
      half_open_(half_open_max(), kRelayHalfOpenPerPartyMax),
      arrivals_(limits::kAcceptedPerAddressSecond, limits::kAcceptedPerAddressBurst),
      shares_(options.bytes_per_second),
      scratch_(ByteShares::kQuantum) {}

void RelayDesk::take(Descriptor socket, const std::string& party, TimePoint now) {
  if (!arrivals_.take(party, now)) {
    ++stats_.verdicts[static_cast<std::size_t>(RelayVerdict::kRate)];
    return;
  }
  const RelayConnection id = next_++;
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket.get(), &event) != 0) return;
  Connection& c =
      connections_.try_emplace(id, Connection{.socket = RelaySocket(std::move(socket)), .party = party}).first->second;
  c.socket.await(kRelayPreambleBytes);
  if (const auto crowded = half_open_.enter(id, party, now)) refuse(*crowded, RelayVerdict::kTooMany, now);
}

void RelayDesk::on_event(RelayConnection id, std::uint32_t events, TimePoint now) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  RelaySocket& socket = found->second.socket;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) socket.readable = socket.hung_up = true;
  if ((events & EPOLLIN) != 0) socket.readable = true;
  if ((events & EPOLLOUT) != 0 && !socket.say_held()) return end(id, now);
  advance(id, now);
}

void RelayDesk::advance(RelayConnection id, TimePoint now) {
  Connection& c = connections_.at(id);
  if (c.stage == Stage::kJoined) return offer(c);
  if (c.stage == Stage::kEnding) c.socket.say_no_more();
  if (c.stage == Stage::kEnding || c.stage == Stage::kCalling) {
    if (c.socket.hung_up) end(id, now);
    return;
  }
  while (c.socket.readable && c.stage < Stage::kCalling) {
    const RelaySocket::Heard heard = c.socket.hear();
    if (heard == RelaySocket::Heard::kOver) return end(id, now);
    if (heard == RelaySocket::Heard::kNotYet || !on_word(id, c, now)) return;
  }
}

bool RelayDesk::on_word(RelayConnection id, Connection& c, TimePoint now) {
  switch (c.stage) {
    case Stage::kPreamble:
      return on_preamble(id, c, now);
    case Stage::kWord:
      if (c.kind == RelayKind::kCall) return on_call(id, c, now);
      return c.kind == RelayKind::kAnswer ? on_answer(id, c, now) : on_home(id, c, now);
    case Stage::kProof:
      return on_proof(id, c, now);
    case Stage::kOpen:
      std::copy_n(c.socket.heard().begin(), c.open.bytes.size(), c.open.bytes.begin());
      c.stage = Stage::kTold;
      c.socket.await(kRelayPingBytes);
      return true;
    case Stage::kHome:
    case Stage::kTold:
      c.heard_at = now;
      if (is_relay_ping(c.socket.heard())) {
        if (!c.pings.take(now)) return refuse(id, RelayVerdict::kRate, now);
        c.socket.await(kRelayPingBytes);
        return true;
      }
      if (const auto size = parse_relay_list_head(c.socket.heard().first(kRelayListHeadBytes));
          size.ok() && c.stage == Stage::kTold) {
        c.socket.await_more(*size + kRelayListHeadBytes - kRelayPingBytes);
        c.stage = Stage::kList;
        return true;
      }
      return refuse(id, RelayVerdict::kMalformed, now);
    case Stage::kList:
      return on_list(id, c, now);
    default:
      return false;
  }
}

bool RelayDesk::on_preamble(RelayConnection id, Connection& c, TimePoint now) {
  const auto preamble = parse_relay_preamble(c.socket.heard());
  if (!preamble.ok()) return refuse(id, RelayVerdict::kMalformed, now);
  c.kind = preamble->kind;
  c.stage = Stage::kWord;
  c.socket.await_more(relay_word_bytes(c.kind) - kRelayPreambleBytes);
  return true;
}

bool RelayDesk::on_home(RelayConnection id, Connection& c, TimePoint now) {
  const auto home = parse_relay_home(c.socket.heard());
  if (!home.ok()) return refuse(id, RelayVerdict::kMalformed, now);
  if (home->kind == RelayKind::kRun && !options_.any_run) return refuse(id, RelayVerdict::kRunUnknown, now);
  if (const RelayVerdict verdict = book_.may_register(*home, c.party); verdict != RelayVerdict::kJoined)
    return refuse(id, verdict, now);
  c.home = *home;
  fill_randomly(c.nonce);
  c.stage = Stage::kProof;
  c.socket.await(Signature{}.size());
  if (c.socket.say(c.nonce)) return true;
  end(id, now);
  return false;
}

bool RelayDesk::on_proof(RelayConnection id, Connection& c, TimePoint now) {
  Signature signature;
  std::copy_n(c.socket.heard().begin(), signature.size(), signature.begin());
  if (!verify(c.home.key, home_text(c.home, c.nonce), signature)) return refuse(id, RelayVerdict::kNotListed, now);
  const RelayBook::Registered registered = book_.register_home(id, c.home, c.party);
  if (registered.verdict != RelayVerdict::kJoined) return refuse(id, registered.verdict, now);
  half_open_.leave(id);
  c.heard_at = c.pinged_at = now;
  const bool is_run = c.home.kind == RelayKind::kRun;
  c.stage = is_run ? Stage::kOpen : Stage::kHome;
  c.socket.await(is_run ? c.open.bytes.size() : kRelayPingBytes);
  if (registered.replaced != 0) end(registered.replaced, now);
  if (give(c, registered.verdict)) return true;
  end(id, now);
  return false;
}

bool RelayDesk::on_list(RelayConnection id, Connection& c, TimePoint now) {
  const auto members = parse_relay_list(c.socket.heard().subspan(kRelayListHeadBytes));
  if (!members.ok()) return refuse(id, RelayVerdict::kMalformed, now);
  if (!c.lists.take(now)) return refuse(id, RelayVerdict::kRate, now);
  const auto list = open_member_list(*members, c.home.run, c.epoch);
  if (!list.ok() && list.code() != ErrorCode::kStale) return refuse(id, RelayVerdict::kMalformed, now);
  c.stage = Stage::kTold;
  c.heard_at = now;
  c.socket.await(kRelayPingBytes);
  if (!list.ok()) return true;
  c.epoch = list->epoch;
  follow(c.home.run, c.open, peers_of(*list), now);
  return connections_.contains(id);
}

bool RelayDesk::on_call(RelayConnection id, Connection& c, TimePoint now) {
  const auto call = parse_relay_call(c.socket.heard());
  if (!call.ok()) return refuse(id, RelayVerdict::kMalformed, now);
  if (const RelayVerdict verdict = book_.may_call(*call, c.party); verdict != RelayVerdict::kJoined)
    return refuse(id, verdict, now);
  if (!verify(call->caller, call_text(*call), call->signature)) return refuse(id, RelayVerdict::kNotListed, now);
  RelayToken told;
  do {
    fill_randomly(told);
  } while (is_relay_ping(told));
  const RelayBook::Called called = book_.call(id, *call, c.party, told, now);
  if (called.verdict != RelayVerdict::kJoined) return refuse(id, called.verdict, now);
  c.stage = Stage::kCalling;
  if (connections_.at(called.home).socket.say(pack_relay_incoming({told, call->lane, call->caller}))) return true;
  end(called.home, now);
  return refuse(id, RelayVerdict::kNotRegistered, now);
}

bool RelayDesk::on_answer(RelayConnection id, Connection& c, TimePoint now) {
  const auto told = parse_relay_answer(c.socket.heard());
  if (!told.ok()) return refuse(id, RelayVerdict::kMalformed, now);
  const RelayBook::Answered answered = book_.answer(id, *told);
  if (answered.verdict != RelayVerdict::kJoined) return refuse(id, answered.verdict, now);
  Connection& caller = connections_.at(answered.caller);
  join(id, c, answered.caller, answered.caller, answered.lane);
  join(answered.caller, caller, id, answered.caller, answered.lane);
  if (!give(caller, RelayVerdict::kJoined) || !give(c, RelayVerdict::kJoined)) {
    end(id, now);
    return false;
  }
  offer(c);
  return true;
}

void RelayDesk::join(RelayConnection id, Connection& c, RelayConnection other, RelayConnection flow, Lane lane) {
  half_open_.leave(id);
  c.stage = Stage::kJoined;
  c.other = other;
  c.flow = flow;
  c.lane = lane;
}

// Either direction: what ended one's reading is often the other one's writing.
void RelayDesk::offer(Connection& c) {
  if (may_carry(c) || may_carry(connections_.at(c.other))) shares_.want(c.flow, c.lane);
}

bool RelayDesk::may_carry(const Connection& from) const {
  return from.socket.readable && !connections_.at(from.other).socket.holds();
}

std::optional<TimePoint> RelayDesk::carry(TimePoint now) {
  for (int i = 0; i < kTurnsAtOnce; ++i) {
    const auto turn = shares_.next(now);
    if (!turn) break;
    carry_turn(*turn, now);
  }
  return shares_.turn_at();
}

void RelayDesk::carry_turn(const ByteShares::Turn& turn, TimePoint now) {
  Connection& caller = connections_.at(turn.flow);
  Connection& answerer = connections_.at(caller.other);
  caller.first = !caller.first;
  const bool calls = may_carry(caller) && (caller.first || !may_carry(answerer));
  Connection& from = calls ? caller : answerer;
  if (!may_carry(from)) return shares_.rest(turn.flow);
  const std::size_t most = std::min(turn.bytes_max, scratch_.size());
  const long came = from.socket.take(MutableByteView(scratch_).first(most));
  if (came < 0) return end(calls ? turn.flow : caller.other, now);
  const auto bytes = static_cast<std::size_t>(came);
  shares_.carried(turn.flow, bytes);
  stats_.carried_bytes += bytes;
  if (bytes > 0 && !(calls ? answerer : caller).socket.say(ByteView(scratch_).first(bytes)))
    return end(calls ? caller.other : turn.flow, now);
  // A read that is not filled has found the end of what came; that it also hung up has no edge of its own any more.
  if (bytes < most && !from.socket.hung_up) from.socket.readable = false;
  if (!may_carry(caller) && !may_carry(answerer)) shares_.rest(turn.flow);
}

void RelayDesk::sweep(TimePoint now) {
  for (const RelayConnection id : half_open_.here_since_before(now - kRelayWordTime))
    if (connections_.at(id).stage != Stage::kCalling) refuse(id, RelayVerdict::kMalformed, now);
  const RelayBook::Late late = book_.late(now);
  for (const RelayConnection id : late.callers) refuse(id, RelayVerdict::kNoAnswer, now);
  std::vector<RelayConnection> over = late.ended;
  for (auto& [id, c] : connections_) {
    if (c.stage == Stage::kEnding && c.until <= now) over.push_back(id);
    if (!is_registered(c)) continue;
    const bool silent = now - c.heard_at > kRelaySilenceMax;
    const bool due = now - c.pinged_at >= kRelayPingPeriod;
    if (due) c.pinged_at = now;
    if (silent || (due && !c.socket.say(pack_relay_ping()))) over.push_back(id);
  }
  end_all(over, now);
}

void RelayDesk::follow(const RunId& run, const PeerId& open, const std::vector<PeerId>& members, TimePoint now) {
  if (const auto ended = book_.follow(run, open, members); ended.ok()) end_all(*ended, now);
}

RelayStats RelayDesk::stats() const {
  RelayStats stats = stats_;
  stats.runs = book_.runs();
  stats.homes = book_.homes();
  stats.pairs = book_.pairs();
  stats.half_open = half_open_.size();
  return stats;
}

bool RelayDesk::give(Connection& c, RelayVerdict verdict) {
  ++stats_.verdicts[static_cast<std::size_t>(verdict)];
  return c.socket.say(pack_relay_verdict(verdict));
}

bool RelayDesk::refuse(RelayConnection id, RelayVerdict verdict, TimePoint now) {
  if (const auto found = connections_.find(id); found != connections_.end()) give(found->second, verdict);
  end(id, now);
  return false;
}

void RelayDesk::end(RelayConnection id, TimePoint now) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& c = found->second;
  const bool in_book = is_registered(c) || c.stage == Stage::kCalling || c.stage == Stage::kJoined;
  if (c.stage == Stage::kJoined) shares_.rest(c.flow);
  const RelayConnection other = in_book ? book_.gone(id, now) : 0;
  half_open_.leave(id);
  connections_.erase(found);
  const auto left = connections_.find(other);
  if (left == connections_.end()) return;
  left->second.stage = Stage::kEnding;
  left->second.until = now + kRelayLingerTime;
  left->second.socket.say_no_more();
}

void RelayDesk::end_all(const std::vector<RelayConnection>& ids, TimePoint now) {
  for (const RelayConnection id : ids) end(id, now);
}

}  // namespace shoal
