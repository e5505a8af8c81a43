#include "runtime/peer/peer_state.h"

#include <array>

#include "common/phase_set.h"

namespace shoal {

namespace {

const PhaseRow<PeerPhase>& row_of(PeerPhase phase) {
  using enum PeerPhase;
  // clang-format off
  static constexpr std::array<PhaseRow<PeerPhase>, 9> kRows = {{  // in the order of PeerPhase
      {"connecting",     {kJoining, kRestarting, kOver}},
      {"joining",        {kFetching, kServing, kLeaving, kRestarting, kOver}},
      {"fetching state", {kLoading, kLeaving, kRestarting, kOver}},
      {"loading state",  {kFetching, kServing, kLeaving, kRestarting, kOver}},
      {"serving",        {kLeaving, kRestarting, kOver}},
      {"leaving",        {kRestarting, kOver}},
      {"paused",         {kConnecting, kOver}},
      {"joining again",  {kConnecting, kPaused, kOver}},
      {"over",           {}},
  }};
  // clang-format on
  return kRows.at(static_cast<std::size_t>(phase));
}

}  // namespace

std::string_view name_of(PeerPhase phase) { return row_of(phase).name; }

bool may_follow(PeerPhase from, PeerPhase to) { return row_of(from).next.has(to); }

void PeerState::move(PeerPhase to, std::string reason) {
  move_phase(phase_, to, row_of);
  reason_ = std::move(reason);
}

}  // namespace shoal
