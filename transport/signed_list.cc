#include "transport/signed_list.h"

#include <algorithm>

#include "common/crypto/sign.h"
#include "transport/envelope.h"

namespace shoal {

std::vector<PeerId> peers_of(const MemberList& list) {
  std::vector<PeerId> peers;
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members) peers.push_back(member.peer);
  return peers;
}

Result<MemberList> open_member_list(const Members& members, const RunId& run, std::optional<Epoch> known) {
  auto list = parse_member_list(members.body);
  if (list.ok() && known && list->epoch <= *known) return make_error(ErrorCode::kStale, "a member list that is known");
  Signature signature;
  if (members.signature.size() != signature.size())
    return make_error(ErrorCode::kCorrupt, "a member list without a signature");
  std::copy(members.signature.begin(), members.signature.end(), signature.begin());
  if (!verify(as_peer(run), members.body, signature))
    return make_error(ErrorCode::kCorrupt, "a member list that the run's key did not sign");
  if (list.ok() && list->run != run) return make_error(ErrorCode::kForeign, "a member list of another run");
  return list;
}

}  // namespace shoal
