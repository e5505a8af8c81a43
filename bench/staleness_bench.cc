#include "bench/staleness_bench.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/os/executable.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "demo/file_tail.h"
#include "demo/offspring.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRowsBytesMax = std::size_t{64} << 20;
constexpr std::size_t kLinesShown = 4;

class StalenessBench {
 public:
  StalenessBench(const StalenessOptions& options, std::string shoal, std::string folder)
      : options_(options), shoal_(std::move(shoal)), folder_(std::move(folder)) {
    setting_ = options_.setting;
    setting_.text = fs::absolute(setting_.text).string();
  }

  // The rows of the whole grid, in its order.
  Result<std::vector<StalenessRow>> run() {
    SHOAL_TRY(read_rows());
    SHOAL_ASSIGN(const std::vector<StalenessArm> arms, grid());
    std::vector<StalenessRow> found;
    for (std::size_t i = 0; i < arms.size(); ++i) {
      SHOAL_ASSIGN(const std::string toml, staleness_toml(setting_, arms[i]));
      const std::string key = staleness_key(toml, arms[i].profile);
      const StalenessRow* known = find_row(rows_, key);
      if (known == nullptr) {
        SHOAL_ASSIGN(StalenessRow row, train(arms[i], toml));
        row.key = key;
        SHOAL_TRY(append(row));
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

  // A row that a killed bench left torn is trained again.
  Status read_rows() {
    if (!fs::exists(options_.rows)) return {};
    SHOAL_ASSIGN(const Bytes bytes, read_file(options_.rows, kRowsBytesMax));
    std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    std::size_t passed_over = 0;
    for (std::string line; std::getline(lines, line);) {
      auto row = parse_row(line);
      row ? rows_.push_back(*std::move(row)) : static_cast<void>(++passed_over);
    }
    ends_torn_ = bytes.size() > 0 && bytes.data()[bytes.size() - 1] != '\n';
    if (passed_over > 0)
      std::fprintf(stderr, "%s: %zu lines are no rows and were passed over\n", options_.rows.c_str(), passed_over);
    return {};
  }

  Status append(const StalenessRow& row) {
    std::ofstream file(options_.rows, std::ios::binary | std::ios::app);
    if (std::exchange(ends_torn_, false)) file << '\n';
    file << row_text(row);
    file.close();
    if (!file) return make_error(ErrorCode::kIo, options_.rows + " cannot be written. HINT: does its folder exist?");
    return {};
  }

  Result<StalenessRow> train(const StalenessArm& arm, const std::string& toml) {
    const std::string run = folder_ + "/RUN.toml", delays = folder_ + "/delays.json", output = folder_ + "/solo.out",
                      error = folder_ + "/solo.err";
    SHOAL_TRY(replace_file(run, {Bytes::copy_of(std::string_view(toml))}));
    SHOAL_TRY(save_delay_profile(delays, arm.profile));
    const TimePoint begin = monotonic_now();
    SHOAL_ASSIGN(Offspring child, Offspring::start({{shoal_, "solo", run, "--delay-profile", delays, "--json",
                                                     "--device", "cpu", "--threads", std::to_string(options_.threads)},
                                                    output,
                                                    error}));
    while (!child.wait_until(monotonic_now() + 100ms))
      if (stop_wanted())
        return make_error(ErrorCode::kInterrupted, "interrupted; what is in " + options_.rows + " is kept");
    std::ostringstream text;
    text << std::ifstream(output, std::ios::binary).rdbuf();
    const auto result = nlohmann::json::parse(text.str(), nullptr, false);
    const double validation = result.is_object() ? result.value("val_loss", -1.0) : -1.0;
    if (child.exit_code() != 0 || validation < 0)
      return make_error(ErrorCode::kUnreachable, "solo failed at delay " + arm.delay + ", lr " +
                                                     std::to_string(arm.lr) +
                                                     "; it said:" + last_lines(error, kLinesShown));
    return StalenessRow{.key = {},
                        .delay = arm.delay,
                        .look_ahead = arm.look_ahead,
                        .lr = arm.lr,
                        .seed = arm.seed,
                        .validation = validation,
                        .seconds = seconds_of(monotonic_now() - begin)};
  }

  const StalenessOptions& options_;
  std::string shoal_, folder_;
  StalenessSetting setting_;
  std::vector<StalenessRow> rows_;
  bool ends_torn_ = false;
};

int fail(const Error& error) {
  std::fprintf(stderr, "shoal-bench: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int run_staleness_bench(const StalenessOptions& options, const std::string& shoal) {
  listen_for_stop();
  std::string folder = (fs::temp_directory_path() / "shoal-staleness-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return fail(make_error(ErrorCode::kIo, folder + " cannot be made"));
  const auto rows = StalenessBench(options, shoal, folder).run();
  std::error_code failure;
  fs::remove_all(folder, failure);
  if (!rows.ok()) return fail(rows.error());
  const auto arms = best_of_arms(*rows);
  std::fputs((options.json ? staleness_json(arms) : staleness_table(arms)).c_str(), stdout);
  return 0;
}

int run_staleness_bench(const StalenessOptions& options) {
  const auto shoal = beside_own_program("shoal");
  return shoal.ok() ? run_staleness_bench(options, *shoal) : fail(shoal.error());
}

}  // namespace shoal
