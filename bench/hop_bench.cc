#include "bench/hop_bench.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "bench/hop_profile.h"
#include "bench/hop_run.h"
#include "bench/python_rival.h"
#include "common/os/executable.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "demo/figures.h"
#include "demo/work_folder.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTextBytes = 1u << 20;

// One of the things compared; `rates` has one figure a repeat.
struct Contestant {
  std::string name;
  std::function<Result<HopFigures>()> run;
  std::vector<double> rates{};
  std::vector<std::uint64_t> hop_timers{};  // that fired, each run
  std::optional<HopFigures> newest{};
  std::string skipped{};  // why there is no figure
  double median() const { return median_of(rates); }
};

Status write_text(const std::string& path) {
  Rng rng(1);
  std::string text(kTextBytes, ' ');
  for (char& c : text) c = static_cast<char>(rng.next() % 256);
  return replace_file(path, {Bytes::copy_of(std::string_view(text))});
}

class HopBench {
 public:
  HopBench(const HopBenchOptions& options, std::string program, std::string folder)
      : options_(options),
        program_(std::move(program)),
        folder_(std::move(folder)),
        python_(program_, options.python, folder_),
        runs_({.program = (fs::path(program_).parent_path() / "shoal").string(),
               .netlab = source_file(program_, "netlab"),
               .folder = folder_,
               .say = {},
               .stop = stop_wanted}) {
    setting_.codec = options_.codec;
    setting_.steps = options_.steps;
    setting_.in_flight = options_.in_flight;
    setting_.text = folder_ + "/text";
  }

