#include "bench/staleness_bench.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/os/thread_loop.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

class StalenessBench {
 public:
  StalenessBench(const StalenessOptions& options, SoloCells cells)
      : options_(options), cells_(std::move(cells)), setting_(options.setting), file_(options.rows) {
    setting_.text = fs::absolute(setting_.text).string();
  }

  // The rows of the whole grid, in its order.
  Result<std::vector<StalenessRow>> run() {
    SHOAL_TRY(file_.read([this](const std::string& line) {
      auto row = parse_row(line);
      if (row) rows_.push_back(*std::move(row));
      return row.has_value();
    }));
    SHOAL_ASSIGN(const std::vector<StalenessArm> arms, grid());
    std::vector<StalenessRow> found;
    for (std::size_t i = 0; i < arms.size(); ++i) {
      SHOAL_ASSIGN(const std::string toml, staleness_toml(setting_, arms[i]));
      const std::string key = staleness_key(toml, arms[i].profile);
      const StalenessRow* known = find_row(rows_, key);
      if (known == nullptr) {
        SHOAL_ASSIGN(StalenessRow row, train(arms[i], toml));
        row.key = key;
        SHOAL_TRY(file_.append(row_text(row)));
        std::fprintf(stderr, "%zu of %zu: delay %s, look-ahead %s, lr %g, seed %llu: %.4f in %.0f s\n", i + 1,
                     arms.size(), row.delay.c_str(), row.look_ahead.c_str(), row.lr,
                     static_cast<unsigned long long>(row.seed), row.validation, row.seconds);
        rows_.push_back(std::move(row));
        known = &rows_.back();
      }
      found.push_back(*known);
      found.back().delay = arms[i].delay;  // the same cell may have been named otherwise before
    }
    return found;
  }

 private:
  Result<std::vector<StalenessArm>> grid() const {
    std::vector<std::pair<std::string, DelayProfile>> delays;
    for (const std::string& text : options_.delays) {
      SHOAL_ASSIGN(DelayProfile profile, delays_of_means(text, setting_.stages));
      delays.emplace_back(text, std::move(profile));
    }
    for (const std::string& path : options_.profiles) {
      SHOAL_ASSIGN(DelayProfile profile, load_delay_profile(path));
      delays.emplace_back(path, std::move(profile));
    }
    std::vector<StalenessArm> arms;
    for (const auto& [name, profile] : delays)
      for (const std::string& look_ahead : options_.look_aheads)
        for (const double rate : options_.rates)
          for (const std::uint64_t seed : options_.seeds) arms.push_back({name, profile, look_ahead, rate, seed});
    return arms;
  }

  Result<StalenessRow> train(const StalenessArm& arm, const std::string& toml) {
    const std::string delays = cells_.folder() + "/delays.json";
    SHOAL_TRY(save_delay_profile(delays, arm.profile));
    const TimePoint begin = monotonic_now();
    const std::string cell = "delay " + arm.delay + ", lr " + std::to_string(arm.lr);
    SHOAL_ASSIGN(const std::string text, cells_.train(toml, {"--delay-profile", delays}, cell));
    const auto result = nlohmann::json::parse(text, nullptr, false);
    const double validation = result.is_object() ? result.value("val_loss", -1.0) : -1.0;
    if (validation < 0) return make_error(ErrorCode::kMalformed, "solo told no loss at " + cell);
    return StalenessRow{.key = {},
                        .delay = arm.delay,
                        .look_ahead = arm.look_ahead,
                        .lr = arm.lr,
                        .seed = arm.seed,
                        .validation = validation,
                        .seconds = seconds_of(monotonic_now() - begin)};
  }

  const StalenessOptions& options_;
  SoloCells cells_;
  StalenessSetting setting_;
  RowsFile file_;
  std::vector<StalenessRow> rows_;
};

}  // namespace

int run_staleness_bench(const StalenessOptions& options) {
  return run_grid(options, [&](SoloCells cells) -> Result<std::string> {
    SHOAL_ASSIGN(const auto rows, StalenessBench(options, std::move(cells)).run());
    const auto arms = best_of_arms(rows);
    return options.json ? staleness_json(arms) : staleness_table(arms);
  });
}

}  // namespace shoal
