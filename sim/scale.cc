#include "sim/scale.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "common/formatted.h"
#include "sim/swarm.h"
#include "transport/envelope.h"

namespace shoal {

namespace {

constexpr std::uint16_t kStagesMin = 3;
constexpr std::size_t kPeersOfStage = 50;
constexpr std::size_t kTypeOffset = 6;     // in an envelope: docs/WIRE.md
constexpr std::uint64_t kInnerSteps = 10;  // of three microbatches: a round each 15 s
constexpr double kRoundCap = 20;
constexpr Duration kSettled = 2s;  // until what came at once is told to all
// A machine that somebody lends: a microbatch takes it half a second.
constexpr SimPace kScalePace{.forward = 200ms, .backward = 300ms};

bool is_list(const Bytes& message) {
  static const auto whole = static_cast<std::uint8_t>(Message(Members{}).index());
  static const auto change = static_cast<std::uint8_t>(Message(MembersChange{}).index());
  if (message.size() <= kTypeOffset) return false;
  return message.data()[kTypeOffset] == whole || message.data()[kTypeOffset] == change;
}

class ScaleRun {
 public:
  explicit ScaleRun(const ScaleOptions& options) : options_(options), rng_(options.seed ^ 0x5ca1e), swarm_(shape()) {
    swarm_.network().set_watch([this](const Address& from, Lane lane, const Bytes& message) {
      ++messages_;
      if (from != kSimLaunchAddress) {
        peers_bytes_ += message.size();
        return;
      }
      launch_bytes_ += message.size();
      if (lane == Lane::kControl && is_list(message)) list_bytes_ += message.size();
    });
    swarm_.network().host(kSimLaunchAddress).meter_cpu();
    swarm_.run_for(500ms);  // by then the launching process listens
    for (std::size_t i = 0; i < options_.peers; ++i) swarm_.add_peer();
  }

  ScaleFigures run() {
    figures_.peers = options_.peers;
    figures_.stages = stages();
    wait_for_all();
    measure();
    return figures_;
  }

 private:
  std::uint16_t stages() const {
    if (options_.stages > 0) return options_.stages;
    return std::max(kStagesMin, static_cast<std::uint16_t>(options_.peers / kPeersOfStage));
  }

