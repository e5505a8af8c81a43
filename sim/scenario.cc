#include "sim/scenario.h"

#include <algorithm>
#include <sstream>

#include "sim/checkers.h"
#include "sim/difference_codec.h"
#include "sim/fault_strikes.h"
#include "sim/liveness.h"

namespace shoal {

namespace {

constexpr Duration kLookEvery = 250ms;
constexpr Duration kLeftOutAfter = 30s;  // of the last trouble: what blames a pair by then is of no fault

class Scenario {
 public:
  Scenario(SwarmOptions options, const FaultOptions& faults)
      : rng_(Rng(options.seed).fork("faults")),
        plan_(draw_faults(faults, std::size_t{options.stages} * options.replicas, rng_.fork("plan"))),
        swarm_(std::move(options)),
        strikes_(swarm_, rng_.fork("strikes")),
        checker_(swarm_),
        start_(swarm_.loop().now()) {}

  ScenarioResult run(Duration limit) {
    limit_ = start_ + limit;
    for (const Fault& fault : plan_) {
      watch_until(start_ + fault.at);
      if (!going_on()) break;
      if (strikes_.begin(fault)) troubled_ = swarm_.loop().now();
      look();
    }
    while (intact() && strikes_.pending() && swarm_.loop().now() < limit_)
      watch_until(swarm_.loop().now() + kLookEvery);
    strikes_.heal_core();
    tell_strikes();
    if (going_on()) judge_liveness();
    if (going_on() && swarm_.launch() != nullptr) end_run();
    while (intact() && swarm_.loop().now() < limit_) {
      if (swarm_.run_to_end(kLookEvery)) break;
      look();
      if (swarm_.finished() && swarm_.launch_error()) end_again();
    }
    if (intact()) result_.broken = check_end(swarm_, strikes_.afflicted());
    if (result_.last_copies_lost > 0 || ends_without_stage_)  // it was ended without the stage, as it says itself
      std::erase_if(result_.broken, [](const std::string& line) { return line.ends_with("are unfinished"); });
    summarise();
    return std::move(result_);
  }

 private:
  bool intact() const { return result_.broken.empty(); }
  // A run that ended with an error is brought back by the strikes.
  bool going_on() const { return intact() && !(swarm_.finished() && !swarm_.launch_error()); }

  // Runs on, and looks at the counting all the while; up to the first broken rule.
  void watch_until(TimePoint until) {
    while (intact() && swarm_.loop().now() < until) {
      swarm_.run_for(std::min(kLookEvery, until - swarm_.loop().now()));
      strikes_.tend();
      tell_strikes();
      look();
    }
  }

  void look() {
    if (!intact()) return;
    ++result_.looks;
    result_.broken = checker_.look();
    for (const auto& process : swarm_.standbys())
      if (process->error) result_.broken.push_back("a standby cannot go on: " + process->error->message);
    check_left_out();
    if (!intact()) say("a rule is broken");
  }

  // Nobody's session ends because a pair does not meet while nothing keeps it from meeting and a relay joins who cannot
  // be dialled.
  void check_left_out() {
    if (strikes_.troubled()) troubled_ = swarm_.loop().now();
    const auto& relays = swarm_.network().relays().all();
    const bool relayed = std::any_of(relays.begin(), relays.end(), [](const auto& r) { return r.second->lives(); });
    for (; read_ < swarm_.events().size(); ++read_) {
      const SimEvent& event = swarm_.events()[read_];
      const bool out = event.event == EventKind::kSessionOver && event.cause.find("left out: it and") == 0;
      if (out && relayed && event.at > troubled_ + kLeftOutAfter)
        result_.broken.push_back("a session ended though a relay lives: " + event.cause);
    }
  }

  void judge_liveness() {
    const std::uint64_t before = committed();
    const TimePoint until = swarm_.loop().now() + kLiveWithin;
    while (going_on() && swarm_.loop().now() < until && committed() < before + kLiveMicrobatches)
      watch_until(std::min(until, swarm_.loop().now() + kLookEvery));
    if (!going_on() || committed() >= before + kLiveMicrobatches) return;
    // A holder that died between its word and the commit took the only copy of that version with it: such a run can
    // only be parked, and ended as a person would end it.
    if (const auto stage = stage_without_copy()) {
      result_.last_copies_lost = 1;
      return say("stage " + std::to_string(stage->value) + " is parked: the only copy of its newest version is gone");
    }
    if (const auto stage = stage_out_of_reach(swarm_))
      return say("stage " + std::to_string(stage->value) + " has no peer that can be dialled");
    result_.broken.push_back("it does not go on: " + std::to_string(committed() - before) + " microbatches within " +
                             std::to_string(kLiveWithin / 1s) + " s of the last fault");
    tell_graph();
  }

