// What others ask of the ledger; changes nothing.
#include <algorithm>

#include "router/ledger.h"

namespace shoal {

std::string_view name_of(EntryState state) {
  switch (state) {
    case EntryState::kArriving:
      return "arriving";
    case EntryState::kReady:
      return "ready";
    case EntryState::kForward:
      return "forward";
    case EntryState::kBelow:
      return "below";
    case EntryState::kQueued:
      return "queued";
    case EntryState::kBackward:
      return "backward";
    case EntryState::kCounted:
      return "counted";
    case EntryState::kUndoing:
      return "undoing";
    case EntryState::kCommitted:
      return "committed";
  }
  return "?";
}

HopPhase Ledger::phase_of(const Entry& e) const {
  switch (e.state) {
    case EntryState::kArriving:
    case EntryState::kReady:
    case EntryState::kForward:
      return HopPhase::kForward;
    case EntryState::kBelow:
      return courier_.stranded(e.microbatch) ? HopPhase::kStranded : HopPhase::kBelow;
    // A backward that waits for a window waits for commits, not for the device: no deadline runs.
    case EntryState::kQueued:
      return windows_.has_room(e.step) ? HopPhase::kBackward : HopPhase::kBelow;
    default:
      return HopPhase::kBackward;
  }
}

std::map<Session, std::vector<ProgressItem>> Ledger::progress() const {
  std::map<Session, std::vector<ProgressItem>> result;
  for (const EntrySerial serial : active_) {
    const Entry& e = *find(serial);
    for (const auto& [lease, claim] : e.leases) result[claim.holder].push_back({lease, phase_of(e)});
  }
  return result;
}

const Ledger::Entry* Ledger::find(EntrySerial serial) const {
  const auto it = entries_.find(serial);
  return it == entries_.end() ? nullptr : &it->second;
}

const Ledger::Entry* Ledger::find_live(const MicrobatchId& microbatch) const {
  const auto it = live_.find(microbatch);
  return it == live_.end() ? nullptr : find(it->second);
}

Ledger::Entry* Ledger::entry(EntrySerial serial) { return const_cast<Entry*>(find(serial)); }
Ledger::Entry* Ledger::live_entry(const MicrobatchId& microbatch) { return const_cast<Entry*>(find_live(microbatch)); }

std::size_t Ledger::live() const { return active_.size(); }

std::uint64_t Ledger::low_of(std::uint64_t trainer) const {
  const auto it = low_.find(trainer);
  return it == low_.end() ? 0 : it->second;
}

std::uint32_t Ledger::queue_ms() const {
  return static_cast<std::uint32_t>(static_cast<double>(queued()) * job_us_ / 1000);
}

// A backward without room in a window waits for COMMITs, a forward that is too early for a round: not for the device.
std::size_t Ledger::queued() const {
  return static_cast<std::size_t>(std::count_if(active_.begin(), active_.end(), [this](EntrySerial serial) {
    const Entry& e = *find(serial);
    if (e.state == EntryState::kReady) return !too_early(e);
    if (e.state == EntryState::kQueued) return windows_.has_room(e.step);
    return e.state == EntryState::kForward || e.state == EntryState::kBackward;
  }));
}

bool Ledger::quiet() const { return live() == 0 && windows_.empty() && settle_next_.empty() && drop_next_.empty(); }

bool Ledger::step_ready(StepId step) const {
  if (!steps_.contains(step)) return false;
  return std::none_of(active_.begin(), active_.end(), [&](EntrySerial serial) { return find(serial)->step == step; });
}

DelayHistogram Ledger::delays(WindowSlot slot) const {
  DelayHistogram histogram;
  if (const Windows::Window* window = windows_.at(slot))
    for (const auto& [serial, part] : window->entries) {
      const Entry* e = find(serial);
      SHOAL_CHECK(e != nullptr);  // what a window holds is forgotten behind its step
      histogram.add(steps_made_ - e->first_step, part.targets);
    }
  return histogram;
}

}  // namespace shoal
