#pragma once
// What one member's piece, or the sum that one member made, may weigh in a round beside those of the others. Pure;
// thread-safe. Nobody's word is behind these: the member that judges measures sizes itself, and what is normal is a
// median over members, each worth one.
//
// Clipping. A piece that is larger than kClipFactor times the round's (lower) median is scaled down to that: the norm
// clipping of Karimireddy, He and Jaggi 2021, "Learning from History for Byzantine Robust Optimization"
// (arXiv:2012.10333), around zero. One member of N then moves the mean by 2 / N of an honest step at most, whatever it
// sends. A member of more targets than the median may bring as much more.
//
// Sums. Where the sums of the other parts point as this member does, one that points against it is no sum of these
// pieces. Where they do not, nothing follows: gradients of small steps are noise in few directions, and honest sums of
// them point anywhere. And where members agree in one part of the parameters and not in another, the sums differ by the
// root of N beside what this member brought; by four times that, one of them is something else. None is so large as if
// each target had contributed kRefusedFactor times what ours did.
#include <cstdint>
#include <optional>
#include <vector>

#include "common/result.h"

namespace shoal {

struct PieceSize {
  std::uint64_t weight = 0;  // targets, as its member says
  double size = 0;           // root mean square; 0: it says nothing
};

// Far beyond anything honest: a piece is refused that is so many times as large as the median, both as it is and per
// target of its weight. Honest members differ by the root of the number of their steps, about.
inline constexpr double kRefusedFactor = 64;
inline constexpr double kClipFactor = 2;
inline constexpr double kPointsAlong = 0.7;  // a cosine
inline constexpr std::size_t kJudged = 3;    // so many have a median that one of them does not make

struct RefusedPiece {
  std::size_t at = 0;  // among those that were judged
  Error error;
};
// The first piece, `self`'s aside, that is refused.
std::optional<RefusedPiece> refused_piece(const std::vector<PieceSize>& pieces, std::size_t self);

// What each piece is multiplied by, 0 < factor <= 1. All 1 below three pieces that say something: of two, nobody knows
// which is normal.
std::vector<double> clip_factors(const std::vector<PieceSize>& pieces);

// A part's sum beside the piece that this member brought to it.
struct SumBeside {
  double size = 0;       // root mean square; 0: it says nothing
  double own_size = 0;   // of our piece, times the targets of all over ours; 0: it says nothing
  double agreement = 0;  // cosine with our piece; 0: it says nothing
};
// The first sum, `own` aside, that cannot be one of the pieces of so many members. `sums`: of every part.
std::optional<RefusedPiece> refused_sum(const std::vector<SumBeside>& sums, std::size_t members,
                                        std::optional<std::size_t> own);

}  // namespace shoal
