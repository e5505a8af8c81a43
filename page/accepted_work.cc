#include "page/accepted_work.h"

#include <unordered_map>

#include "common/peer_name.h"

namespace shoal {
namespace {

// What the lines say of each entry, in whatever order they stand: two machines may have written them, whose clocks
// differ, and what was taken back is never secured again.
class Reckoning {
 public:
  void take(const AuditEvent& event) {
    if (event.event == EventKind::kMember && event.state == "joined" && event.about)
      names_[event.about->peer_tag] = check_peer_name(event.peer_name).ok() ? event.peer_name : "";
    if (event.event == EventKind::kCommit) return take_commit(event);
    if (!event.secured) return;
    if (event.event == EventKind::kRoundCommit) mark(*event.secured, &Entry::secured);
    if (event.event == EventKind::kRestored) mark(*event.secured, &Entry::taken_back);
  }

  void sum_up(AcceptedWork& work) const {
    for (const auto& [session, entries] : entries_)
      for (const auto& [serial, entry] : entries)
        if (entry.committed && entry.secured && !entry.taken_back)
          work.peers[session.peer_tag][entry.stage].targets[entry.microbatch] = entry.targets;
    for (const auto& [peer, name] : names_)
      if (!name.empty()) work.names.emplace(peer, name);
  }

 private:
  struct Entry {
    std::uint64_t microbatch = 0, targets = 0;
    std::uint16_t stage = 0;
    bool committed = false, secured = false, taken_back = false;
  };

  void take_commit(const AuditEvent& commit) {
    if (!commit.microbatch || !commit.entries) return;
    for (std::size_t stage = 0; stage < commit.entries->size(); ++stage) {
      const EntryName& name = (*commit.entries)[stage];
      Entry& entry = entries_[name.session][name.serial];
      if (std::exchange(entry.committed, true)) continue;  // said again
      entry.microbatch = commit.microbatch->serial;
      entry.targets = commit.targets.value_or(0);
      entry.stage = static_cast<std::uint16_t>(stage);
    }
  }
  void mark(const std::vector<Secured>& members, bool Entry::*as) {
    for (const Secured& member : members)
      for (const std::uint64_t serial : member.serials) entries_[member.session][serial].*as = true;
  }

  std::unordered_map<Session, std::unordered_map<std::uint64_t, Entry>> entries_;
  std::map<std::uint64_t, std::string> names_;
};

}  // namespace

Result<AcceptedWork> accepted_work(const std::string& folder, const ReadProgress& progress) {
  SHOAL_ASSIGN(const std::vector<AuditSource> sources, sources_in(folder, progress));
  AcceptedWork work;
  Reckoning reckoning;
  bool named = false;
  for (const AuditSource& source : sources) {
    EventLines lines(source);
    while (true) {
      SHOAL_ASSIGN(const AuditEvent* const event, lines.next());
      if (event == nullptr) break;
      if (event->row == nullptr || !event->is_trainer()) continue;
      if (!std::exchange(named, true)) work.run = event->run;
      if (event->run != work.run) return make_error(ErrorCode::kInput, folder + ": holds event files of two runs");
      reckoning.take(*event);
    }
  }
  if (!named)
    return make_error(ErrorCode::kInput,
                      folder + ": holds no event file of a launching process (`shoal launch --events FILE`)");
  reckoning.sum_up(work);
  return work;
}

}  // namespace shoal
