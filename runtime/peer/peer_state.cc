#include "runtime/peer/peer_state.h"

#include <array>

#include "common/check.h"
#include "common/phase_set.h"

namespace shoal {

namespace {

struct Row {
  std::string_view name;
  PhaseSet<PeerPhase> next;
};

const Row& row_of(PeerPhase phase) {
  using enum PeerPhase;
  // clang-format off
  static constexpr std::array<Row, 9> kRows = {{  // in the order of PeerPhase
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
  if (!may_follow(phase_, to))
    check_failed(__FILE__, __LINE__, "may_follow(phase, to)", check_operands(name_of(phase_), name_of(to)));
  phase_ = to;
  reason_ = std::move(reason);
}

}  // namespace shoal