  // What a disk did before it was healed may end the launching process as late as now. The person that started it reads
  // what it says, resumes it and ends the run again.
  void end_again() {
    strikes_.tend();
    tell_strikes();
    if (swarm_.launch() != nullptr && !swarm_.launch()->book().ended()) end_run();
  }

  // Other stages may go on for a while without the one whose only copy is gone.
  void end_run() {
    const bool copy_lost = stage_without_copy().has_value();
    ends_without_stage_ = copy_lost || stage_out_of_reach(swarm_).has_value();
    if (!ends_without_stage_) return swarm_.finish_launch("the faults are over");
    if (copy_lost) result_.last_copies_lost = 1;
    swarm_.stop_launch();
  }

  std::optional<StageId> stage_without_copy() const {
    if (swarm_.launch() == nullptr) return std::nullopt;
    for (const StageStatus& stage : swarm_.launch()->authority().status()) {
      // With checkpoints an earlier version is as good: the stage goes back to it.
      const Version least = swarm_.options().checkpoints ? Version(1) : stage.version;
      const auto holds = [&](const auto& process) {
        const bool here = process->alive && process->peer && !process->finished && !process->error;
        const auto held = here ? process->peer->held_state() : std::nullopt;
        return held && held->first == stage.stage && held->second >= least;
      };
      if (stage.secured && std::none_of(swarm_.peers().begin(), swarm_.peers().end(), holds)) return stage.stage;
    }
    return std::nullopt;
  }

  std::uint64_t committed() const { return swarm_.launch() == nullptr ? 0 : swarm_.launch()->book().committed(); }

  void say(const std::string& what) {
    std::ostringstream line;
    line << seconds_of(swarm_.loop().now().time_since_epoch()) << " s: " << what;
    result_.story.push_back(line.str());
  }

  void tell_strikes() {
    for (std::string& line : strikes_.take_story()) result_.story.push_back(std::move(line));
  }

  void tell_graph() {
    result_.story.push_back("who waits for whom:");
    for (std::string& line : waits_for_graph(swarm_)) result_.story.push_back("  " + line);
  }

  void tell_last_events(std::size_t count) {
    std::vector<std::string> lines;
    for (const SimEvent& e : swarm_.events()) {
      if (e.event == EventKind::kBytes || e.event == EventKind::kMember) continue;
      std::ostringstream line;
      line << "event " << e.event << " " << e.cause;
      if (e.stage) line << " stage " << *e.stage;
      if (e.round) line << " round " << *e.round;
      if (e.step) line << " step " << *e.step;
      if (e.microbatch) line << " microbatch " << e.microbatch->serial;
      line << " at=" << seconds_of(e.at.time_since_epoch()) << " writer=" << short_name(e.writer);
      lines.push_back(line.str());
    }
    const std::size_t first = lines.size() > count ? lines.size() - count : 0;
    result_.story.insert(result_.story.end(), lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end());
  }

  void count_errors() {
    for (const auto& [code, count] : swarm_.network().record().errors())
      result_.error_codes[std::string(name_of(code))] += count;
    for (const auto& [code, count] : strikes_.launch_errors()) result_.error_codes[std::string(name_of(code))] += count;
    for (const auto& process : swarm_.peers())
      if (process->error) ++result_.error_codes[std::string(name_of(process->error->code))];
  }

  // A peer that was asked to, then joined another stage, and served there.
  void count_moves() {
    std::map<PeerId, StageId> asked;    // the stage that it is to leave
    std::map<Session, StageId> placed;  // of movers, where they are wanted
    for (const SimEvent& event : swarm_.events()) {
      if (event.event == EventKind::kServing && placed.contains(event.writer)) {
        result_.moves += placed.at(event.writer) == event.stage;
        placed.erase(event.writer);
      }
      if (event.event != EventKind::kMember || !event.about_peer || !event.stage) continue;
      if (event.state == "asked to move") {
        ++result_.asked_to_move;
        asked[*event.about_peer] = *event.stage;
      } else if (event.state == "joined" && asked.contains(*event.about_peer)) {
        if (asked.at(*event.about_peer) != *event.stage && event.about) placed[*event.about] = *event.stage;
        asked.erase(*event.about_peer);
      }
    }
    result_.lives_with_moves = result_.moves > 0;
  }

