#pragma once
// What is said on a TCP connection to a relay before it carries anything: fixed-width words, integers little-endian.
// The end that dials begins with a preamble, and what is behind it follows from its kind (byte table: docs/WIRE.md,
// Relays):
//
//   register  run, key      <- nonce       signature of home_text()   <- verdict   then calls come, pings go both ways
//   run       the same by the run's key    of home_text()             <- verdict   then the PeerId that strangers may
//             call, and each new signed member list; pings go both ways
//   call      run, callee, caller, token, signature of call_text()    <- verdict   then raw bytes
//   answer    token                                                   <- verdict   then raw bytes
//
// Thread: any; pure functions.   ERRORS of every parse: kMalformed (size, magic, a field that no writer makes);
// kVersion.
#include <array>
#include <cstdint>
#include <string_view>

#include "common/bytes.h"
#include "common/crypto/sign.h"
#include "common/ids.h"
#include "common/result.h"
#include "transport/limits.h"
#include "transport/messages_membership.h"
#include "transport/wire.h"

namespace shoal {

enum class RelayKind : std::uint8_t { kRegister = 1, kCall = 2, kAnswer = 3, kRun = 4 };

enum class RelayVerdict : std::uint8_t {
  kJoined = 0,  // or registered
  kMalformed = 1,
  kNotListed = 2,      // who registers, calls or is called is not on the run's list
  kNotRegistered = 3,  // the callee, here
  kTooMany = 4,
  kNoAnswer = 5,    // the callee did not come
  kRunUnknown = 6,  // nobody told the relay of that run
  kRate = 7,        // calls come too often
};
inline constexpr std::size_t kRelayVerdicts = 8;
std::string_view name_of(RelayVerdict verdict);  // as a person reads it: "not on the list"

using RelayNonce = std::array<std::uint8_t, 32>;
using RelayToken = std::array<std::uint8_t, 16>;

inline constexpr std::size_t kRelayPreambleBytes = 8;
inline constexpr std::size_t kRelayHomeBytes = 72;  // with the preamble, as the next two
inline constexpr std::size_t kRelayCallBytes = 184;
inline constexpr std::size_t kRelayAnswerBytes = 24;
inline constexpr std::size_t kRelayVerdictBytes = 8;
inline constexpr std::size_t kRelayPingBytes = 8;
inline constexpr std::size_t kRelayIncomingBytes = 56;
inline constexpr std::size_t kRelayListHeadBytes = 4;
inline constexpr std::size_t kRelayListBytesMax = 64 + limits::kListBytesMax;  // behind its head
inline constexpr Duration kRelayPingPeriod = 20s, kRelaySilenceMax = 60s;      // of a registration, each way

struct RelayPreamble {
  RelayKind kind = RelayKind::kRegister;
  Lane lane = Lane::kControl;  // of a call
};
Result<RelayPreamble> parse_relay_preamble(ByteView bytes);
// Bytes of the whole word that begins so.
std::size_t relay_word_bytes(RelayKind kind);

// A process that wants to be called here, or (kRun) that tells which run is served here.
struct RelayHome {
  RelayKind kind = RelayKind::kRegister;  // or kRun
  RunId run;
  PeerId key;  // kRun: the run's
};
Bytes pack_relay_home(const RelayHome& home);
Result<RelayHome> parse_relay_home(ByteView bytes);
// What the home's key signs: a text of its own for each kind, with the nonce that the relay drew for this connection.
Bytes home_text(const RelayHome& home, const RelayNonce& nonce);

struct RelayCall {
  Lane lane = Lane::kControl;
  RunId run;
  PeerId callee, caller;
  RelayToken call_name{};  // drawn by the caller: a relay takes a call once. It does not begin as a ping does
  Signature signature{};
};
Bytes call_text(const RelayCall& call);  // what the caller signs: all of it but the signature
Bytes pack_relay_call(const RelayCall& call);
Result<RelayCall> parse_relay_call(ByteView bytes);

// The token of a RelayIncoming.
Bytes pack_relay_answer(const RelayToken& call_name);
Result<RelayToken> parse_relay_answer(ByteView bytes);

Bytes pack_relay_verdict(RelayVerdict verdict);
Result<RelayVerdict> parse_relay_verdict(ByteView bytes);

// Relay -> a registration: somebody calls. To be answered with the token on a connection of its own, which only the
// callee can do: the relay drew it, and it is not the caller's.
struct RelayIncoming {
  RelayToken call_name{};
  Lane lane = Lane::kControl;
  PeerId caller;  // as the relay has it, which proves nothing
};
Bytes pack_relay_incoming(const RelayIncoming& incoming);
Result<RelayIncoming> parse_relay_incoming(ByteView bytes);

// Each way on a registration and on a run's connection. What comes down begins with a ping or is a RelayIncoming; what
// goes up a run's connection begins with a ping or is a list.
Bytes pack_relay_ping();
bool is_relay_ping(ByteView first_bytes);  // REQUIRES: kRelayPingBytes at least

// A signed member list on a run's connection: its length (u32, without itself), the signature, the body.
Bytes pack_relay_list(const Members& list);  // REQUIRES: a whole signature, a body of kListBytesMax at most
// How many bytes follow. `head`: kRelayListHeadBytes. ERRORS: kTooLarge too.
Result<std::size_t> parse_relay_list_head(ByteView head);
Result<Members> parse_relay_list(ByteView behind_head);  // what is signed is not looked at

}  // namespace shoal
