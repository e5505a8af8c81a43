// What others say of the trainer's decisions. A COMMIT is passed on in front of a Release that would undo the winner;
// it proves nothing, so it only buys the time in which the trainer is asked.
#include "router/ledger.h"

namespace shoal {

void Ledger::on_hearsay(const Commit& message, TimePoint now) {
  for (const CommitItem& item : message.items) {
    if (item.path.empty() || item.path.front().session != options_.self) continue;
    Entry* e = entry(item.path.front().serial);
    // Who passes it on had the gradient, so what it names is counted.
    if (e == nullptr || e->microbatch != item.microbatch || e->state != EntryState::kCounted || e->hearsay) continue;
    e->hearsay = Hearsay{now + options_.lease, now + options_.lease / 6, std::nullopt};
  }
}

void Ledger::ask_about_hearsay(TimePoint now) {
  std::vector<EntrySerial> unclaimed;
  for (const EntrySerial serial : active_) {
    Entry& e = *entry(serial);
    if (!e.hearsay || e.hearsay->over || e.state != EntryState::kCounted) continue;
    if (now >= e.hearsay->ask_at) {
      e.hearsay->ask_at = now + options_.lease / 6;
      if (port_.ask_trainer({e.microbatch, entry_name_of(e), {}}) && !e.hearsay->asked) e.hearsay->asked = now;
    }
    // While the trainer is away nothing is decided, and a question that left may be lost with its link: its COMMIT may
    // be repeated when it is heard again.
    if (!e.hearsay->asked || trainer_heard_ <= *e.hearsay->asked) e.hearsay->until = now + options_.lease;
    if (now < e.hearsay->until) continue;
    e.hearsay->over = true;
    if (e.leases.empty()) unclaimed.push_back(serial);
  }
  for (const EntrySerial serial : unclaimed) end_uncommitted(*entry(serial), "expired");
}

}  // namespace shoal