  void summarise() {
    result_.trace = swarm_.trace_hash();
    result_.virtual_seconds = seconds_of(swarm_.loop().now() - start_);
    for (const auto& [kind, count] : strikes_.struck()) {
      result_.fault_kinds[std::string(name_of(kind))] = count;
      result_.faults += count;
    }
    count_errors();
    std::map<EventKind, std::uint64_t> counts;
    for (const EventRecord& event : swarm_.events()) {
      ++counts[event.event];
      if (event.event == EventKind::kShifted)
        ++(event.cause == "anchor" ? result_.shifts_anchor : result_.shifts_snapshot);
    }
    result_.behind = counts[EventKind::kBehind];
    result_.restores = counts[EventKind::kRestored];
    result_.takeovers = swarm_.takeovers();
    result_.joined = swarm_.network().relays().joined().size();
    for (const auto& [at, relay] : swarm_.network().relays().all()) result_.carried += relay->carried();
    count_moves();
    result_.undos = counts[EventKind::kUndone];
    result_.gone = counts[EventKind::kCommitGone];
    result_.lost = counts[EventKind::kLost];
    result_.committed = counts[EventKind::kCommit];
    result_.branches = counts[EventKind::kForwardSent] + counts[EventKind::kTake] -
                       std::min(counts[EventKind::kForwardSent] + counts[EventKind::kTake], counts[EventKind::kIssue]);
    if (!intact()) tell_end();
  }

  void tell_end() {
    if (!swarm_.finished()) tell_graph();
    tell_last_events(300);
    for (const std::string& line : swarm_.notices()) result_.story.push_back("launch: " + line);
    for (std::size_t i = 0; i < swarm_.peers().size(); ++i)
      for (const std::string& line : swarm_.peers()[i]->notices)
        result_.story.push_back("peer " + std::to_string(i) + ": " + line);
  }

  Rng rng_;
  std::vector<Fault> plan_;
  Swarm swarm_;
  FaultStrikes strikes_;
  CountingChecker checker_;
  TimePoint start_, limit_;
  ScenarioResult result_;
  bool ends_without_stage_ = false;
  std::size_t read_ = 0;  // events, by check_left_out
  TimePoint troubled_{};  // when a fault was under way last
};

void add_map(const std::map<std::string, std::uint64_t>& from, std::map<std::string, std::uint64_t>& to) {
  for (const auto& [name, count] : from) to[name] += count;
}

}  // namespace

void ScenarioResult::add(const ScenarioResult& other) {
  using Counter = std::uint64_t ScenarioResult::*;
  const Counter counters[] = {&ScenarioResult::faults,
                              &ScenarioResult::behind,
                              &ScenarioResult::restores,
                              &ScenarioResult::takeovers,
                              &ScenarioResult::asked_to_move,
                              &ScenarioResult::moves,
                              &ScenarioResult::joined,
                              &ScenarioResult::carried,
                              &ScenarioResult::lives_with_moves,
                              &ScenarioResult::shifts_anchor,
                              &ScenarioResult::shifts_snapshot,
                              &ScenarioResult::branches,
                              &ScenarioResult::undos,
                              &ScenarioResult::gone,
                              &ScenarioResult::lost,
                              &ScenarioResult::committed,
                              &ScenarioResult::looks,
                              &ScenarioResult::last_copies_lost};
  for (const Counter counter : counters) this->*counter += other.*counter;
  add_map(other.fault_kinds, fault_kinds);
  add_map(other.error_codes, error_codes);
  virtual_seconds += other.virtual_seconds;
}

ScenarioResult run_scenario(SwarmOptions options, const FaultOptions& faults, Duration limit) {
  return Scenario(std::move(options), faults).run(limit);
}

void make_tight(SwarmOptions& options) {
  options.credits = 1;
  options.config.sync.inner_batch = options.config.targets_per_microbatch();
  options.config.sync.microbatches_per_step = options.replicas;
}

void compact_often(SwarmOptions& options) { options.log_bytes.compact = 2u << 10; }

void keep_checkpoints(SwarmOptions& options) {
  options.checkpoints = true;
  options.config.checkpoint = {.every_s = 2, .keep = 2, .restore_after_s = 5};
}

void be_as_seed_draws(SwarmOptions& options) {
  const auto drawn = [seed = options.seed](std::uint64_t every) { return seed % every == 0; };
  if (drawn(kTightEvery)) make_tight(options);
  if (drawn(kDeltasEvery)) options.deltas = exact_deltas();
  if (drawn(kEstimatesEvery)) options.config.data.validate_every = 1;
  if (drawn(kDelayMaxEvery)) options.config.optimizer.delay_max = 1;
  if (drawn(kCheckpointsEvery)) keep_checkpoints(options);
  if (drawn(kCompactEvery)) compact_often(options);
}

}  // namespace shoal
