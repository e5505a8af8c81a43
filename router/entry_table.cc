#include "router/entry_table.h"

namespace shoal {

const Entry* EntryTable::find(EntrySerial serial) const {
  const auto it = entries_.find(serial);
  return it == entries_.end() ? nullptr : &it->second;
}

const Entry* EntryTable::find_live(const MicrobatchId& microbatch) const {
  const auto it = live_.find(microbatch);
  return it == live_.end() ? nullptr : find(it->second);
}

Entry* EntryTable::claimed(const Lease& lease) {
  const auto it = by_lease_.find(lease);
  return it == by_lease_.end() ? nullptr : find(it->second);
}

std::vector<EntrySerial> EntryTable::below(const Low& low) const {
  std::vector<EntrySerial> old;
  for (auto it = live_.lower_bound({low.trainer, 0});
       it != live_.end() && it->first.trainer == low.trainer && it->first.serial < low.low; ++it)
    old.push_back(it->second);
  return old;
}

Entry& EntryTable::make(const EntryName& name, const MicrobatchId& microbatch) {
  Entry& e = entries_[name.serial];
  e.name = name;
  e.microbatch = microbatch;
  active_.insert(name.serial);
  live_[microbatch] = name.serial;
  return e;
}

void EntryTable::claim(Entry& e, const Lease& lease, const Claim& claim) {
  e.leases[lease] = claim;
  by_lease_[lease] = e.name.serial;
}

void EntryTable::unclaim(Entry& e, const Lease& lease) {
  by_lease_.erase(lease);
  e.leases.erase(lease);
}

std::map<Lease, Claim> EntryTable::unclaim_all(Entry& e) {
  for (const auto& [lease, claim] : e.leases) by_lease_.erase(lease);
  return std::exchange(e.leases, {});
}

void EntryTable::erase(Entry& e) {
  const EntrySerial serial = e.name.serial;
  unclaim_all(e);
  active_.erase(serial);
  if (const auto it = live_.find(e.microbatch); it != live_.end() && it->second == serial) live_.erase(it);
  entries_.erase(serial);
}

}  // namespace shoal
