#pragma once
// One peer's file, judged line by line against what the trainer and the authority decided (docs/EVENTS.md, rules 2, 4,
// 6, 10). Entries: peer_story.cc; windows, rounds and versions: peer_rounds.cc.
//
// Bounds: a row for each entry of a session that is neither dropped, undone nor merged.
#include <optional>
#include <set>
#include <unordered_map>

#include "events/audit/audit_books.h"

namespace shoal {

// Sums over all peers.
struct PeerSums {
  std::uint64_t entries = 0, winners = 0, undone = 0, gone = 0, late = 0;
  std::set<std::pair<MicrobatchId, std::uint16_t>> unfinished;  // with an entry, never committed
  std::uint64_t unfinished_entries = 0;
};

class PeerStory {
 public:
  PeerStory(Books& books, Findings& findings, AuditReport& report, PeerSums& sums)
      : books_(books), findings_(findings), report_(report), sums_(sums) {}

  void begin_session(const Session& session, bool gap);
  void note_gap();  // lines are missing in front of the one that comes
  void take(const ReadEvent& event);
  void end_session();  // the file is read, or another session begins

 private:
  // An entry of the session.
  struct Open {
    MicrobatchId microbatch;
    EntryFact* fact = nullptr;  // null: nobody committed or secured it
    bool forwarded = false, counted = false, late = false, undo = false, settled = false, stepped = false;
  };

  // What is found of the entry that the line is about.
  template <class... Parts>
  void wrong(const ReadEvent& e, const Parts&... parts) {
    findings_.violation("entry ", *e.entry_name, parts...);
  }
  template <class... Parts>
  void lacks(const ReadEvent& e, const Parts&... parts) {
    findings_.absent(gap_, "entry ", *e.entry_name, parts...);
  }

  // Its level has lines of single entries. Else what they would show is not asked for.
  bool tells_entries() const { return level_ >= EventLevel::kEntries; }
  bool lives(const ReadEvent& e);
  void take_stage(const ReadEvent& e);
  void take_of_entry(const ReadEvent& e);
  void take_entry(const ReadEvent& e);
  void judge_sender(const ReadEvent& e);
  void judge_never_issued(const ReadEvent& e);
  void take_known(const ReadEvent& e, Open& open);
  void take_counted(const ReadEvent& e, Open& open);
  void take_late(const ReadEvent& e, Open& open);
  void take_undo(const ReadEvent& e, Open& open);
  void take_undone(const ReadEvent& e, Open& open);
  void take_drop(const ReadEvent& e, Open& open);
  void take_settled(const ReadEvent& e, Open& open);
  void take_merged(const ReadEvent& e, Open& open);
  void take_gone(const ReadEvent& e);
  void device_did();
  void close(std::uint64_t serial);

  void take_stepped(const ReadEvent& e);
  void judge_delays(const ReadEvent& e);
  void take_serving(const ReadEvent& e);
  void take_enter(const ReadEvent& e);
  void take_report(const ReadEvent& e);
  void take_round_drop(const ReadEvent& e);
  void take_anchor(const ReadEvent& e);
  void judge_step_to(std::uint64_t version);
  void take_behind(const ReadEvent& e);
  void take_shifted(const ReadEvent& e);
  void take_end(const ReadEvent& e);

  Books& books_;
  Findings& findings_;
  AuditReport& report_;
  PeerSums& sums_;

  Session session_;
  EventLevel level_ = EventLevel::kFull;
  bool begun_ = false, gap_ = false, over_ = false, ended_ = false, serving_ = false;
  std::optional<std::uint16_t> stage_;
  std::unordered_map<std::uint64_t, Open> open_;             // by serial
  std::unordered_map<MicrobatchId, std::uint64_t> open_of_;  // its entry here
  std::uint64_t next_serial_ = 1;
  std::uint64_t undos_ = 0, did_since_undo_ = 0;
  CountTag stepped_ = 0;  // of what is stepped and in no round yet
  std::optional<std::uint64_t> version_;
  std::optional<std::uint64_t> shifted_;  // its anchor line comes next
  std::uint64_t last_round_ = 0;
  bool round_open_ = false, behind_ = false;
  std::set<std::uint64_t> reported_;  // rounds, since the last anchor
  std::uint64_t merged_ = 0;          // since the last anchor
};

}  // namespace shoal
