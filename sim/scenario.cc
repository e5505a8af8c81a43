#include "sim/scenario.h"

#include <algorithm>
#include <sstream>

#include "sim/checkers.h"

namespace shoal {

namespace {

constexpr Duration kLookEvery = 250ms;

class Scenario {
 public:
  Scenario(SwarmOptions options, const FaultMix& mix)
      : mix_(mix), rng_(Rng(options.seed).fork("faults")), swarm_(std::move(options)), checker_(swarm_) {}

  ScenarioResult run(Duration limit) {
    const TimePoint start = swarm_.loop().now();
    const TimePoint last = start + mix_.last_after;
    watch(2s);
    while (intact() && swarm_.loop().now() < last && !swarm_.finished()) {
      watch(from_seconds(rng_.exponential(seconds_of(mix_.mean_between))));
      return_due();
      if (!swarm_.finished()) strike();
      look();
    }
    while (intact() && !returns_.empty() && swarm_.loop().now() < start + limit) {
      watch(1s);
      return_due();
    }
    while (intact() && swarm_.loop().now() < start + limit) {
      const TimePoint next = std::min(swarm_.loop().now() + kLookEvery, start + limit);
      if (swarm_.run_to_end(next - swarm_.loop().now())) break;
      watch(next - swarm_.loop().now());
    }
    if (intact()) result_.broken = check_end(swarm_);
    summarise(start);
    return std::move(result_);
  }

 private:
  // Runs on, and looks at the counting all the while; up to the first broken rule.
  void watch(Duration duration) {
    const TimePoint until = swarm_.loop().now() + duration;
    while (intact() && swarm_.loop().now() < until) {
      swarm_.run_for(std::min(kLookEvery, until - swarm_.loop().now()));
      look();
    }
  }

  bool intact() const { return result_.broken.empty(); }

  void look() {
    if (!intact()) return;
    ++result_.looks;
    result_.broken = checker_.look();
    if (!intact()) say("a rule is broken");
  }

  struct Return {
    TimePoint when;
    std::size_t peer;
    bool frozen;
    bool launch;
    std::optional<std::size_t> parted_from{};
  };

  void say(const std::string& what) {
    std::ostringstream line;
    line << seconds_of(swarm_.loop().now().time_since_epoch()) << " s: " << what;
    result_.story.push_back(line.str());
  }

  void return_due() {
    for (auto it = returns_.begin(); it != returns_.end();) {
      if (it->when > swarm_.loop().now()) {
        ++it;
        continue;
      }
      if (it->launch) {
        swarm_.resume_launch();
        say("launch resumes");
      } else if (it->parted_from) {
        part(it->peer, *it->parted_from, false);
        say("peers " + std::to_string(it->peer) + " and " + std::to_string(*it->parted_from) +
            " hear each other again");
      } else if (it->frozen) {
        swarm_.resume_peer(it->peer);
        say("peer " + std::to_string(it->peer) + " resumes");
      } else {
        swarm_.restart_peer(it->peer);
        say("peer " + std::to_string(it->peer) + " restarts");
      }
      it = returns_.erase(it);
    }
  }

  bool away(std::size_t peer) const {
    return std::any_of(returns_.begin(), returns_.end(),
                       [&](const Return& r) { return !r.launch && !r.parted_from && r.peer == peer; });
  }

  void part(std::size_t a, std::size_t b, bool parted) {
    swarm_.network().partition(swarm_.peers()[a]->address, swarm_.peers()[b]->address, parted);
  }

  // Another living process holds the stage's anchor at no older version.
  bool may_lose(std::size_t index) const {
    const auto held = [&](std::size_t i) -> std::optional<std::pair<StageId, Version>> {
      const auto& process = *swarm_.peers()[i];
      return process.alive && process.peer ? process.peer->held_state() : std::nullopt;
    };
    const auto mine = held(index);
    if (!mine) return true;
    for (std::size_t i = 0; i < swarm_.peers().size(); ++i)
      if (const auto other = held(i);
          i != index && other && other->first == mine->first && other->second >= mine->second)
        return true;
    return false;
  }

