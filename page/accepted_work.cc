#include "page/accepted_work.h"

#include <unordered_map>

#include "page/merged_lines.h"

namespace shoal {
namespace {

class Reckoning {
 public:
  void take(const AuditEvent& event) {
    if (event.event == EventKind::kCommit) return take_commit(event);
    if (!event.secured) return;
    if (event.event == EventKind::kRoundCommit)
      for (const Secured& member : *event.secured) take_secured(member);
    if (event.event == EventKind::kRestored)
      for (const Secured& member : *event.secured) take_back(member);
  }
  AcceptedWork work;

 private:
  struct Entry {
    std::uint64_t microbatch = 0, targets = 0;
    std::uint16_t stage = 0;
  };

  void take_commit(const AuditEvent& commit) {
    if (!commit.microbatch || !commit.entries) return;
    for (std::size_t stage = 0; stage < commit.entries->size(); ++stage) {
      const EntryName& name = (*commit.entries)[stage];
      entries_[name.session].try_emplace(
          name.serial, Entry{commit.microbatch->serial, commit.targets.value_or(0), static_cast<std::uint16_t>(stage)});
    }
  }
  void take_secured(const Secured& member) {
    const auto entries = entries_.find(member.session);
    if (entries == entries_.end()) return;
    auto& stages = work.peers[member.session.peer_tag];
    for (const std::uint64_t serial : member.serials)
      if (const auto entry = entries->second.find(serial); entry != entries->second.end())
        stages[entry->second.stage].targets[entry->second.microbatch] = entry->second.targets;
  }
  void take_back(const Secured& member) {
    const auto entries = entries_.find(member.session);
    if (entries == entries_.end()) return;
    auto& stages = work.peers[member.session.peer_tag];
    for (const std::uint64_t serial : member.serials)
      if (const auto entry = entries->second.find(serial); entry != entries->second.end())
        stages[entry->second.stage].targets.erase(entry->second.microbatch);
  }

  std::unordered_map<Session, std::unordered_map<std::uint64_t, Entry>> entries_;
};

}  // namespace

Result<AcceptedWork> accepted_work(const std::string& folder, const ReadProgress& progress) {
  SHOAL_ASSIGN(MergedLines lines, MergedLines::whole(folder, progress));
  Reckoning reckoning;
  bool named = false;
  while (true) {
    SHOAL_ASSIGN(const auto line, lines.next());
    if (!line) break;
    const AuditEvent& event = *line->event;
    if (event.row == nullptr || !event.is_trainer()) continue;
    if (!std::exchange(named, true)) reckoning.work.run = event.run;
    if (event.run != reckoning.work.run)
      return make_error(ErrorCode::kInput, folder + ": holds event files of two runs");
    reckoning.take(event);
  }
  if (!named)
    return make_error(ErrorCode::kInput,
                      folder + ": holds no event file of a launching process (`shoal launch --events FILE`)");
  return std::move(reckoning.work);
}

}  // namespace shoal
