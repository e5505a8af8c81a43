#pragma once
// What `shoal-bench staleness` trains and what it makes of the losses: arms, run files, rows, the table. Pure;
// thread-safe.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/grid_text.h"
#include "common/result.h"
#include "events/delay_profile.h"

namespace shoal {

struct StalenessSetting : GridSetting {
  StalenessSetting() : GridSetting{.tokens = 500'000, .inner_batch = 2048} {}
};

// One training.
struct StalenessArm {
  std::string delay;  // as the user named it: a mean, one a stage, or a file
  DelayProfile profile;
  std::string look_ahead;  // of [optimizer], as the run file says it; "0": none
  double lr = 0;
  std::uint64_t seed = 0;
};

// "0.5", the mean delay of every stage in inner steps, or "2/1.5/1", one a stage: each gradient is late by the whole
// numbers below and above it, in the shares that make it the mean. ERRORS: kInput (no number, below 0 or above
// kBins - 2, another number of stages).
Result<DelayProfile> delays_of_means(const std::string& text, std::uint16_t stages);

// The run file of an arm. ERRORS: kInput (one of `sets` is not of its form).
Result<std::string> staleness_toml(const StalenessSetting& setting, const StalenessArm& arm);
// Names what an arm trains: 16 hex digits, of its run file and its delays. Not of the text behind the path.
std::string staleness_key(const std::string& toml, const DelayProfile& profile);

// A line of the file of rows.
struct StalenessRow {
  std::string key, delay, look_ahead;
  double lr = 0;
  std::uint64_t seed = 0;
  double validation = 0;  // nats a target
  double seconds = 0;
};
std::string row_text(const StalenessRow& row);                 // one line, schema "shoal.staleness/1"
std::optional<StalenessRow> parse_row(std::string_view line);  // none: torn, or no row
// An arm's row among those that were trained; null: it has not been.
const StalenessRow* find_row(const std::vector<StalenessRow>& rows, const std::string& key);

// The best learning rate of one delay and look-ahead, by the mean over the seeds.
struct StalenessBest {
  std::string delay, look_ahead;
  double lr = 0;
  double validation = 0, lowest = 0, highest = 0;  // mean, least and most of the seeds
  std::uint64_t seeds = 0;
  bool at_edge = false;  // the smallest or the largest rate of several: a better one may lie outside
  // (L_none - L) / (L_none - L_0): L_none is the loss at this delay without look-ahead, L_0 the loss without both. None
  // where one of the two was not trained or delay costs nothing.
  std::optional<double> recovered;
};
// In the order in which the rows name them first.
std::vector<StalenessBest> best_of_arms(const std::vector<StalenessRow>& rows);
std::string staleness_table(const std::vector<StalenessBest>& arms);
std::string staleness_json(const std::vector<StalenessBest>& arms);  // one object a line

}  // namespace shoal
