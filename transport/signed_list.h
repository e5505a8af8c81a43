#pragma once
// A member list as the run's key signed it: opened by members, readers, and relays. Pure; thread: any.
#include <optional>
#include <vector>

#include "common/result.h"
#include "transport/messages_membership.h"

namespace shoal {

// Every member's key.
std::vector<PeerId> peers_of(const MemberList& list);

// ERRORS: kStale (its epoch is not above `known`; its signature is not looked at), kCorrupt (the run's key did not sign
// it), kForeign (it is of another run), those of parse_member_list().
Result<MemberList> open_member_list(const Members& members, const RunId& run, std::optional<Epoch> known = {});

}  // namespace shoal
