#include "layout/layout_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "common/check.h"
#include "common/rng.h"

namespace shoal {
namespace {

constexpr std::size_t kChangesOfAKick = 3;
constexpr double kEmptyStages = 50;  // so many times as many are passed over at most, since they leave a stage empty
constexpr double kBetter = 1e-9;     // parts of the worth: less is rounding

bool is_better(double worth, double than) { return worth > than + kBetter * std::abs(than); }

struct Change {
  std::size_t peer = 0;
  std::uint16_t to = 0;
  std::optional<std::size_t> back{};  // the peer that goes the other way
};

class Climber {
 public:
  Climber(const LayoutProblem& problem, const SearchBounds& bounds)
      : problem_(problem), bounds_(bounds), rng_(bounds.seed) {}

  FoundLayout run(const std::vector<Layout>& starts) {
    std::vector<std::pair<double, Layout>> begins;
    for (const Layout& start : starts) begins.emplace_back(ask(start), start);
    std::ranges::stable_sort(begins, std::ranges::greater(), &std::pair<double, Layout>::first);
    for (auto& [worth, layout] : begins) {
      if (!best_.layout.empty() && is_spent()) break;
      worth = climb_from(layout, worth);
      keep(layout, worth);
    }
    for (std::size_t kick = 0; kick < bounds_.kicks && !is_spent(); ++kick) {
      Layout layout = best_.layout;
      for (std::size_t i = 0; i < kChangesOfAKick; ++i) {
        const std::vector<Change> changes = changes_of(layout);
        if (!changes.empty()) apply(layout, changes[rng_.below(changes.size())]);
      }
      keep(layout, climb_from(layout, ask(layout)));
    }
    return best_;
  }

 private:
  bool is_spent() const { return best_.asked >= bounds_.asked_max; }
  double ask(const Layout& layout, double enough = -kUnbounded) {
    ++best_.asked;
    return problem_.worth(layout, enough);
  }
  void keep(const Layout& layout, double worth) {
    if (!best_.layout.empty() && !is_better(worth, best_.worth)) return;
    best_.layout = layout;
    best_.worth = worth;
  }

  bool fits(std::size_t peer, std::uint16_t stage) const { return !problem_.fits || problem_.fits(peer, stage); }

  static void apply(Layout& layout, const Change& change) {
    if (change.back) layout[*change.back] = layout[change.peer];
    layout[change.peer] = change.to;
  }

  // All that are unlike, in the order of peers: of a kind in a stage one speaks for all.
  std::vector<Change> changes_of(const Layout& layout) const {
    std::map<std::pair<std::size_t, std::uint16_t>, std::size_t> speakers;
    std::vector<std::size_t> sizes(problem_.stages, 0);
    for (std::size_t peer = 0; peer < layout.size(); ++peer) {
      speakers.try_emplace({problem_.kinds[peer], layout[peer]}, peer);
      ++sizes[layout[peer]];
    }
    std::vector<Change> changes;
    for (const auto& [of, peer] : speakers) {
      for (std::uint16_t to = 0; !problem_.sizes_stay && to < problem_.stages; ++to)
        if (to != of.second && sizes[of.second] > 1 && fits(peer, to)) changes.push_back({peer, to});
      for (const auto& [other, back] : speakers)
        if (back > peer && other.first != of.first && other.second != of.second && fits(peer, other.second) &&
            fits(back, of.second))
          changes.push_back({peer, other.second, back});
    }
    return changes;
  }

  // Behind a change it goes on with the next one: those tried before have had their turn.
  double climb_from(Layout& layout, double worth) {
    std::vector<Change> changes = changes_of(layout);
    for (std::size_t at = 0, tried = 0; tried < changes.size() && !is_spent(); ++at) {
      Layout next = layout;
      apply(next, changes[at % changes.size()]);
      ++tried;
      const double then = ask(next, worth);
      if (!is_better(then, worth)) continue;
      layout = std::move(next);
      worth = then;
      changes = changes_of(layout);
      tried = 0;
    }
    return worth;
  }

