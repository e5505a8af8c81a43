#pragma once
// The best layout by a worth that is handed in: found by climbing from several starts, or by looking at every layout
// where there are few. Deterministic: the same seed, the same layout. Thread: any.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "layout/swarm_shape.h"

namespace shoal {

struct LayoutProblem {
  std::uint16_t stages = 1;
  std::vector<std::size_t> kinds{};  // by peer: two of a kind may change places, and nothing changes
  // Each stage keeps as many peers as it has: peers change places, none moves. Else a stage keeps one at least.
  bool sizes_stay = false;
  bool stages_alike = false;  // stages may change places, and nothing changes
  // Takes a whole layout; more is better. Where it is not above `enough`, any number that is not may stand for it.
  std::function<double(const Layout& layout, double enough)> worth{};
  std::function<bool(std::size_t peer, std::uint16_t stage)> fits{};  // none: everywhere
};

struct FoundLayout {
  Layout layout{};
  double worth = 0;
  std::uint64_t asked = 0;  // how often worth was
};

struct SearchBounds {
  std::uint64_t seed = 1;
  std::size_t kicks = 24;             // times that three random changes are made to the best one, and climbed from
  std::uint64_t asked_max = 200'000;  // of worth
};

// Each change is to move a peer, or to let two change places. From each start all changes are tried in turn, and one
// that is worth more is taken, until none is; then the best is kicked. REQUIRES: a start, each as the problem has it.
FoundLayout climb(const LayoutProblem& problem, const std::vector<Layout>& starts, const SearchBounds& bounds = {});

// The best of all there are, or none where they are more than `most`. With sizes_stay: all stages of one size.
std::optional<FoundLayout> best_of_all(const LayoutProblem& problem, std::uint64_t most);

}  // namespace shoal
