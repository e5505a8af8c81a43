#include "transport/relay/relay_book.h"

#include <algorithm>

namespace shoal {
namespace {

std::string text_of(const PeerId& peer) { return {peer.bytes.begin(), peer.bytes.end()}; }

}  // namespace

Result<std::vector<RelayConnection>> RelayBook::follow(const RunId& run, const PeerId& open,
                                                       const std::vector<PeerId>& members) {
  if (!runs_.contains(run) && runs_.size() >= kRelayRunsMax)
    return make_error(ErrorCode::kBusy, "this relay serves " + std::to_string(kRelayRunsMax) + " runs already");
  Run& now = runs_[run];
  now.open = open;
  now.members = {members.begin(), members.end()};
  now.members.insert(open);
  return without(run);
}

std::vector<RelayConnection> RelayBook::without(const RunId& run) {
  const auto found = runs_.find(run);
  const auto lists = [&](const PeerId& peer) { return found != runs_.end() && found->second.lists(peer); };
  std::vector<RelayConnection> ended;
  if (found != runs_.end())
    for (const auto& [peer, home] : found->second.homes)
      if (!lists(peer)) ended.push_back(home);
  for (auto& [caller, line] : lines_) {
    if (line.run != run) continue;
    const bool stays = lists(line.callee) && (lists(line.caller) || !line.on_list);
    if (!stays) ended.insert(ended.end(), {caller, line.answerer});
    line.on_list |= lists(line.caller);
  }
  std::erase(ended, 0u);
  return ended;
}

RelayVerdict RelayBook::may_register(const RelayHome& home, const std::string& party) const {
  const auto run = runs_.find(home.run);
  if (home.kind == RelayKind::kRun) {
    const auto theirs =
        std::count_if(runs_.begin(), runs_.end(), [&](const auto& r) { return r.second.party == party; });
    const bool full = runs_.size() >= kRelayRunsMax || theirs >= static_cast<std::ptrdiff_t>(kRelayRunsPerPartyMax);
    return run == runs_.end() && full ? RelayVerdict::kTooMany : RelayVerdict::kJoined;
  }
  if (run == runs_.end()) return RelayVerdict::kRunUnknown;
  if (!run->second.lists(home.key)) return RelayVerdict::kNotListed;
  const bool full = run->second.homes.size() >= kRelayHomesMax && !run->second.homes.contains(home.key);
  return full ? RelayVerdict::kTooMany : RelayVerdict::kJoined;
}

RelayBook::Registered RelayBook::register_home(RelayConnection connection, const RelayHome& home,
                                               const std::string& party) {
  const RelayVerdict verdict = may_register(home, party);
  if (verdict != RelayVerdict::kJoined) return {verdict};
  Run& run = runs_[home.run];
  if (home.kind == RelayKind::kRegister) return {verdict, std::exchange(run.homes[home.key], connection)};
  run.party = party;
  run.over_at.reset();
  return {verdict, std::exchange(run.teller, connection)};
}

RelayVerdict RelayBook::room_for(const RelayCall& call, bool on_list, const std::string& party) const {
  std::size_t of_run = 0, of_caller = 0, of_callee = 0, strangers = 0, of_party = 0;
  for (const auto& [connection, line] : lines_) {
    if (line.run == call.run) {
      ++of_run;
      of_caller += line.caller == call.caller || line.callee == call.caller ? 1 : 0;
      of_callee += line.caller == call.callee || line.callee == call.callee ? 1 : 0;
    }
    strangers += line.on_list ? 0 : 1;
    of_party += !line.on_list && line.party == party ? 1 : 0;
  }
  const PeerId& open = runs_.at(call.run).open;
  const bool full = lines_.size() >= kRelayLanesMax || of_run >= kRelayLanesPerRunMax ||
                    (of_caller >= kRelayLanesPerMemberMax && call.caller != open) ||
                    (of_callee >= kRelayLanesPerMemberMax && call.callee != open) ||
                    (!on_list && (strangers >= kRelayStrangerLanesMax || of_party >= kRelayStrangerLanesPerPartyMax));
  return full ? RelayVerdict::kTooMany : RelayVerdict::kJoined;
}

RelayVerdict RelayBook::may_call(const RelayCall& call, const std::string& party) const {
  const auto found = runs_.find(call.run);
  if (found == runs_.end()) return RelayVerdict::kRunUnknown;
  const Run& run = found->second;
  const bool on_list = run.lists(call.caller);
  if (call.caller == call.callee || !run.lists(call.callee) || (!on_list && call.callee != run.open))
    return RelayVerdict::kNotListed;
  if (!run.homes.contains(call.callee)) return RelayVerdict::kNotRegistered;
  if (names_.contains(call.call_name)) return RelayVerdict::kMalformed;
  return room_for(call, on_list, party);
}

RelayBook::Called RelayBook::call(RelayConnection connection, const RelayCall& call, const std::string& party,
                                  const RelayToken& told, TimePoint now) {
  const RelayVerdict verdict = may_call(call, party);
  if (verdict != RelayVerdict::kJoined) return {verdict};
  const Run& run = runs_.at(call.run);
  const bool on_list = run.lists(call.caller);
  AddressPace& callees = !on_list ? strangers_ : call.callee == run.open ? open_callees_ : callees_;
  // Keys cost a stranger nothing: its address counts. A caller that comes too often takes nothing of the callee's.
  if (!pairs_.take(text_of(call.callee) + (on_list ? text_of(call.caller) : party), now) ||
      !callees.take(text_of(call.callee), now))
    return {RelayVerdict::kRate};
  names_.insert(call.call_name);
  names_in_order_.push_back(call.call_name);
  if (names_in_order_.size() > kRelayNamesKept) {
    names_.erase(names_in_order_.front());
    names_in_order_.pop_front();
  }
  lines_[connection] = {call.run, call.caller, call.callee, call.lane, on_list, party, told, now + kRelayAnswerTime, 0};
  waiting_[told] = connection;
  return {verdict, run.homes.at(call.callee)};
}

RelayBook::Answered RelayBook::answer(RelayConnection connection, const RelayToken& told) {
  const auto found = waiting_.find(told);
  if (found == waiting_.end()) return {RelayVerdict::kNoAnswer};
  const RelayConnection caller = found->second;
  waiting_.erase(found);
  Line& line = lines_.at(caller);
  line.answerer = connection;
  answerers_[connection] = caller;
  return {RelayVerdict::kJoined, caller, line.lane};
}

RelayBook::Late RelayBook::late(TimePoint now) {
  Late late;
  for (const auto& [told, caller] : waiting_)
    if (lines_.at(caller).until <= now) late.callers.push_back(caller);
  for (auto run = runs_.begin(); run != runs_.end();) {
    if (!run->second.over_at || *run->second.over_at > now) {
      ++run;
      continue;
    }
    for (const auto& [peer, home] : run->second.homes) late.ended.push_back(home);
    const RunId over = run->first;
    run = runs_.erase(run);
    const std::vector<RelayConnection> lines = without(over);
    late.ended.insert(late.ended.end(), lines.begin(), lines.end());
  }
  return late;
}

RelayConnection RelayBook::gone(RelayConnection connection, TimePoint now) {
  for (auto& [id, run] : runs_) {
    std::erase_if(run.homes, [&](const auto& home) { return home.second == connection; });
    if (run.teller != connection) continue;
    run.teller = 0;
    run.over_at = now + kRelayRunGrace;
  }
  RelayConnection caller = connection, other = 0;
  if (const auto answered = answerers_.find(connection); answered != answerers_.end())
    other = caller = answered->second;
  const auto line = lines_.find(caller);
  if (line == lines_.end()) return 0;
  if (caller == connection) other = line->second.answerer;
  waiting_.erase(line->second.told);
  answerers_.erase(line->second.answerer);
  lines_.erase(line);
  return other;
}

std::size_t RelayBook::homes() const {
  std::size_t all = 0;
  for (const auto& [id, run] : runs_) all += run.homes.size();
  return all;
}

std::size_t RelayBook::pairs() const {
  std::set<std::pair<PeerId, PeerId>> pairs;
  for (const auto& [connection, line] : lines_)
    if (line.answerer != 0) pairs.emplace(std::min(line.caller, line.callee), std::max(line.caller, line.callee));
  return pairs.size();
}

}  // namespace shoal
