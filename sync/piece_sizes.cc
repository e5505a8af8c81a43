#include "sync/piece_sizes.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace shoal {
namespace {

template <class T>
T lower_median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Error too_large_error(double times, const char* beside, double allowed) {
  std::ostringstream text;
  text << "its values are " << std::setprecision(2) << times << " times those of " << beside << ", and at most "
       << allowed << " times as large ones are taken";
  return make_error(ErrorCode::kMalformed, text.str());
}

// What a target contributes to it. A member says its weight itself, so a large one excuses only so much.
double size_per_target(const PieceSize& piece, std::uint64_t median_weight) {
  const double believed =
      std::min(static_cast<double>(piece.weight), kRefusedFactor * static_cast<double>(median_weight));
  return believed > 0 ? piece.size / believed : 0;
}

std::uint64_t median_weight_of(const std::vector<PieceSize>& pieces) {
  std::vector<std::uint64_t> weights;
  for (const PieceSize& piece : pieces)
    if (piece.weight > 0) weights.push_back(piece.weight);
  return weights.empty() ? 0 : lower_median(weights);
}

std::vector<double> known_sizes(const std::vector<PieceSize>& pieces) {
  std::vector<double> sizes;
  for (const PieceSize& piece : pieces)
    if (piece.weight > 0 && piece.size > 0) sizes.push_back(piece.size);
  return sizes;
}

struct Medians {
  double ratio = 0, agreement = 0;
};
std::optional<Medians> medians_of(const std::vector<SumBeside>& sums) {
  std::vector<double> ratios, agreements;
  for (const SumBeside& sum : sums) {
    if (sum.size <= 0 || sum.own_size <= 0) continue;
    ratios.push_back(sum.size / sum.own_size);
    agreements.push_back(sum.agreement);
  }
  if (ratios.size() < kJudged) return std::nullopt;
  return Medians{lower_median(ratios), lower_median(agreements)};
}

}  // namespace

// As it is and per target: each alone excuses. A member of few steps beside others with many is large per target, and
// one of many steps is large in whole.
std::optional<RefusedPiece> refused_piece(const std::vector<PieceSize>& pieces, std::size_t self) {
  const std::vector<double> sizes = known_sizes(pieces);
  if (sizes.size() < 2) return std::nullopt;
  const std::uint64_t median_weight = median_weight_of(pieces);
  std::vector<double> per_target;
  for (const PieceSize& piece : pieces)
    if (piece.weight > 0 && piece.size > 0) per_target.push_back(size_per_target(piece, median_weight));
  const double median = lower_median(sizes), median_per_target = lower_median(per_target);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (i != self && pieces[i].weight > 0 && pieces[i].size > kRefusedFactor * median &&
        size_per_target(pieces[i], median_weight) > kRefusedFactor * median_per_target)
      return RefusedPiece{i, too_large_error(pieces[i].size / median, "the round's median", kRefusedFactor)};
  return std::nullopt;
}

std::vector<double> clip_factors(const std::vector<PieceSize>& pieces) {
  std::vector<double> factors(pieces.size(), 1);
  const std::vector<double> sizes = known_sizes(pieces);
  if (sizes.size() < kJudged) return factors;
  const double median = lower_median(sizes), median_weight = static_cast<double>(median_weight_of(pieces));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const double longer = std::clamp(static_cast<double>(pieces[i].weight) / median_weight, 1.0, kRefusedFactor);
    if (pieces[i].size > 0) factors[i] = std::min(1.0, kClipFactor * median * longer / pieces[i].size);
  }
  return factors;
}

std::optional<RefusedPiece> refused_sum(const std::vector<SumBeside>& sums, std::size_t members,
                                        std::optional<std::size_t> own) {
  const std::optional<Medians> median = medians_of(sums);
  const double allowed = 4 * std::sqrt(static_cast<double>(members));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const SumBeside& sum = sums[i];
    if (i == own || sum.own_size <= 0) continue;
    const double times = sum.size / sum.own_size;
    if (times > kRefusedFactor)
      return RefusedPiece{i, too_large_error(times, "what this member brought", kRefusedFactor)};
    if (!median) continue;
    if (times > allowed * median->ratio)
      return RefusedPiece{i,
                          too_large_error(times / median->ratio, "the other parts, beside what was brought", allowed)};
    if (sum.agreement < -kPointsAlong && median->agreement > kPointsAlong)
      return RefusedPiece{i, make_error(ErrorCode::kMalformed,
                                        "its sum points against what this member brought, and the others along it")};
  }
  return std::nullopt;
}

}  // namespace shoal
