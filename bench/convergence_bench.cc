#include "bench/convergence_bench.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/convergence_means.h"
#include "common/os/thread_loop.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

std::string cell_text(const ConvergenceArm& arm) {
  return std::string(name_of(arm.phase)) + " " + arm.codecs.forward + "/" + arm.codecs.backward + ", seed " +
         std::to_string(arm.seed);
}

class ConvergenceBench {
 public:
  ConvergenceBench(const ConvergenceOptions& options, SoloCells cells)
      : options_(options), cells_(std::move(cells)), setting_(options.setting), file_(options.rows) {
    for (std::string* text : {&setting_.text, &setting_.tune_text})
      if (!text->empty()) *text = fs::absolute(*text).string();
  }

  // The rows of the whole grid, in its order.
  Result<std::vector<ConvergenceRow>> run() {
    SHOAL_TRY(file_.read([this](const std::string& line) {
      auto row = parse_convergence_row(line);
      if (row) rows_.push_back(*std::move(row));
      return row.has_value();
    }));
    std::vector<CodecPair> codecs;
    for (const std::string& text : options_.codecs) {
      SHOAL_ASSIGN(codecs.emplace_back(), codec_pair(text));
    }
    const auto arms = convergence_arms(setting_, codecs, options_.seeds);
    std::vector<ConvergenceRow> found;
    for (std::size_t i = 0; i < arms.size(); ++i) {
      SHOAL_ASSIGN(ConvergenceRow row, row_of(arms[i], std::to_string(i + 1) + " of " + std::to_string(arms.size())));
      found.push_back(std::move(row));
    }
    return found;
  }

 private:
  Result<ConvergenceRow> row_of(const ConvergenceArm& arm, const std::string& place) {
    SHOAL_ASSIGN(const std::string key, convergence_key(setting_, arm));
    const auto known = std::ranges::find(rows_, key, &ConvergenceRow::key);
    if (known != rows_.end()) return *known;
    SHOAL_ASSIGN(ConvergenceRow row, train(arm, key));
    SHOAL_TRY(file_.append(convergence_row_text(row)));
    std::fprintf(stderr, "%s: %s: %.4f in %.0f s\n", place.c_str(), cell_text(arm).c_str(), row.validation,
                 row.seconds);
    rows_.push_back(row);
    return row;
  }

  // What the seed learnt uncoded is kept for its fine-tuning.
  Result<ConvergenceRow> train(const ConvergenceArm& arm, const std::string& key) {
    std::string from;
    if (arm.phase == ConvergencePhase::kFineTune) {
      SHOAL_ASSIGN(from, model_of(arm.seed));
    }
    SHOAL_ASSIGN(const std::string toml, convergence_toml(setting_, arm, from));
    const std::string events = cells_.folder() + "/events.jsonl", unfinished = folder_of(key) + ".new";
    const bool kept = arm.phase == ConvergencePhase::kTrain && arm.codecs == kUncoded && !setting_.tune_text.empty();
    std::vector<std::string> more = {"--wire", "--events", events};
    if (kept) more.insert(more.end(), {"--save", unfinished});
    std::error_code none;
    fs::remove(events, none);
    fs::remove_all(unfinished, none);
    const TimePoint begin = monotonic_now();
    SHOAL_ASSIGN(const std::string printed, cells_.train(toml, more, cell_text(arm)));
    if (kept && !fs::exists(folder_of(key))) {
      std::error_code failure;
      fs::rename(unfinished, folder_of(key), failure);
      if (failure) return make_error(ErrorCode::kIo, unfinished + " cannot be renamed: " + failure.message());
    }
    std::ostringstream lines;
    lines << std::ifstream(events, std::ios::binary).rdbuf();
    SHOAL_ASSIGN(ConvergenceRow row, convergence_row(printed, lines.str()));
    row.key = key;
    row.arm = arm;
    row.text = fs::path(arm.phase == ConvergencePhase::kFineTune ? setting_.tune_text : setting_.text).filename();
    row.seconds = seconds_of(monotonic_now() - begin);
    return row;
  }

  // The folder of what this seed learnt uncoded, which is trained again when it is gone.
  Result<std::string> model_of(std::uint64_t seed) {
    const ConvergenceArm uncoded{ConvergencePhase::kTrain, kUncoded, seed};
    SHOAL_ASSIGN(const std::string key, convergence_key(setting_, uncoded));
    if (!fs::exists(folder_of(key))) SHOAL_TRY(train(uncoded, key));
    return folder_of(key);
  }

  std::string folder_of(const std::string& key) const { return fs::absolute(fs::path(options_.models) / key).string(); }

  const ConvergenceOptions& options_;
  SoloCells cells_;
  ConvergenceSetting setting_;
  RowsFile file_;
  std::vector<ConvergenceRow> rows_;
};

}  // namespace

int run_convergence_bench(const ConvergenceOptions& options) {
  return run_grid(options, [&](SoloCells cells) -> Result<std::string> {
    SHOAL_ASSIGN(const auto rows, ConvergenceBench(options, std::move(cells)).run());
    const auto means = convergence_means(rows);
    return options.json ? convergence_json(means) : convergence_table(means);
  });
}

}  // namespace shoal
