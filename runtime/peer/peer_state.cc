#include "runtime/peer/peer_state.h"

#include <array>

#include "common/check.h"

namespace shoal {

namespace {

struct Row {
  std::string_view name;
  std::uint32_t followers = 0;  // a bit a phase
};

constexpr std::size_t index_of(PeerPhase phase) { return static_cast<std::size_t>(phase); }
constexpr std::uint32_t bit_of(PeerPhase phase) { return 1u << index_of(phase); }

template <class... Phases>
constexpr std::uint32_t any_of(Phases... phases) {
  return (bit_of(phases) | ... | 0u);
}

// In the order of PeerPhase.
constexpr std::array<Row, index_of(PeerPhase::kOver) + 1> kRows = {{
    {"connecting", any_of(PeerPhase::kJoining, PeerPhase::kRestarting, PeerPhase::kOver)},
    {"joining",
     any_of(PeerPhase::kFetching, PeerPhase::kServing, PeerPhase::kLeaving, PeerPhase::kRestarting, PeerPhase::kOver)},
    {"fetching state", any_of(PeerPhase::kLoading, PeerPhase::kLeaving, PeerPhase::kRestarting, PeerPhase::kOver)},
    {"loading state",
     any_of(PeerPhase::kFetching, PeerPhase::kServing, PeerPhase::kLeaving, PeerPhase::kRestarting, PeerPhase::kOver)},
    {"serving", any_of(PeerPhase::kLeaving, PeerPhase::kRestarting, PeerPhase::kOver)},
    {"leaving", any_of(PeerPhase::kOver)},
    {"joining again", any_of(PeerPhase::kConnecting, PeerPhase::kOver)},
    {"over", any_of()},
}};

}  // namespace

std::string_view name_of(PeerPhase phase) { return kRows.at(index_of(phase)).name; }

bool may_follow(PeerPhase from, PeerPhase to) { return (kRows.at(index_of(from)).followers & bit_of(to)) != 0; }

void PeerState::move(PeerPhase to, std::string reason) {
  if (!may_follow(phase_, to))
    check_failed(__FILE__, __LINE__, "may_follow(phase, to)", check_operands(name_of(phase_), name_of(to)));
  phase_ = to;
  reason_ = std::move(reason);
}

}  // namespace shoal
