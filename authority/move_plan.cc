#include "authority/move_plan.h"

#include <algorithm>

#include "authority/planner.h"

namespace shoal {
namespace {

double mean_speed(std::span<const Worker> workers) {
  double sum = 0;
  std::size_t measured = 0;
  for (const Worker& worker : workers) {
    if (!worker.speed) continue;
    sum += *worker.speed;
    ++measured;
  }
  return measured > 0 ? sum / static_cast<double>(measured) : 1;
}

double weakest(const std::vector<double>& rates) { return *std::min_element(rates.begin(), rates.end()); }

std::vector<double> sorted(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return rates;
}

// The swarm as the moves so far leave it.
struct Outlook {
  std::span<const StageLoad> stages;
  std::vector<Worker> workers;  // each with a speed
  std::vector<double> rates;
  std::vector<std::size_t> serving;  // workers of each stage
  std::vector<std::size_t> direct;   // of these

  double share(const Worker& worker, StageId stage) const { return *worker.speed / stages[stage.value].work; }
};

struct NextMove {
  std::size_t worker = 0;
  StageId to;
  std::vector<double> rates;  // behind it
};

// A stage keeps enough to survive the death of one, or as many as the other one then has.
bool may_spare(std::size_t serving, std::size_t there) {
  return serving > kMembersFirst || (serving > 1 && serving > there);
}

// Its stage keeps a member that can be dialled; one that nobody can dial meets somebody there, or is the first.
bool meets_after(const Worker& worker, const Outlook& at, StageId to) {
  if (worker.direct) return at.direct[worker.stage.value] > 1;
  return at.direct[to.value] > 0 || at.serving[to.value] == 0;
}

// The move to the weakest stage after which the sorted rates are largest; none: no move makes them larger.
std::optional<NextMove> best_step(const Outlook& at) {
  const auto reachable = [&](const StageLoad& stage) { return stage.reached && !stage.closed; };
  std::optional<StageId> to;
  for (const StageLoad& stage : at.stages)
    if (reachable(stage) && (!to || at.rates[stage.stage.value] < at.rates[to->value])) to = stage.stage;
  if (!to) return std::nullopt;
  std::optional<NextMove> best;
  std::vector<double> best_sorted = sorted(at.rates);
  for (std::size_t i = 0; i < at.workers.size(); ++i) {
    const Worker& worker = at.workers[i];
    if (!worker.movable || worker.stage == *to || at.stages[worker.stage.value].closed ||
        !may_spare(at.serving[worker.stage.value], at.serving[to->value]) || !meets_after(worker, at, *to))
      continue;
    std::vector<double> rates = at.rates;
    rates[worker.stage.value] -= at.share(worker, worker.stage);
    rates[to->value] += at.share(worker, *to);
    std::vector<double> now_sorted = sorted(rates);
    if (now_sorted <= best_sorted) continue;
    best_sorted = std::move(now_sorted);
    best = NextMove{i, *to, std::move(rates)};
  }
  return best;
}

}  // namespace

void bound_speeds(std::span<Worker> workers) {
  std::vector<double> speeds;
  for (const Worker& worker : workers)
    if (worker.speed) speeds.push_back(*worker.speed);
  if (speeds.empty()) return;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>((speeds.size() - 1) / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  for (Worker& worker : workers)
    if (worker.speed) worker.speed = std::min(*worker.speed, kBelieved * *middle);
}

std::vector<double> stage_rates(std::span<const StageLoad> stages, std::span<const Worker> workers) {
  std::vector<double> rates(stages.size(), 0);
  const double mean = mean_speed(workers);
  for (const Worker& worker : workers)
    rates[worker.stage.value] += worker.speed.value_or(mean) / stages[worker.stage.value].work;
  return rates;
}

std::optional<PlannedMove> plan_move(std::span<const StageLoad> stages, std::span<const Worker> workers,
                                     const MoveOptions& options) {
  if (stages.empty()) return std::nullopt;
  Outlook at{.stages = stages,
             .workers = {workers.begin(), workers.end()},
             .rates = stage_rates(stages, workers),
             .serving = std::vector<std::size_t>(stages.size(), 0),
             .direct = std::vector<std::size_t>(stages.size(), 0)};
  const double mean = mean_speed(workers);
  for (Worker& worker : at.workers) {
    worker.speed = worker.speed.value_or(mean);
    ++at.serving[worker.stage.value];
    at.direct[worker.stage.value] += worker.direct;
  }
  const double now = weakest(at.rates), horizon = seconds_of(options.horizon), away = seconds_of(options.away);
  double best_gain = 0;
  std::optional<PlannedMove> first, best;
  for (std::size_t moves = 1; moves <= kMovesAhead; ++moves) {
    const auto step = best_step(at);
    if (!step) break;
    Worker& mover = at.workers[step->worker];
    if (!first) first = PlannedMove{mover.session, mover.peer, mover.stage, step->to, now, now, 1};
    --at.serving[mover.stage.value];
    ++at.serving[step->to.value];
    at.direct[mover.stage.value] -= mover.direct;
    at.direct[step->to.value] += mover.direct;
    mover.stage = step->to;
    mover.movable = false;  // one move each, so that no sequence goes round in a circle
    at.rates = step->rates;
    const double then = weakest(at.rates);
    const double gain = (then - now) * std::max(0.0, horizon - static_cast<double>(moves) * away);
    if (then < (1 + options.gain_min) * now || gain <= best_gain) continue;
    best_gain = gain;
    best = first;
    best->rate_then = then;
    best->moves = moves;
  }
  return best;
}

}  // namespace shoal
