// Frames that were announced and are on their way: how long they are waited for, and how many of a holder's may be. A
// header costs its sender nothing and takes a credit here.
#include <algorithm>

#include "common/log.h"
#include "router/ledger.h"

namespace shoal {

namespace {
constexpr Duration kSlept = 1s;  // between two ticks: what came meanwhile waits in our own sockets
}  // namespace

std::size_t Ledger::arriving_allowed(const Session& from) const {
  const auto at = arrivals_.find(from);
  if (at != arrivals_.end() && at->second.late > 0)
    return std::max<std::size_t>(1, options_.credits >> (1 + at->second.late));
  const bool others_claim = arrivals_.size() > (at == arrivals_.end() ? 0u : 1u);
  return others_claim ? std::max<std::size_t>(2, options_.credits / 2) : options_.credits + options_.recovery_credits;
}

std::size_t Ledger::arriving_of(const Session& from) const {
  return static_cast<std::size_t>(std::count_if(active_.begin(), active_.end(), [&](EntrySerial serial) {
    const Entry& e = *find(serial);
    return e.state == EntryState::kArriving && e.transfer != 0 && e.transfer_from == from;
  }));
}

Duration Ledger::arrival_patience(const Arrivals& arrivals) const {
  if (arrivals.slowest == Duration::zero()) return std::max<Duration>(kArrivalUnknown, options_.lease);
  return std::max(options_.lease, std::min<Duration>(kArrivalFactor * arrivals.slowest, kArrivalMax));
}

void Ledger::note_arrival(const Entry& e) {
  const auto at = arrivals_.find(e.transfer_from);
  if (at == arrivals_.end()) return;
  Arrivals& arrivals = at->second;
  arrivals.slowest = std::max({arrivals.slowest, Duration(1ms), now_ - std::max(e.awaited, arrivals.last)});
  arrivals.last = now_;
  if (arrivals.late > 0) --arrivals.late;
}

void Ledger::give_up_arrivals(TimePoint now) {
  now_ = now;
  if (now - std::exchange(ticked_, now) > kSlept)
    for (auto& [session, arrivals] : arrivals_) arrivals.last = now;
  std::map<Session, std::vector<EntrySerial>> late;
  for (const EntrySerial serial : active_) {
    const Entry& e = *find(serial);
    if (e.state != EntryState::kArriving || e.transfer == 0) continue;
    const auto at = arrivals_.find(e.transfer_from);
    if (at != arrivals_.end() && now - std::max(e.awaited, at->second.last) > arrival_patience(at->second))
      late[e.transfer_from].push_back(serial);
  }
  for (const auto& [session, serials] : late) {
    Arrivals& arrivals = arrivals_.at(session);
    arrivals.late = std::min(arrivals.late + 1, kLateMax);
    // An honest one sends again what did not fit into that time: its next frames have more.
    for (const EntrySerial serial : serials)
      arrivals.slowest = std::max(
          arrivals.slowest,
          std::min<Duration>(now - std::max(find(serial)->awaited, arrivals.last), kArrivalMax / kArrivalFactor));
    if (arrivals.late == 1)
      log_warning("session ", short_name(session), " announced the frames of ", serials.size(),
                  " microbatches and did not send them: until it sends some it has few of the credits here");
    for (const EntrySerial serial : serials) {
      Entry* e = entry(serial);
      if (e == nullptr || e->transfer == 0) continue;
      port_.refuse_frames(session, std::exchange(e->transfer, 0));
      inputs_lost(serial, BusyReason::kFailed);
    }
  }
}

}  // namespace shoal
