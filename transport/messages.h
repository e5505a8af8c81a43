#pragma once
// Every message of the protocol, as plain structs in six headers, one an area; and the numbers of their types.
//
// A message is packed as a msgpack array in the order of its SHOAL_FIELDS (transport/envelope.h). What changes them
// raises the protocol version; those that logs hold (authority/authority_log.h) stay as they are. Run, protocol version
// and session of the sender are settled once per connection by Hello and not repeated. Times are remaining budgets in
// milliseconds, never wall time. Above each struct: who sends it -> to whom, and what it says. When, and what makes up
// for its loss: docs/PROTOCOL.md, "Messages".
#include <string_view>
#include <variant>

#include "transport/messages_connection.h"
#include "transport/messages_hop.h"
#include "transport/messages_membership.h"
#include "transport/messages_round.h"
#include "transport/messages_state.h"
#include "transport/messages_text.h"

namespace shoal {

// The place in this list is the type's number on the wire: append only.
using Message = std::variant<
    // 0: the link
    Hello, Ping, Pong, ByteCredit, DropTransfer,
    // 5: between stages
    Forward, Take, Busy, Have, Gone, Gradient, Release, Renew, Waiting, Hint, Commit, CommitAck,
    // 17: membership
    JoinRequest, JoinAnswer, Members, Beat, BeatAck, Fenced, Leave, Goodbye, End,
    // 26: rounds
    Step, RoundOpen, RoundPart, RoundReport, RoundCommit, RoundAbandon,
    // 32: states and the directory
    StateQuery, StateOffer, ChunkQuery, Chunk, ManifestQuery, Manifest, PeersQuery, Peers,
    // 40: between stages, added later
    Progress, NeedKeyFrame,
    // 42: membership, added later
    MembersChange, MembersQuery,
    // 44: texts
    Extend, Extended,
    // 46: who reaches whom
    Knock, ReachQuery, ReachAnswer>;

std::string_view name_of(const Message& message);  // "Forward"

}  // namespace shoal