  Status run() {
    SHOAL_TRY(write_text(setting_.text));
    std::optional<Star> star;
    if (options_.net.empty()) {
      add_solos();
    } else {
      SHOAL_TRY(add_net(star));
    }
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      for (std::size_t i = 0; i < contestants_.size(); ++i) {  // each is first in turn
        SHOAL_TRY(measure(contestants_[(i + static_cast<std::size_t>(repeat)) % contestants_.size()], repeat));
      }
    }
    return failed_;
  }

  bool measured() const {
    return std::ranges::any_of(contestants_, [](const Contestant& c) { return !c.rates.empty(); });
  }

  void print() const {
    std::printf("%-28s %12s %10s %10s\n", "tokens/s", "median", "least", "most");
    for (const Contestant& c : contestants_) {
      if (c.rates.empty()) {
        std::printf("%-28s skipped: %s\n", c.name.c_str(), c.skipped.c_str());
        continue;
      }
      const auto [least, most] = std::minmax_element(c.rates.begin(), c.rates.end());
      std::printf("%-28s %12.0f %10.0f %10.0f\n", c.name.c_str(), c.median(), *least, *most);
    }
    for (const auto& [key, value] : ratios()) std::printf("%-28s %12.3f\n", key.c_str(), value);
    if (shape_) std::printf("%-28s %12.0f\n", "what the link allows", link_bound(setting_, shape_->bits_per_s));
    if (!options_.profile) return;
    for (const Contestant& c : contestants_) {
      if (c.newest && !c.newest->processes.empty())
        std::printf("profile of the last run of %s\n%s", c.name.c_str(), profile_text(*c.newest, setting_).c_str());
    }
  }

  void print_json() const {
    nlohmann::ordered_json out = {
        {"bench", "hop"}, {"codec", options_.codec}, {"repeats", options_.repeats}, {"steps", options_.steps}};
    if (shape_) {
      out["bits_per_s"] = shape_->bits_per_s;
      out["one_way_ms"] = shape_->one_way_ms;
      out["link_bound_tokens_per_s"] = link_bound(setting_, shape_->bits_per_s);
    }
    for (const auto& [key, value] : ratios()) out[key] = value;
    for (const Contestant& c : contestants_) {
      nlohmann::ordered_json one = {{"name", c.name}};
      if (c.rates.empty())
        one["skipped"] = c.skipped;
      else
        one["tokens_per_s"] = c.median(), one["all"] = c.rates, one["hop_timers"] = c.hop_timers;
      out["rates"].push_back(std::move(one));
    }
    std::printf("%s\n", out.dump().c_str());
  }

 private:
  void add_solos() {
    contestants_.push_back({"swarm", [this] { return runs_.swarm(setting_, nullptr); }});
    contestants_.push_back({"solo --threads 2", [this] { return runs_.solo(setting_, 2, 1); }});
    contestants_.push_back({"2 x solo --threads 1", [this] { return runs_.solo(setting_, 1, 2); }});
    contestants_.push_back({"plain PyTorch, 2 threads", [this] { return run_python(); }});
    Contestant& python = contestants_.back();
    python.skipped = python_.missing();
  }

  Status add_net(std::optional<Star>& star) {
    SHOAL_ASSIGN(shape_, parse_net(options_.net, setting_.stages + 1));
    contestants_.push_back({"swarm on loopback", [this] { return runs_.swarm(setting_, nullptr); }});
    contestants_.push_back({"swarm over slow links", [this, &star] { return runs_.swarm(setting_, &*star); }});
    auto made = Star::up(source_file(program_, "netlab"), *shape_, folder_);
    if (!made.ok())
      contestants_.back().skipped = made.error().message;
    else
      star.emplace(*std::move(made));
    return {};
  }

  // One that fails is measured no more: what it and the others have shown stays.
  Status measure(Contestant& contestant, int repeat) {
    if (!contestant.skipped.empty()) return {};
    auto figures = contestant.run();
    if (!figures.ok() && figures.code() == ErrorCode::kInterrupted) return figures.error();
    if (!figures.ok()) {
      contestant.skipped = figures.error().message;
      failed_ = make_error(figures.code(), contestant.name + ": " + contestant.skipped);
      return {};
    }
    contestant.rates.push_back(figures->tokens_per_s);
    contestant.hop_timers.push_back(figures->hop_timers);
    std::fprintf(
        stderr, "repeat %d: %-26s %8.0f tokens/s%s\n", repeat + 1, contestant.name.c_str(), figures->tokens_per_s,
        figures->hop_timers > 0 ? (" (hop timers fired: " + std::to_string(figures->hop_timers) + ")").c_str() : "");
    contestant.newest = *std::move(figures);
    return {};
  }

  double median(const std::string& name) const {
    for (const Contestant& c : contestants_)
      if (c.name == name) return c.median();
    return 0;
  }

  std::vector<std::pair<std::string, double>> ratios() const {
    std::vector<std::pair<std::string, double>> result;
    const auto add = [&](const char* key, const std::string& one, const std::string& other) {
      if (median(one) > 0 && median(other) > 0) result.emplace_back(key, median(one) / median(other));
    };
    add("ratio_solo2", "swarm", "solo --threads 2");
    add("ratio_2x_solo1", "swarm", "2 x solo --threads 1");
    add("ratio_solo2_plain", "solo --threads 2", "plain PyTorch, 2 threads");
    add("ratio_net", "swarm over slow links", "swarm on loopback");
    return result;
  }

  Result<HopFigures> run_python() {
    HopFigures figures;
    SHOAL_ASSIGN(figures.tokens_per_s,
                 python_.tokens_per_s({"--threads", "2", "--steps", std::to_string(setting_.steps), "--warm",
                                       std::to_string(setting_.warm_steps)},
                                      stop_wanted));
    return figures;
  }

  const HopBenchOptions& options_;
  std::string program_, folder_;
  PythonRival python_;
  HopSetting setting_;
  HopRuns runs_;
  std::optional<StarShape> shape_;
  std::vector<Contestant> contestants_;
  Status failed_;  // the last contestant that failed
};

}  // namespace

Status run_hop_bench(const HopBenchOptions& options) {
  SHOAL_ASSIGN(std::string program, own_program());
  listen_for_stop();
  SHOAL_ASSIGN(const WorkFolder folder, WorkFolder::make("hop", options.keep));
  HopBench bench(options, std::move(program), folder.path());
  const Status done = bench.run();
  if (bench.measured()) options.json ? bench.print_json() : bench.print();
  return done;
}

}  // namespace shoal
