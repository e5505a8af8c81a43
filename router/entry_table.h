#pragma once
// The entries of one peer, found by serial, by microbatch and by claim. What becomes of them: ledger.h.
// Thread: loop only.   Bounds: see ledger.h.
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "router/entry.h"

namespace shoal {

class EntryTable {
 public:
  // ---- look ----
  const Entry* find(EntrySerial serial) const;  // null: it is no more
  // At most one a microbatch, final ones until it is forgotten; null: there is none.
  const Entry* find_live(const MicrobatchId& microbatch) const;
  Entry* find(EntrySerial serial) { return const_cast<Entry*>(std::as_const(*this).find(serial)); }
  Entry* find_live(const MicrobatchId& microbatch) {
    return const_cast<Entry*>(std::as_const(*this).find_live(microbatch));
  }
  Entry* claimed(const Lease& lease);  // null: no entry has such a claim
  std::map<EntrySerial, Entry>& all() { return entries_; }
  const std::map<EntrySerial, Entry>& all() const { return entries_; }
  const std::set<EntrySerial>& active() const { return active_; }  // not final: a long round keeps many that are
  std::size_t live() const { return active_.size(); }
  std::vector<EntrySerial> below(const Low& low) const;

  // ---- change ----
  Entry& make(const EntryName& name, const MicrobatchId& microbatch);
  void claim(Entry& e, const Lease& lease, const Claim& claim);
  void unclaim(Entry& e, const Lease& lease);
  std::map<Lease, Claim> unclaim_all(Entry& e);
  void note_final(const Entry& e) { active_.erase(e.name.serial); }
  void erase(Entry& e);

 private:
  std::map<EntrySerial, Entry> entries_;  // serial order = age
  std::set<EntrySerial> active_;
  std::map<MicrobatchId, EntrySerial> live_;
  std::unordered_map<Lease, EntrySerial> by_lease_;
};

}  // namespace shoal
