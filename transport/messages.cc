#include "transport/messages.h"

#include <array>

namespace shoal {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {
    "Hello",         "Ping",          "Pong",        "ByteCredit",   "DropTransfer", "Forward",    "Take",
    "Busy",          "Have",          "Gone",        "Gradient",     "Release",      "Renew",      "Waiting",
    "Hint",          "Commit",        "CommitAck",   "JoinRequest",  "JoinAnswer",   "Members",    "Beat",
    "BeatAck",       "Fenced",        "Leave",       "Goodbye",      "End",          "Step",       "RoundOpen",
    "RoundPart",     "RoundReport",   "RoundCommit", "RoundAbandon", "StateQuery",   "StateOffer", "ChunkQuery",
    "Chunk",         "ManifestQuery", "Manifest",    "PeersQuery",   "Peers",        "Progress",   "NeedKeyFrame",
    "MembersChange", "MembersQuery",  "Extend",      "Extended",     "Knock",        "ReachQuery", "ReachAnswer"};
static_assert(std::is_same_v<std::variant_alternative_t<5, Message>, Forward>);
static_assert(std::is_same_v<std::variant_alternative_t<16, Message>, CommitAck>);
static_assert(std::is_same_v<std::variant_alternative_t<25, Message>, End>);
static_assert(std::is_same_v<std::variant_alternative_t<31, Message>, RoundAbandon>);
static_assert(std::is_same_v<std::variant_alternative_t<39, Message>, Peers>);
static_assert(!kNames.back().empty());

}  // namespace

std::string_view name_of(const Message& message) { return kNames[message.index()]; }

}  // namespace shoal