  SwarmOptions shape() const {
    SwarmOptions options;
    options.seed = options_.seed;
    options.stages = stages();
    options.replicas = 0;  // they are added here
    options.config = small_config(RuleId::kDiloco, stages(), 1'000'000'000);
    options.config.pipeline.replicas = static_cast<std::uint32_t>(options_.peers / stages());
    options.config.pipeline.in_flight = static_cast<std::uint32_t>(options_.peers);
    options.config.sync.inner_steps = kInnerSteps;
    options.config.sync.round_cap_s = kRoundCap;
    options.pace = kScalePace;
    options.keep_events = false;
    return options;
  }

  const Authority& authority() const { return swarm_.launch()->authority(); }
  std::uint64_t count(bool serving) const {
    std::uint64_t all = 0;
    for (const StageStatus& stage : authority().status()) all += serving ? stage.serving : stage.members;
    return all;
  }

  void wait_for_all() {
    const TimePoint start = swarm_.loop().now();
    for (; swarm_.loop().now() - start < options_.patience; swarm_.run_for(100ms)) {
      const double passed = seconds_of(swarm_.loop().now() - start);
      if (figures_.admitted_per_second == 0 && count(false) >= options_.peers)
        figures_.admitted_per_second = static_cast<double>(options_.peers) / passed;
      figures_.serving_after = passed;
      if (count(true) >= options_.peers) break;
    }
    swarm_.run_for(kSettled);
  }

  void measure() {
    const std::uint64_t launch = launch_bytes_, lists = list_bytes_, peers = peers_bytes_, messages = messages_;
    const RunSummary before = swarm_.launch()->summary();
    const Duration cpu = swarm_.network().host(kSimLaunchAddress).cpu();
    const auto began = std::chrono::steady_clock::now();
    const TimePoint start = swarm_.loop().now(), end = start + options_.measured;
    const bool churns = options_.churn_period > Duration(0);
    while (swarm_.loop().now() < end) {
      swarm_.loop().run_until(churns ? std::min(end, swarm_.loop().now() + options_.churn_period) : end);
      if (churns && swarm_.loop().now() < end) churn();
    }
    figures_.seconds = seconds_of(std::chrono::steady_clock::now() - began);
    figures_.virtual_seconds = seconds_of(swarm_.loop().now() - start);
    const auto rate = [&](std::uint64_t amount) { return static_cast<double>(amount) / figures_.virtual_seconds; };
    figures_.launch_bytes = rate(launch_bytes_ - launch);
    figures_.list_bytes = rate(list_bytes_ - lists);
    figures_.peers_bytes = rate(peers_bytes_ - peers);
    figures_.messages = rate(messages_ - messages);
    const Duration spent = swarm_.network().host(kSimLaunchAddress).cpu() - cpu;
    figures_.launch_cpu = seconds_of(spent) / figures_.virtual_seconds;
    const RunSummary after = swarm_.launch()->summary();
    figures_.committed = after.committed - before.committed;
    figures_.rounds = after.rounds - before.rounds;
    figures_.connections = swarm_.network().connections();
    figures_.serving = count(true);
    figures_.members = count(false);
  }

  void churn() {
    std::size_t victim = rng_.below(swarm_.peers().size());
    while (!swarm_.peers()[victim]->alive) victim = rng_.below(swarm_.peers().size());
    swarm_.kill_peer(victim);
    swarm_.add_peer();
    ++figures_.churned;
  }

  ScaleOptions options_;
  Rng rng_;
  ScaleFigures figures_;
  std::uint64_t launch_bytes_ = 0, list_bytes_ = 0, peers_bytes_ = 0, messages_ = 0;
  Swarm swarm_;
};

std::string number(double value) { return formatted(value < 1000 ? "%.4g" : "%.0f", value); }

}  // namespace

ScaleFigures measure_scale(const ScaleOptions& options) { return ScaleRun(options).run(); }

std::string text_of(const ScaleFigures& f) {
  const double peers = static_cast<double>(std::max<std::uint64_t>(1, f.peers));
  const auto n = [](std::uint64_t value) { return std::to_string(value); };
  return n(f.peers) + " peers in " + n(f.stages) + " stages: " + n(f.members) + " members, " + n(f.serving) +
         " serve, " + n(f.connections) + " connections; admitted " + number(f.admitted_per_second) +
         " a second, all served after " + number(f.serving_after) + " virtual s\n" + number(f.virtual_seconds) +
         " virtual s in " + number(f.seconds) + " s (" + number(f.virtual_per_second()) + " a second), " +
         n(f.churned) + " peers replaced, " + n(f.committed) + " microbatches, " + n(f.rounds) +
         " rounds\na virtual second: launch sends " + number(f.launch_bytes) + " bytes (" +
         number(f.launch_bytes / peers) + " a peer), lists " + number(f.list_bytes) + " (" +
         number(f.list_bytes / peers) + " a peer), a peer sends " + number(f.peers_bytes / peers) + ", " +
         number(f.messages) + " messages; launch computes " + number(f.launch_cpu) + " s\n";
}

std::string json_of(const ScaleFigures& f) {
  const double peers = static_cast<double>(std::max<std::uint64_t>(1, f.peers));
  const auto four_digits = [](double value) { return std::stod(number(value)); };
  const nlohmann::ordered_json out = {{"peers", f.peers},
                                      {"stages", f.stages},
                                      {"members", f.members},
                                      {"serving", f.serving},
                                      {"connections", f.connections},
                                      {"churned", f.churned},
                                      {"committed", f.committed},
                                      {"rounds", f.rounds},
                                      {"admitted_per_second", four_digits(f.admitted_per_second)},
                                      {"serving_after_s", four_digits(f.serving_after)},
                                      {"virtual_seconds", four_digits(f.virtual_seconds)},
                                      {"seconds", four_digits(f.seconds)},
                                      {"virtual_per_second", four_digits(f.virtual_per_second())},
                                      {"launch_bytes_per_second", four_digits(f.launch_bytes)},
                                      {"list_bytes_per_second", four_digits(f.list_bytes)},
                                      {"list_bytes_per_peer_per_second", four_digits(f.list_bytes / peers)},
                                      {"peer_bytes_per_second", four_digits(f.peers_bytes / peers)},
                                      {"messages_per_second", four_digits(f.messages)},
                                      {"launch_cpu_per_virtual_second", four_digits(f.launch_cpu)}};
  return out.dump();
}

}  // namespace shoal