  void strike() {
    const std::size_t index = rng_.below(swarm_.peers().size());
    double draw = rng_.uniform() * (mix_.kills + mix_.freezes + mix_.cuts + mix_.launch_kills + mix_.partitions);
    const TimePoint back = swarm_.loop().now() + from_seconds(0.5 + rng_.uniform() * 14);
    if ((draw -= mix_.kills) < 0) {
      if (away(index) || !may_lose(index)) return;
      swarm_.kill_peer(index);
      returns_.push_back({back, index, false, false});
      ++result_.kills;
      say("peer " + std::to_string(index) + " is killed");
    } else if ((draw -= mix_.freezes) < 0) {
      if (away(index)) return;
      swarm_.freeze_peer(index);
      returns_.push_back({back, index, true, false});
      ++result_.freezes;
      say("peer " + std::to_string(index) + " freezes");
    } else if ((draw -= mix_.cuts) < 0) {
      const std::size_t other = rng_.below(swarm_.peers().size());
      if (other == index) return;
      swarm_.cut(index, other);
      ++result_.cuts;
      say("link " + std::to_string(index) + "-" + std::to_string(other) + " is cut");
    } else if ((draw -= mix_.partitions) < 0) {
      const std::size_t other = rng_.below(swarm_.peers().size());
      if (other == index) return;
      part(index, other, true);
      returns_.push_back({back, index, false, false, other});
      ++result_.partitions;
      say("peers " + std::to_string(index) + " and " + std::to_string(other) + " hear nothing of each other");
    } else {
      if (swarm_.launch() == nullptr) return;
      swarm_.kill_launch();
      returns_.push_back({back, 0, false, true});
      ++result_.launch_kills;
      say("launch is killed");
    }
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

  void summarise(TimePoint start) {
    result_.trace = swarm_.trace_hash();
    result_.virtual_seconds = seconds_of(swarm_.loop().now() - start);
    std::map<EventKind, std::uint64_t> counts;
    for (const EventRecord& event : swarm_.events()) {
      ++counts[event.event];
      if (event.event == EventKind::kShifted)
        ++(event.cause == "anchor" ? result_.shifts_anchor : result_.shifts_snapshot);
    }
    result_.behind = counts[EventKind::kBehind];
    result_.undos = counts[EventKind::kUndone];
    result_.gone = counts[EventKind::kCommitGone];
    result_.lost = counts[EventKind::kLost];
    result_.committed = counts[EventKind::kCommit];
    result_.branches = counts[EventKind::kForwardSent] + counts[EventKind::kTake] -
                       std::min(counts[EventKind::kForwardSent] + counts[EventKind::kTake], counts[EventKind::kIssue]);
    if (result_.broken.empty()) return;
    if (swarm_.launch() != nullptr) {
      const Launch& launch = *swarm_.launch();
      result_.story.push_back("launch: open " + std::to_string(launch.book().open()) + ", committed " +
                              std::to_string(launch.book().committed()) + ", unmerged " +
                              std::to_string(launch.book().unmerged()) + ", low waits for " +
                              launch.book().waiting_for());
      for (const StageStatus& stage : launch.authority().status())
        result_.story.push_back("launch: stage " + std::to_string(stage.stage.value) + " has " +
                                std::to_string(stage.members) + " members, " + std::to_string(stage.serving) +
                                " serving, version " + std::to_string(stage.version.value));
    }
    tell_last_events(300);
    for (const std::string& line : swarm_.notices()) result_.story.push_back("launch: " + line);
    for (std::size_t i = 0; i < swarm_.peers().size(); ++i) {
      const auto& process = *swarm_.peers()[i];
      for (const std::string& line : process.notices)
        result_.story.push_back("peer " + std::to_string(i) + ": " + line);
      if (process.error) result_.story.push_back("peer " + std::to_string(i) + " failed: " + process.error->message);
      if (process.peer) {
        const PeerReport report = process.peer->report();
        result_.story.push_back(
            "peer " + std::to_string(i) + " is " + std::string(name_of(report.phase)) + " " + report.reason +
            ", stage " + (report.stage ? std::to_string(report.stage->value) : "?") + ", version " +
            std::to_string(report.status.version.value) + ", live " + std::to_string(report.status.live));
      }
    }
  }

  FaultMix mix_;
  Rng rng_;
  Swarm swarm_;
  CountingChecker checker_;
  std::vector<Return> returns_;
  ScenarioResult result_;
};

}  // namespace

ScenarioResult run_scenario(SwarmOptions options, const FaultMix& mix, Duration limit) {
  return Scenario(std::move(options), mix).run(limit);
}

}  // namespace shoal
