#pragma once
// What the events of a swarm say about the counting: who won, what rounds secured, what is lost. Read piece by piece,
// so that a checker may ask again and again while the swarm runs. Pure look.
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "events/event_record.h"
#include "sim/swarm.h"
#include "stages/integer_executor.h"

namespace shoal {

// A sum over gradients of the integer executor, exact, and its tag.
struct GradientSum {
  CountTag tag = 0;
  std::array<double, kIntegerParameters> values{};
  void add(const MicrobatchId& microbatch, StageId stage, WeightStamp stamp);
};

class CountingBooks {
 public:
  struct Winner {
    MicrobatchId microbatch;
    StageId stage;
  };

  // Those of `events`, which only grow, since the last call.
  void read(const std::vector<SimEvent>& events);

  const std::map<MicrobatchId, std::vector<EntryName>>& committed() const { return committed_; }  // by the log
  const Winner* winner(const EntryName& entry_name) const;               // null: no log line names it
  std::optional<Version> secured_at(const EntryName& entry_name) const;  // the version that the round naming it made
  bool is_lost(const EntryName& entry_name) const { return lost_.contains(entry_name); }
  // Why it was lost; null: it is not, or only as the rest at the run's end, when who holds it may live.
  const std::string* cause_of_loss(const EntryName& entry_name) const;
  // Lost with the end of a run that made its last rounds, and for no other reason. A run that was given up without a
  // stage makes none, so what is lost then may be of any session.
  std::vector<EntryName> lost_as_rest() const;
  bool over(const Session& session) const { return over_.contains(session); }
  // The sessions that the authority ended against their will.
  const std::set<Session>& fenced() const { return fenced_; }
  // Over what the stage's rounds up to `version` secured.
  GradientSum secured_up_to(StageId stage, Version version) const;
  // Every rule that the events themselves break, one line each.
  const std::vector<std::string>& broken() const { return broken_; }

 private:
  void read_commit(const EventRecord& event);
  void read_joined(const EventRecord& event);
  void read_serving(const SimEvent& event);
  void go_back(StageId stage, Version made, Version back_to);
  void note_made(StageId stage, Version version, const Session& launch);
  void check_contributions(const EventRecord& commit);
  void read_round(const EventRecord& event);
  void secure(const EntryName& entry_name, StageId stage, Version version, GradientSum& sum);
  void list(const EntryName& entry_name, std::string_view cause, TimePoint at);

  std::size_t read_ = 0;
  std::map<MicrobatchId, std::vector<EntryName>> committed_;
  std::map<EntryName, Winner> winners_;
  std::map<EntryName, WeightStamp> stamps_;                    // of counted gradients: of the weights that made them
  std::map<std::pair<StageId, RoundId>, std::size_t> opened_;  // how many members
  std::map<EntryName, Version> secured_;
  std::map<StageId, std::map<Version, GradientSum>> anchors_;  // after the round that made the version
  std::uint64_t launch_ = 0, launch_seconds_ = 0;              // its tag, and how many it ran
  std::map<StageId, std::map<Version, std::uint64_t>> made_;   // at which of these
  std::map<Session, Version> admitted_;                        // what its stage had by then, as members were told
  std::map<EntryName, std::string> lost_;                      // with the cause
  std::map<Session, TimePoint> over_;                          // since when
  std::set<Session> fenced_;
  std::vector<std::string> broken_;
};

std::string text_of(const EntryName& entry_name);

}  // namespace shoal
