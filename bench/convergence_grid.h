#pragma once
// What `shoal-bench convergence` trains: codecs, arms, run files, rows. What rows come to: convergence_means.h. Pure;
// thread-safe.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/grid_text.h"
#include "common/result.h"

namespace shoal {

struct ConvergenceSetting : GridSetting {
  ConvergenceSetting() : GridSetting{.tokens = 1'000'000, .inner_batch = 1024} {}
  std::string tune_text;  // path of the token file, absolute; empty: nothing is fine-tuned
  std::uint64_t tune_tokens = 500'000;
  double tune_lr = 1e-3;      // training has [optimizer] lr = "auto"
  std::uint64_t points = 10;  // of a curve
};

// Names of [wire].
struct CodecPair {
  std::string forward, backward;
  bool operator==(const CodecPair&) const = default;
};
// "int8", of both directions, or "aq4/int8": forward, backward. ERRORS: kInput (no codec's name; "auto" is none: what
// it takes depends on lines; differences backward).
Result<CodecPair> codec_pair(const std::string& text);
inline const CodecPair kUncoded{"raw", "raw"};

enum class ConvergencePhase : std::uint8_t { kTrain, kFineTune };
std::string_view name_of(ConvergencePhase phase);

// One training. Fine-tuning begins from what the same seed learnt uncoded.
struct ConvergenceArm {
  ConvergencePhase phase = ConvergencePhase::kTrain;
  CodecPair codecs;
  std::uint64_t seed = 0;
};
// In the order in which they are trained: a whole table after each seed.
std::vector<ConvergenceArm> convergence_arms(const ConvergenceSetting& setting, const std::vector<CodecPair>& codecs,
                                             const std::vector<std::uint64_t>& seeds);

// The run file of an arm. `from`: for fine-tuning, the folder of the model it begins from. ERRORS: kInput (one of
// `sets` is not of its form).
Result<std::string> convergence_toml(const ConvergenceSetting& setting, const ConvergenceArm& arm,
                                     const std::string& from);
// Names what an arm trains, and for fine-tuning what its model learnt before; not the text behind a path. ERRORS:
// kInput.
Result<std::string> convergence_key(const ConvergenceSetting& setting, const ConvergenceArm& arm);

struct LossPoint {
  double tokens = 0;
  double validation = 0;  // then, nats a target
  double train = 0;       // mean of the steps since the point before
};
// Each point as an array: tokens, validation, train.
std::vector<std::array<double, 3>> numbers_of(const std::vector<LossPoint>& curve);

// A line of the file of rows.
struct ConvergenceRow {
  std::string key, text;  // the text: its file's name
  ConvergenceArm arm;
  std::uint64_t tokens = 0;
  double validation = 0, train_loss = 0;           // nats a target; the second one over the last tenth of the steps
  double forward_bytes = 0, backward_bytes = 0;    // that crossed, a text token
  std::uint64_t key_frames = 0, delta_frames = 0;  // of codecs of differences
  std::vector<LossPoint> curve;
  double seconds = 0;
};
std::string convergence_row_text(const ConvergenceRow& row);                 // one line, schema "shoal.convergence/1"
std::optional<ConvergenceRow> parse_convergence_row(std::string_view line);  // none: torn, or no row
// What a training was, from what it printed with --json and its event lines. ERRORS: kMalformed.
Result<ConvergenceRow> convergence_row(const std::string& solo_json, std::string_view events);

}  // namespace shoal
