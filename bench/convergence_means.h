#pragma once
// What rows of `shoal-bench convergence` come to: means over seeds beside the uncoded ones, as a table and as JSON.
// Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/convergence_grid.h"

namespace shoal {

// What a pair of codecs came to, over the seeds, beside the same phase uncoded.
struct ConvergenceMean {
  ConvergencePhase phase = ConvergencePhase::kTrain;
  std::string text;
  CodecPair codecs;
  std::uint64_t tokens = 0, seeds = 0;
  double validation = 0, lowest = 0, highest = 0;  // nats a target: mean, least and most of the seeds
  double train_loss = 0;                           // nats a target, mean
  double forward_bytes = 0, backward_bytes = 0;    // a text token, mean
  double delta_share = 0;                          // of the frames of a codec of differences
  std::vector<LossPoint> curve;                    // mean of those of the seeds
  // None where the phase was not trained uncoded, or not with the same seeds.
  struct Beside {
    double ratio = 0;  // of the mean to the uncoded one
    // Nats a target beyond the uncoded training of the same seed: mean, range.
    double apart = 0, apart_least = 0, apart_most = 0;
    // In standard deviations of the uncoded seeds; none of one seed.
    std::optional<double> sigmas{};
    // At most kNoiseSigmas of them, either way.
    std::optional<bool> within_noise{};
  };
  std::optional<Beside> beside;
};
inline constexpr double kNoiseSigmas = 2;
// In the order in which the rows name them first.
std::vector<ConvergenceMean> convergence_means(const std::vector<ConvergenceRow>& rows);
std::string convergence_table(const std::vector<ConvergenceMean>& means);
std::string convergence_json(const std::vector<ConvergenceMean>& means);  // one object a line

}  // namespace shoal