  const LayoutProblem& problem_;
  const SearchBounds bounds_;
  Rng rng_;
  FoundLayout best_;
};

// How many there are, those among them that leave a stage empty: of m peers of a kind and S stages (m + S - 1) over m.
double ways_to_share(const LayoutProblem& problem) {
  std::map<std::size_t, std::size_t> members;
  double ways = 1;
  for (const std::size_t kind : problem.kinds) {
    const auto count = static_cast<double>(++members[kind]);
    ways *= (count + problem.stages - 1) / count;
  }
  return ways;
}

// Every way to share each kind out over the stages, one kind after the other.
class Enumerator {
 public:
  Enumerator(const LayoutProblem& problem, std::uint64_t most) : problem_(problem), most_(most) {
    for (std::size_t peer = 0; peer < problem.kinds.size(); ++peer) members_[problem.kinds[peer]].push_back(peer);
    const std::size_t peers = problem.kinds.size();
    room_.assign(problem.stages, problem.sizes_stay ? peers / problem.stages : peers);
    SHOAL_CHECK(!problem.sizes_stay || peers % problem.stages == 0);
    best_.worth = -kUnbounded;
    layout_.assign(peers, 0);
  }

  std::optional<FoundLayout> run() {
    place(members_.begin(), 0, 0, {});
    if (is_over_ || best_.layout.empty()) return std::nullopt;
    return best_;
  }

 private:
  using Kinds = std::map<std::size_t, std::vector<std::size_t>>;

  // The kind's peers from `placed` on go to `stage` or behind it. `counts`: how many of it each stage before has.
  void place(Kinds::const_iterator kind, std::size_t placed, std::uint16_t stage, std::vector<std::size_t> counts) {
    if (is_over_) return;
    if (kind == members_.end()) return judge();
    const std::vector<std::size_t>& peers = kind->second;
    if (stage == problem_.stages) {
      if (placed == peers.size()) place(std::next(kind), 0, 0, {});
      return;
    }
    std::size_t most = std::min(peers.size() - placed, room_[stage]);
    if (problem_.fits && !problem_.fits(peers.front(), stage)) most = 0;
    // Where stages are alike the first kind has most in the first: all other orders are the same layout.
    if (problem_.stages_alike && kind == members_.begin() && stage > 0) most = std::min(most, counts[stage - 1]);
    counts.push_back(0);
    const std::size_t rest = peers.size() - placed;  // the last stage takes it
    for (std::size_t count = stage + 1 == problem_.stages ? rest : 0; count <= most; ++count) {
      counts.back() = count;
      for (std::size_t i = 0; i < count; ++i) layout_[peers[placed + i]] = stage;
      room_[stage] -= count;
      place(kind, placed + count, static_cast<std::uint16_t>(stage + 1), counts);
      room_[stage] += count;
    }
  }

  void judge() {
    if (!problem_.sizes_stay) {
      std::vector<bool> served(problem_.stages, false);
      for (const std::uint16_t stage : layout_) served[stage] = true;
      if (std::ranges::find(served, false) != served.end()) return;
    }
    is_over_ = ++best_.asked > most_;
    const double worth = problem_.worth(layout_, best_.worth);
    if (worth <= best_.worth) return;
    best_.layout = layout_;
    best_.worth = worth;
  }

  const LayoutProblem& problem_;
  const std::uint64_t most_;
  Kinds members_;
  std::vector<std::size_t> room_;
  Layout layout_;
  FoundLayout best_;
  bool is_over_ = false;
};

}  // namespace

FoundLayout climb(const LayoutProblem& problem, const std::vector<Layout>& starts, const SearchBounds& bounds) {
  SHOAL_CHECK(!starts.empty() && problem.worth);
  return Climber(problem, bounds).run(starts);
}

std::optional<FoundLayout> best_of_all(const LayoutProblem& problem, std::uint64_t most) {
  SHOAL_CHECK(problem.worth);
  if (!problem.sizes_stay && ways_to_share(problem) > kEmptyStages * static_cast<double>(most)) return std::nullopt;
  return Enumerator(problem, most).run();
}

}  // namespace shoal
