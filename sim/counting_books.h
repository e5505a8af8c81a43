#pragma once
// What the events of a swarm say about the counting: who won, what rounds secured, what is listed. Read piece by piece,
// so that a checker may ask again and again while the swarm runs. Pure look.
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "events/event_log.h"
#include "stages/integer_executor.h"

namespace shoal {

// A sum over gradients of the integer executor, exact, and its tag.
struct GradientSum {
  CountTag tag = 0;
  std::array<double, kIntegerParameters> values{};
  void add(const MicrobatchId& microbatch, StageId stage);
};

class CountingBooks {
 public:
  struct Winner {
    MicrobatchId microbatch;
    StageId stage;
  };

  // Of `events`, which only grow, those since the last call.
  void read(const std::vector<EventRecord>& events);

  const std::map<MicrobatchId, std::vector<Token>>& committed() const { return committed_; }  // by the log
  const Winner* winner(const Token& token) const;               // null: no log line names it
  std::optional<Version> secured_at(const Token& token) const;  // the version that the round naming it made
  bool listed(const Token& token) const { return listed_.contains(token); }
  // Why it was listed; null: it is not, or only as the rest at the run's end, when who holds it may live.
  const std::string* lost(const Token& token) const;
  bool over(const Session& session) const { return over_.contains(session); }
  // Over what the stage's rounds up to `version` secured.
  GradientSum secured_up_to(StageId stage, Version version) const;
  // Every rule that the events themselves break, one line each.
  const std::vector<std::string>& broken() const { return broken_; }

 private:
  void read_commit(const EventRecord& event);
  void read_round(const EventRecord& event);
  void secure(const Token& token, StageId stage, Version version, GradientSum& sum);
  void list(const Token& token, std::string_view cause);

  std::size_t read_ = 0;
  std::map<MicrobatchId, std::vector<Token>> committed_;
  std::map<Token, Winner> winners_;
  std::map<Token, Version> secured_;
  std::map<StageId, std::map<Version, GradientSum>> anchors_;  // after the round that made the version
  std::map<Token, std::string> listed_;                        // with the cause
  std::set<Session> over_;
  std::vector<std::string> broken_;
};

std::string text_of(const Token& token);

}  // namespace shoal
