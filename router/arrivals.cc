#include "router/arrivals.h"

#include <algorithm>
#include <utility>

#include "common/log.h"

namespace shoal {

namespace {
constexpr Duration kSlept = 1s;  // between two ticks
}  // namespace

bool Arrivals::may_announce(const Session& holder) const {
  const auto announced = static_cast<std::size_t>(
      std::count_if(awaited_.begin(), awaited_.end(), [&](const auto& item) { return item.second.holder == holder; }));
  const auto at = holders_.find(holder);
  if (at != holders_.end() && at->second.late > 0)
    return announced < std::max<std::size_t>(1, options_.credits >> (1 + at->second.late));
  const bool others_claim = holders_.size() > (at == holders_.end() ? 0u : 1u);
  return announced <
         (others_claim ? std::max<std::size_t>(2, options_.credits / 2) : options_.credits + options_.recovery_credits);
}

void Arrivals::await(EntrySerial serial, const Session& holder, TransferId transfer, TimePoint now) {
  awaited_[serial] = {holder, transfer, now};
  std::erase_if(holders_,
                [&](const auto& other) { return other.first.peer_tag == holder.peer_tag && other.first != holder; });
  holders_.try_emplace(holder);
}

std::optional<TransferId> Arrivals::transfer_of(EntrySerial serial) const {
  const auto it = awaited_.find(serial);
  return it == awaited_.end() ? std::nullopt : std::optional(it->second.transfer);
}

std::optional<EntrySerial> Arrivals::serial_of(const Session& holder, TransferId transfer) const {
  for (const auto& [serial, awaited] : awaited_)
    if (awaited.holder == holder && awaited.transfer == transfer) return serial;
  return std::nullopt;
}

Duration Arrivals::waited(const Awaited& awaited, TimePoint now) const {
  const auto holder = holders_.find(awaited.holder);
  return holder == holders_.end() ? Duration::zero() : now - std::max(awaited.since, holder->second.last);
}

Duration Arrivals::patience(const Holder& holder) const {
  if (holder.slowest == Duration::zero()) return std::max<Duration>(kUnknown, options_.lease);
  return std::max(options_.lease, std::min<Duration>(kFactor * holder.slowest, kMax));
}

void Arrivals::whole(EntrySerial serial, TimePoint now) {
  const auto awaited = awaited_.extract(serial);
  if (!awaited) return;
  const auto at = holders_.find(awaited.mapped().holder);
  if (at == holders_.end()) return;
  Holder& holder = at->second;
  holder.slowest = std::max({holder.slowest, Duration(1ms), waited(awaited.mapped(), now)});
  holder.last = now;
  if (holder.late > 0) --holder.late;
}

std::vector<EntrySerial> Arrivals::overdue(TimePoint now) {
  if (now - std::exchange(ticked_, now) > kSlept)
    for (auto& [session, holder] : holders_) holder.last = now;
  std::vector<EntrySerial> given_up;
  for (auto& [session, holder] : holders_) {
    const Duration bound = patience(holder);
    std::size_t late = 0;
    Duration longest{};
    for (const auto& [serial, awaited] : awaited_) {
      if (awaited.holder != session || waited(awaited, now) <= bound) continue;
      ++late;
      longest = std::max(longest, waited(awaited, now));
      given_up.push_back(serial);
    }
    if (late == 0) continue;
    holder.late = std::min(holder.late + 1, kLateMax);
    // An honest one sends again what did not fit into that time: its next frames have more.
    holder.slowest = std::max(holder.slowest, std::min<Duration>(longest, kMax / kFactor));
    if (holder.late == 1)
      log_warning("session ", short_name(session), " announced the frames of ", late,
                  " microbatches and did not send them: until it sends some it has few of the credits here");
  }
  return given_up;
}

}  // namespace shoal
