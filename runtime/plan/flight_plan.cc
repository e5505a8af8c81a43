#include "runtime/plan/flight_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/formatted.h"
#include "runtime/config/derived_options.h"

namespace shoal {
namespace {

constexpr std::uint64_t kWindowParts = 4;  // a quarter of a step in flight costs next to nothing
constexpr double kCommitHops = 1;
constexpr std::uint64_t kInFlightMax = 4096;  // of the table of options
constexpr std::uint64_t kStepMicrobatchesMax = 1024;
constexpr double kInnerBatchMax = 1e10;

double real(std::uint64_t count) { return static_cast<double>(count); }

std::uint64_t replicas(const RunConfig& c) { return std::max<std::uint64_t>(1, c.pipeline.replicas); }

// Which key sets the window: that of global steps, or that of a replica's own. Warm steps and the inner steps after
// them may be of different size: the smaller counts.
bool by_global_step(const RunConfig& c) {
  if (traits_of(c.sync.rule).every_step) return true;
  return c.sync.warm_steps > 0 && c.sync.microbatches_per_step < c.microbatches_of_windows();
}

const char* window_key(const RunConfig& c) {
  return by_global_step(c) ? "[sync] microbatches_per_step" : "[sync] inner_batch";
}

std::uint64_t window_of(const RunConfig& c) {
  return by_global_step(c) ? std::max<std::uint64_t>(1, c.sync.microbatches_per_step) : c.microbatches_of_windows();
}

bool drains(const RunConfig& c) { return c.sync.mode == SyncMode::kDrain; }
bool learns(const RunConfig& c) { return c.executor.kind == ExecutorKind::kTorch; }
bool priced(const RunConfig& c) { return !drains(c) && learns(c); }

std::uint64_t stages(const RunConfig& c) { return std::max<std::uint64_t>(1, c.pipeline.stages); }

double delay_of(const RunConfig& c, std::uint64_t n, std::uint64_t stage) {
  if (drains(c)) return 0;
  const double passes = 2 * real(stages(c)) + kCommitHops;
  const double delay = real(n) / real(window_of(c)) * (passes - 1 - real(stage)) / passes;
  return traits_of(c.sync.rule).every_step ? std::min(1.0, delay) : delay;
}

double mean_delay(const RunConfig& c, std::uint64_t n) {
  const double first = delay_of(c, n, 0);
  if (first < 1 || !traits_of(c.sync.rule).every_step)
    return (first + delay_of(c, n, stages(c) - 1)) / 2;  // equal steps
  double sum = 0;
  for (std::uint64_t stage = 0; stage < stages(c); ++stage) sum += delay_of(c, n, stage);
  return sum / real(stages(c));
}

std::uint64_t fill_of(const RunConfig& c) { return 2 * stages(c) * replicas(c); }

std::uint64_t fewest_of(const RunConfig& c, std::uint64_t in_flight) {
  return std::min(std::max(window_of(c) / kWindowParts, replicas(c)), in_flight);
}

// ln of the ratio of losses.
double price_of(const RunConfig& c, std::uint64_t n) {
  if (!priced(c)) return 0;
  const double ahead = c.look_ahead_of(c.gradients_late());
  const std::uint64_t together = traits_of(c.sync.rule).every_step ? 1 : replicas(c);  // whose steps are of their own
  const double targets = real(window_of(c) * c.targets_per_microbatch()) / real(together);
  return delay_price(mean_delay(c, n), ahead, {.steps = real(inner_steps_of_run(c)), .targets = targets});
}

bool borne(const RunConfig& c, std::uint64_t n) { return part_of_loss(price_of(c, n)) <= kPriceBorne; }

std::optional<FlightRamp> ramp_of(const RunConfig& c, std::uint64_t in_flight) {
  if (const auto& given = c.pipeline.in_flight_ramp.given) {
    if (given->empty()) return std::nullopt;
    return FlightRamp{given->at(0), given->at(1)};
  }
  if (c.schedule_targets() == 0 || kWindowParts * in_flight <= window_of(c) || borne(c, in_flight)) return std::nullopt;
  return kFlightRamp;
}

// How much longer a step takes than in a full pipe, where it waits for the one before. In passes and hops.
double drained_slowness(const RunConfig& c, std::uint64_t n) {
  const double one = 4 * real(stages(c)), window = real(window_of(c)),
               of_replica = std::ceil(window / real(replicas(c)));
  const double step = std::max(one + 2 * (of_replica - 1), one * window / real(n));
  return step / (2 * window / real(replicas(c)));
}

// How much longer a schedule takes than with a full pipe. Along the ramp's line that falls as fill / number.
double slowness(const RunConfig& c, std::uint64_t n) {
  if (drains(c)) return drained_slowness(c, n);
  const double fill = real(fill_of(c)), all = real(n), few = real(fewest_of(c, n));
  const auto at = [&](double number) { return std::max(1.0, fill / number); };
  const std::optional<FlightRamp> ramp = ramp_of(c, n);
  if (!ramp || few >= all) return at(all);
  const double full = std::clamp(fill, few, all);
  const double line = (fill * std::log(full / few) + all - full) / (all - few);
  return ramp->begin * at(few) + (ramp->end - ramp->begin) * line + (1 - ramp->end) * at(all);
}

double time_of(const RunConfig& c, std::uint64_t n) {
  return slowness(c, n) * std::exp(price_of(c, n) / kLossPerToken);
}

std::string percent(double price) { return formatted("%.1f %%", 100 * part_of_loss(price)); }

std::uint64_t choose_in_flight(const RunConfig& c) {
  const std::uint64_t most = fill_of(c);
  if (!priced(c)) return most;
  std::uint64_t best = replicas(c);
  double least = HUGE_VAL;
  for (std::uint64_t n = replicas(c); n <= most; n += replicas(c)) {
    if (!borne(c, n)) continue;
    const double time = time_of(c, n);
    if (time >= least) continue;
    least = time;
    best = n;
  }
  return best;
}

FlightRow row_of(const RunConfig& c, std::uint64_t n) {
  FlightRow row{.in_flight = n, .of_window = real(n) / real(window_of(c)), .delays = {}};
  for (std::uint64_t stage = 0; stage < c.pipeline.stages; ++stage) row.delays.push_back(delay_of(c, n, stage));
  row.delay = mean_delay(c, n);
  row.look_ahead = c.look_ahead_of(c.gradients_late());
  row.ramp = ramp_of(c, n);
  row.price = part_of_loss(price_of(c, n));
  row.pipe_use = 1 / slowness(c, n);
  row.time = time_of(c, n);
  return row;
}

// `c` takes "auto".
std::string reason_of(const RunConfig& c, std::uint64_t automatic) {
  const std::string fills = std::to_string(automatic) + " fill the pipe";
  if (!learns(c)) return fills + ", and this executor learns nothing that could be late";
  if (drains(c))
    return std::to_string(automatic) + " fill the pipe within a step, waiting behind each leaves it at " +
           std::to_string(std::lround(100 / slowness(c, automatic))) + " % of its use, and no gradient is late";
  const std::string cost = "are expected to cost " + percent(price_of(c, automatic)) + " of the validation loss";
  const std::string bound = percent(std::log1p(kPriceBorne));
  if (!borne(c, automatic))
    return std::to_string(automatic) + ", one a replica, " + cost + ", above " + bound + " and the least there is; " +
           window_key(c) + " makes steps larger";
  if (automatic == fill_of(c)) return fills + " and " + cost + ", at most " + bound;
  if (!borne(c, automatic + replicas(c)))
    return std::to_string(automatic) + " " + cost + ", and more would cost above " + bound;
  return std::to_string(automatic) + " " + cost + ", and more would take longer to the same loss";
}

// With steps of all replicas of at least `window` microbatches; `lines` gets what that changes in RUN.toml.
RunConfig with_window(const RunConfig& c, std::uint64_t window, std::vector<std::string>& lines) {
  RunConfig larger = c;
  SyncSection& sync = larger.sync;
  const bool global = traits_of(c.sync.rule).every_step;
  if (!global && c.microbatches_of_windows() < window) {
    sync.inner_batch =
        (window + replicas(c) - 1) / replicas(c) * std::max<std::uint64_t>(1, c.targets_per_microbatch());
    lines.push_back("[sync] inner_batch = " + std::to_string(sync.inner_batch));
  }
  if ((global || sync.warm_steps > 0) && sync.microbatches_per_step < window) {
    sync.microbatches_per_step = window;
    lines.push_back("[sync] microbatches_per_step = " + std::to_string(window));
  }
  return larger;
}

bool is_legal(const RunConfig& c) {
  return c.sync.microbatches_per_step <= kStepMicrobatchesMax && real(c.sync.inner_batch) <= kInnerBatchMax &&
         check_config(c, "").ok();
}

PipeFilling filling_of(const RunConfig& c, std::vector<std::string> lines) {
  const std::uint64_t n = in_flight_of(c);
  return {.lines = std::move(lines),
          .in_flight = n,
          .pipe_use = 1 / slowness(c, n),
          .price = part_of_loss(price_of(c, n)),
          .steps = inner_steps_of_run(c)};
}

// The smallest steps with which "auto" fills the pipe, or the largest that doubling those of now comes to.
std::optional<PipeFilling> larger_steps(const RunConfig& c) {
  const auto with = [&](std::uint64_t window) {
    std::vector<std::string> lines;
    const RunConfig larger = with_window(c, window, lines);
    return std::pair(larger, lines);
  };
  const auto fills = [&](std::uint64_t window) {
    const RunConfig larger = with(window).first;
    return in_flight_of(larger) >= fill_of(larger);
  };
  const auto legal = [&](std::uint64_t window) { return is_legal(with(window).first); };
  std::uint64_t low = window_of(c), high = low;  // low is legal and does not fill
  while (legal(2 * high) && !fills(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > replicas(c)) {
    const std::uint64_t middle = low + ((high - low) / 2 + replicas(c) - 1) / replicas(c) * replicas(c);
    if (middle >= high) break;
    (fills(middle) ? high : low) = middle;
  }
  if (high == window_of(c)) return std::nullopt;
  auto [larger, lines] = with(high);
  PipeFilling filling = filling_of(larger, std::move(lines));
  if (filling.pipe_use <= 1 / slowness(c, in_flight_of(c))) return std::nullopt;
  return filling;
}

struct Repair {
  std::string key;
  RunConfig config;
};

// Each changes one key. What costs no time comes first.
std::vector<Repair> repairs_of(const RunConfig& c) {
  std::vector<Repair> all;
  if (c.optimizer.look_ahead.given) {
    all.push_back({"[optimizer] look_ahead = \"auto\"", c});
    all.back().config.optimizer.look_ahead.given.reset();
  }
  if (c.pipeline.in_flight_ramp.given) {
    all.push_back({"[pipeline] in_flight_ramp = \"auto\"", c});
    all.back().config.pipeline.in_flight_ramp.given.reset();
  }
  if (c.pipeline.in_flight.given) {
    all.push_back({"[pipeline] in_flight = \"auto\"", c});
    all.back().config.pipeline.in_flight.given.reset();
    all.back().key += " (" + std::to_string(in_flight_of(all.back().config)) + ")";
  }
  Repair larger{"", c};
  SyncSection& sync = larger.config.sync;
  const auto dear = [&] { return part_of_loss(price_of(larger.config, in_flight_of(larger.config))) > kPriceWarned; };
  if (by_global_step(c)) {
    while (dear() && 2 * sync.microbatches_per_step <= kStepMicrobatchesMax) sync.microbatches_per_step *= 2;
    larger.key = window_key(c) + (" = " + std::to_string(sync.microbatches_per_step));
  } else {
    while (dear() && 2 * real(sync.inner_batch) <= kInnerBatchMax) sync.inner_batch *= 2;
    larger.key = window_key(c) + (" = " + std::to_string(sync.inner_batch));
  }
  all.push_back(std::move(larger));
  return all;
}

}  // namespace

std::uint64_t in_flight_of(const RunConfig& c) {
  return c.pipeline.in_flight.given ? *c.pipeline.in_flight.given : choose_in_flight(c);
}

std::string take_mode(RunConfig& c) {
  if (c.sync.mode != SyncMode::kAuto) return {};
  c.sync.mode = SyncMode::kOverlap;
  if (!learns(c)) return "it fills the pipe, and this executor learns nothing that could be late";
  if (c.global_step(0)) return "with drain each global step would wait for the round of the one before";
  const auto& ramp = c.pipeline.in_flight_ramp.given;
  if (ramp && !ramp->empty()) return "a ramp is given, and with drain no gradient is late";
  RunConfig drained = c;
  drained.sync.mode = SyncMode::kDrain;
  const std::uint64_t n = in_flight_of(c);
  const double overlapped_time = time_of(c, n), drained_time = time_of(drained, in_flight_of(drained));
  const std::string beside =
      formatted("%.2f times a full pipe's time to the same loss with drain, %.2f with overlap and %llu in flight",
                drained_time, overlapped_time, static_cast<unsigned long long>(n));
  if (drained_time > overlapped_time) return beside;
  c = std::move(drained);
  return beside + ": no gradient is late";
}

std::string mode_sentence(const RunConfig& c, const std::string& why) {
  return std::string("mode = \"auto\" takes ") + (drains(c) ? "drain: " : "overlap: ") + why;
}

std::optional<FlightRamp> flight_ramp(const RunConfig& c) { return ramp_of(c, in_flight_of(c)); }

std::uint64_t in_flight_most(const RunConfig& c) {
  const std::uint64_t full = in_flight_of(c);
  if (c.pipeline.in_flight.given) return full;
  const std::uint64_t end = std::min(kFillMost * fill_of(c), kInFlightMax);
  const double dearest = std::min(std::log1p(kPriceBorne), price_of(c, full) + std::log1p(kPriceOfLines));
  std::uint64_t most = full;
  const auto may = [&](std::uint64_t n) { return !priced(c) || price_of(c, n) <= dearest; };
  while (most + replicas(c) <= end && may(most + replicas(c))) most += replicas(c);
  return most;
}

FlightLimits flight_limits(const RunConfig& c) {
  const std::uint64_t full = in_flight_of(c);
  const FlightRamp ramp = ramp_of(c, full).value_or(FlightRamp{});
  const double length = real(c.schedule_targets());
  return {.full = full,
          .most = in_flight_most(c),
          .fewest = fewest_of(c, full),
          .begin = ramp.begin * length,
          .end = ramp.end * length};
}

std::uint64_t FlightLimits::at(std::uint64_t run_targets) const {
  const double now = real(run_targets);
  if (now >= end) return full;
  if (now <= begin) return fewest;
  return fewest + static_cast<std::uint64_t>((now - begin) / (end - begin) * real(full - fewest));
}

std::uint64_t FlightLimits::most_at(std::uint64_t run_targets) const { return at(run_targets) * most / full; }

double full_in_flight_share(const RunConfig& c, std::uint64_t run_targets) {
  const FlightLimits limits = flight_limits(c);
  if (!flight_ramp(c) || limits.fewest == limits.full) return 1;
  const double now = real(run_targets);
  return now <= limits.end ? 0 : (now - limits.end) / now;
}

std::uint64_t evaluations_in_flight(const RunConfig& c) { return std::max(in_flight_of(c), fill_of(c)); }

FlightPlan plan_flight(const RunConfig& config) {
  RunConfig automatic = config;
  automatic.pipeline.in_flight = {};
  FlightPlan plan{.window = window_of(config),
                  .fill = fill_of(config),
                  .in_flight = in_flight_of(config),
                  .automatic = in_flight_of(automatic),
                  .reason = {},
                  .rows = {},
                  .warning = price_warning(config),
                  .fillings = pipe_fillings(config)};
  plan.reason = reason_of(automatic, plan.automatic);
  std::set<std::uint64_t> numbers{plan.in_flight, plan.automatic};
  for (std::uint64_t n = 1; n <= std::min(2 * plan.fill, kInFlightMax); n *= 2) numbers.insert(n);
  for (const std::uint64_t n : numbers) plan.rows.push_back(row_of(config, n));
  return plan;
}

std::vector<PipeFilling> pipe_fillings(const RunConfig& c) {
  if (c.pipeline.in_flight.given || in_flight_of(c) >= fill_of(c)) return {};
  std::vector<PipeFilling> fillings;
  if (auto filling = larger_steps(c)) fillings.push_back(*std::move(filling));
  RunConfig more = c;
  more.pipeline.in_flight = static_cast<std::uint32_t>(std::min(fill_of(c), kInFlightMax));
  if (check_config(more, "").ok())
    fillings.push_back(filling_of(more, {"[pipeline] in_flight = " + std::to_string(*more.pipeline.in_flight.given)}));
  return fillings;
}

std::string text_of(const PipeFilling& filling) {
  std::string text = "pipe " + std::to_string(std::lround(100 * filling.pipe_use)) + " %, loss + " +
                     percent(std::log1p(filling.price));
  if (filling.steps > 0) text += ", " + std::to_string(filling.steps) + " steps";
  if (filling.steps > 0 && filling.steps < kInnerStepsWanted)
    text += ": fewer than " + std::to_string(kInnerStepsWanted) + " learn visibly less";
  return text;
}

std::optional<std::string> pipe_notice(const RunConfig& c) {
  const std::vector<PipeFilling> fillings = pipe_fillings(c);
  if (c.pipeline.in_flight.given || in_flight_of(c) >= fill_of(c)) return std::nullopt;
  const std::uint64_t n = in_flight_of(c);
  std::string text = "in_flight = \"auto\" leaves the pipe at about " +
                     std::to_string(std::lround(100 / slowness(c, n))) + " % of its use: " + reason_of(c, n);
  std::string ways;
  for (const PipeFilling& filling : fillings) {
    ways += ways.empty() ? ". HINT: in RUN.toml " : ", or ";
    for (const std::string& line : filling.lines) ways += (&line == &filling.lines.front() ? "" : " and ") + line;
    ways += " (" + text_of(filling) + ")";
  }
  return text + ways + "; `shoal plan RUN.toml` shows the choice";
}

std::optional<std::string> price_warning(const RunConfig& c) {
  const std::uint64_t n = in_flight_of(c);
  const double price = price_of(c, n);
  if (part_of_loss(price) <= kPriceWarned) return std::nullopt;
  std::optional<Repair> best;
  double least = price;
  for (Repair& repair : repairs_of(c)) {
    if (!check_config(repair.config, "").ok()) continue;
    const double then = price_of(repair.config, in_flight_of(repair.config));
    if (then >= least) continue;
    least = then;
    best = std::move(repair);
    if (part_of_loss(then) <= kPriceWarned) break;
  }
  return "with " + std::to_string(n) + " microbatches in flight gradients will be about " +
         formatted("%.2f", mean_delay(c, n)) + " inner steps late, which is expected to cost " + percent(price) +
         " of the validation loss. HINT: " +
         (best ? best->key + " in RUN.toml brings that down to " + percent(least) + "; " : "") +
         "shoal plan shows what other numbers cost";
}

}  // namespace shoal
