#pragma once
// What the audit has learned, and what it found. Filled by the trainer's story (trainer_story.h), then by the peers'
// (peer_story.h), which look up in it what the trainer and the authority decided.
//
// Thread: one.   Bounds: a row for each committed (microbatch, stage), each round and each session.
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/audit/audit.h"
#include "events/read_event.h"

namespace shoal {

inline bool is_of(const Session& session, const PeerId& peer) {
  return Session::of(peer, session.incarnation) == session;
}

// An entry that the trainer or the authority names.
struct EntryFact {
  MicrobatchId microbatch;
  std::uint16_t stage = 0;
  std::uint16_t merged_life = 0, lost_life = 0;  // of the trainer, when it last said so; 0: never
  std::uint32_t round = 0;                       // index in Books::rounds of the first round that names it, from 1
  std::uint8_t times = 0;                        // rounds that name it
  bool committed = false, lost = false, lost_as_gone = false, lost_as_late = false, taken_back = false;
  bool told = false, counted = false, late = false, settled = false, gone = false;  // by its peer
};

struct MicrobatchFact {
  std::uint64_t told = 0;  // a mix of what its commit says beside the path
  std::uint64_t path = 0;  // a mix of its path
  std::uint64_t targets = 0, step = 0, issue = 0;
  std::uint16_t issue_life = 0, commit_life = 0;  // 0: never
  std::uint16_t stages = 0;
};

// What made a version: a round, or a restore, which has no members and no step.
struct RoundFact {
  std::uint16_t stage = 0, life = 0;
  std::uint64_t round = 0, version = 0, step = 0;
  std::uint64_t content = 0;  // a mix of what it secured, or took back
  CountTag tag = 0;
  std::optional<std::uint64_t> back_to;  // of a restore: the version whose content it gives to its own
  Digest digest;
  std::string where;
  std::vector<std::pair<Session, std::uint64_t>> members;  // and how many entries of each
  std::uint64_t named(const Session& session) const {
    for (const auto& [member, count] : members)
      if (member == session) return count;
    return 0;
  }
  bool has(const Session& session) const {
    for (const auto& [member, count] : members)
      if (member == session) return true;
    return false;
  }
};

// A round as the authority's own story tells it.
struct RoundStory {
  bool opened = false, committed = false, abandoned = false;
  std::uint64_t base = 0, step = 0, members = 0;
};

struct StageFact {
  std::vector<std::uint32_t> rounds;  // index in Books::rounds by version - 1; 0: none made it
  // When the trainer's files are read:
  std::vector<CountTag> tags;  // by version - 1: the sum over what the rounds up to it secured and none took back
  std::uint64_t whole = 0;     // up to here no version lacks its round
  CountTag committed = 0, lost = 0, taken_back = 0;
  std::map<std::uint64_t, RoundStory> stories;  // by number
  std::uint64_t opened = 0, restored = 0;       // the newest ones
  std::uint64_t newest() const { return rounds.size(); }
};

struct SessionFact {
  std::optional<std::uint16_t> stage;  // by the authority
  bool joined = false, over = false, named = false;
  std::uint64_t over_told = 0;  // a mix
  std::uint16_t joined_life = 0, over_life = 0;
  std::string over_cause;
  // By its own file:
  bool seen = false, started = false, gap = false, cut = false;
  EventLevel level = EventLevel::kFull;
  bool tells_entries() const { return seen && level >= EventLevel::kEntries; }
};

struct TrainerFact {
  std::uint64_t next = 0;     // serial that it issues next
  std::uint64_t entries = 0;  // at peers, of a trainer that never issued
};

// What of a trainer's file concerns every line of it.
struct TrainerLife {
  std::uint16_t number = 0;  // of the process's lives, from 1
  bool resumed = false, ended = false;
};

struct Books {
  std::unordered_map<MicrobatchId, MicrobatchFact> microbatches;
  std::unordered_map<EntryName, EntryFact> entries;
  std::vector<RoundFact> rounds;
  std::map<std::uint16_t, StageFact> stages;
  std::map<Session, SessionFact> sessions;
  std::map<std::uint64_t, TrainerFact> trainers;  // by MicrobatchId::trainer
  std::map<std::uint64_t, std::string> names;     // of peers, as they joined last, by the first 8 bytes of a key
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::uint32_t> by_number;  // index in rounds, from 1
  TrainerLife life;                                                            // of the file that is read
  bool trainer_seen = false, trainer_gap = false, ended = false;
  bool trainer_tells_merged = true;  // in all its lives

  // The round or restore that made this version; null: none did.
  const RoundFact* round_of(std::uint16_t stage, std::uint64_t version) const {
    const auto found = stages.find(stage);
    if (found == stages.end() || version == 0 || version > found->second.rounds.size()) return nullptr;
    const std::uint32_t index = found->second.rounds[version - 1];
    return index == 0 ? nullptr : &rounds[index - 1];
  }
  const RoundFact* round_by_number(std::uint16_t stage, std::uint64_t number) const {
    const auto found = by_number.find({stage, number});
    return found == by_number.end() ? nullptr : &rounds[found->second - 1];
  }
  EntryFact* winner(const EntryName& entry) {
    const auto found = entries.find(entry);
    return found == entries.end() || !found->second.committed ? nullptr : &found->second;
  }
  // The sum over what the rounds up to `version` secured and no restore up to it took back; nothing when one of them is
  // not there.
  std::optional<CountTag> secured_tag(std::uint16_t stage, std::uint64_t version) const {
    const auto found = stages.find(stage);
    if (version == 0) return CountTag{0};
    if (found == stages.end() || version > found->second.whole) return std::nullopt;
    return found->second.tags[version - 1];
  }
};

struct Where {
  std::string_view file{};  // empty: what is found, all files together say
  std::uint64_t line = 0;
};

class Findings {
 public:
  Findings(AuditReport& report, const Books& books) : report_(report), books_(books) {}

  // What is found from now on is of this line.
  void look_at(Where where) { where_ = where; }
  std::string place() const { return std::string(where_.file) + ":" + std::to_string(where_.line); }

  // Lines contradict each other, or one is not what the page says.
  template <class... Parts>
  void violation(const Parts&... parts) {
    if (++report_.violation_count <= kFindingsShownMax) report_.violations.push_back(text(parts...));
  }
  // Evidence is known to be missing.
  template <class... Parts>
  void incomplete(const Parts&... parts) {
    if (++report_.incomplete_count <= kFindingsShownMax) report_.incomplete.push_back(text(parts...));
  }
  // A line should be there and is not. `gap`: lines are known to be missing where it would stand.
  template <class... Parts>
  void absent(bool gap, const Parts&... parts) {
    gap ? incomplete(parts...) : violation(parts...);
  }
  // The same of a line of the trainer or the authority.
  template <class... Parts>
  void untold(const Parts&... parts) {
    absent(books_.trainer_gap, parts...);
  }

 private:
  template <class... Parts>
  std::string text(const Parts&... parts) const {
    std::ostringstream out;
    if (!where_.file.empty()) out << where_.file;
    if (where_.line > 0) out << ":" << where_.line;
    if (!where_.file.empty()) out << ": ";
    (out << ... << parts);
    return std::move(out).str();
  }
  AuditReport& report_;
  const Books& books_;
  Where where_;
};

}  // namespace shoal
