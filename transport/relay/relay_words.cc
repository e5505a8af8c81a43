#include "transport/relay/relay_words.h"

#include <algorithm>
#include <string>

#include "common/byte_codec.h"

namespace shoal {
namespace {

constexpr std::string_view kMagic = "SHRL", kVerdictMagic = "SHRV", kPing = "SHRLping";
constexpr std::uint8_t kRelayVersion = 1;

void say(ByteWriter& to, std::string_view text) {
  for (const char letter : text) to.put(static_cast<std::uint8_t>(letter));
}
bool begins(ByteView bytes, std::string_view with) {
  return bytes.size() >= with.size() && std::equal(with.begin(), with.end(), bytes.begin());
}

Error malformed(const std::string& what) {
  return make_error(ErrorCode::kMalformed, what + " of a relay's connection");
}

Status check_size(ByteView bytes, std::size_t size, const std::string& what) {
  if (bytes.size() == size) return {};
  return malformed(what + " of " + std::to_string(bytes.size()) + " bytes");
}

ByteWriter preamble(RelayKind kind, Lane lane) {
  ByteWriter to;
  say(to, kMagic);
  to.put(kRelayVersion);
  to.put(static_cast<std::uint8_t>(kind));
  to.put(static_cast<std::uint8_t>(lane));
  to.put(std::uint8_t{0});
  return to;
}

// The word of that kind, whole; the reader stands behind the preamble.
Result<RelayPreamble> open_word(ByteReader& from, ByteView bytes) {
  SHOAL_ASSIGN(const RelayPreamble head, parse_relay_preamble(from.bytes(std::min(bytes.size(), kRelayPreambleBytes))));
  SHOAL_TRY(check_size(bytes, relay_word_bytes(head.kind), "a word"));
  return head;
}

template <class Array>
void take(ByteReader& from, Array& to) {
  const ByteView bytes = from.bytes(to.size());
  std::copy(bytes.begin(), bytes.end(), to.begin());
}

bool is_lane(std::uint8_t lane) { return lane <= static_cast<std::uint8_t>(Lane::kBulk); }

}  // namespace

std::string_view name_of(RelayVerdict verdict) {
  switch (verdict) {
    case RelayVerdict::kJoined:
      return "joined";
    case RelayVerdict::kMalformed:
      return "malformed";
    case RelayVerdict::kNotListed:
      return "not on the list";
    case RelayVerdict::kNotRegistered:
      return "callee not registered";
    case RelayVerdict::kTooMany:
      return "too many";
    case RelayVerdict::kNoAnswer:
      return "no answer";
    case RelayVerdict::kRunUnknown:
      return "run unknown";
    case RelayVerdict::kRate:
      return "too often";
  }
  return "?";
}

Result<RelayPreamble> parse_relay_preamble(ByteView bytes) {
  SHOAL_TRY(check_size(bytes, kRelayPreambleBytes, "a preamble"));
  if (!begins(bytes, kMagic)) return malformed("no preamble");
  if (bytes[4] != kRelayVersion)
    return make_error(ErrorCode::kVersion, "relay version " + std::to_string(bytes[4]) + ", this program speaks " +
                                               std::to_string(kRelayVersion));
  if (bytes[5] < 1 || bytes[5] > static_cast<std::uint8_t>(RelayKind::kRun) || !is_lane(bytes[6]) || bytes[7] != 0)
    return malformed("a preamble with unknown fields");
  const RelayPreamble head{static_cast<RelayKind>(bytes[5]), static_cast<Lane>(bytes[6])};
  if (head.lane != Lane::kControl && head.kind != RelayKind::kCall) return malformed("a preamble with a lane");
  return head;
}

std::size_t relay_word_bytes(RelayKind kind) {
  if (kind == RelayKind::kCall) return kRelayCallBytes;
  return kind == RelayKind::kAnswer ? kRelayAnswerBytes : kRelayHomeBytes;
}

Bytes pack_relay_home(const RelayHome& home) {
  ByteWriter to = preamble(home.kind, Lane::kControl);
  to.bytes(home.run.bytes);
  to.bytes(home.key.bytes);
  return std::move(to).take();
}

Result<RelayHome> parse_relay_home(ByteView bytes) {
  ByteReader from(bytes);
  SHOAL_ASSIGN(const RelayPreamble head, open_word(from, bytes));
  if (head.kind != RelayKind::kRegister && head.kind != RelayKind::kRun) return malformed("no registration");
  RelayHome home{head.kind, {}, {}};
  take(from, home.run.bytes);
  take(from, home.key.bytes);
  if (home.kind == RelayKind::kRun && home.key != as_peer(home.run)) return malformed("a run with another key");
  return home;
}

Bytes home_text(const RelayHome& home, const RelayNonce& nonce) {
  ByteWriter to;
  say(to, home.kind == RelayKind::kRun ? "shoal run 1\n" : "shoal home 1\n");
  to.bytes(home.run.bytes);
  to.bytes(home.key.bytes);
  to.bytes(nonce);
  return std::move(to).take();
}

Bytes call_text(const RelayCall& call) {
  ByteWriter to;
  say(to, "shoal call 1\n");
  to.bytes(call.run.bytes);
  to.bytes(call.callee.bytes);
  to.bytes(call.caller.bytes);
  to.bytes(call.call_name);
  to.put(static_cast<std::uint8_t>(call.lane));
  return std::move(to).take();
}

Bytes pack_relay_call(const RelayCall& call) {
  SHOAL_CHECK(!begins(call.call_name, kPing));
  ByteWriter to = preamble(RelayKind::kCall, call.lane);
  to.bytes(call.run.bytes);
  to.bytes(call.callee.bytes);
  to.bytes(call.caller.bytes);
  to.bytes(call.call_name);
  to.bytes(call.signature);
  return std::move(to).take();
}

Result<RelayCall> parse_relay_call(ByteView bytes) {
  ByteReader from(bytes);
  SHOAL_ASSIGN(const RelayPreamble head, open_word(from, bytes));
  if (head.kind != RelayKind::kCall) return malformed("no call");
  RelayCall call;
  call.lane = head.lane;
  take(from, call.run.bytes);
  take(from, call.callee.bytes);
  take(from, call.caller.bytes);
  take(from, call.call_name);
  take(from, call.signature);
  if (begins(call.call_name, kPing)) return malformed("a name like a ping");
  return call;
}

Bytes pack_relay_answer(const RelayToken& call_name) {
  ByteWriter to = preamble(RelayKind::kAnswer, Lane::kControl);
  to.bytes(call_name);
  return std::move(to).take();
}

Result<RelayToken> parse_relay_answer(ByteView bytes) {
  ByteReader from(bytes);
  SHOAL_ASSIGN(const RelayPreamble head, open_word(from, bytes));
  if (head.kind != RelayKind::kAnswer) return malformed("no answer");
  RelayToken call_name{};
  take(from, call_name);
  return call_name;
}

Bytes pack_relay_verdict(RelayVerdict verdict) {
  ByteWriter to;
  say(to, kVerdictMagic);
  to.put(static_cast<std::uint32_t>(verdict));
  return std::move(to).take();
}

Result<RelayVerdict> parse_relay_verdict(ByteView bytes) {
  SHOAL_TRY(check_size(bytes, kRelayVerdictBytes, "a verdict"));
  const auto code = get_le<std::uint32_t>(bytes, 4);
  if (!begins(bytes, kVerdictMagic) || code >= kRelayVerdicts) return malformed("no verdict");
  return static_cast<RelayVerdict>(code);
}

Bytes pack_relay_incoming(const RelayIncoming& incoming) {
  SHOAL_CHECK(!begins(incoming.call_name, kPing));
  ByteWriter to;
  to.bytes(incoming.call_name);
  to.put(static_cast<std::uint64_t>(incoming.lane));
  to.bytes(incoming.caller.bytes);
  return std::move(to).take();
}

Result<RelayIncoming> parse_relay_incoming(ByteView bytes) {
  SHOAL_TRY(check_size(bytes, kRelayIncomingBytes, "a call"));
  RelayIncoming incoming;
  ByteReader from(bytes);
  take(from, incoming.call_name);
  const auto lane = from.get<std::uint64_t>();
  take(from, incoming.caller.bytes);
  if (lane > static_cast<std::uint64_t>(Lane::kBulk) || begins(incoming.call_name, kPing)) return malformed("no call");
  incoming.lane = static_cast<Lane>(lane);
  return incoming;
}

Bytes pack_relay_ping() { return Bytes::copy_of(kPing); }
bool is_relay_ping(ByteView first_bytes) { return begins(first_bytes, kPing); }

Bytes pack_relay_list(const Members& list) {
  SHOAL_CHECK_EQ(list.signature.size(), Signature{}.size());
  SHOAL_CHECK_LE(list.body.size(), limits::kListBytesMax);
  ByteWriter to;
  to.put(static_cast<std::uint32_t>(list.signature.size() + list.body.size()));
  to.bytes(list.signature);
  to.bytes(list.body);
  return std::move(to).take();
}

Result<std::size_t> parse_relay_list_head(ByteView head) {
  SHOAL_TRY(check_size(head, kRelayListHeadBytes, "a head"));
  const std::size_t size = get_le<std::uint32_t>(head, 0);
  if (size > kRelayListBytesMax)
    return make_error(ErrorCode::kTooLarge, "a list of " + std::to_string(size) + " bytes for a relay, limit " +
                                                std::to_string(kRelayListBytesMax));
  if (size <= Signature{}.size()) return malformed("a list without a body");
  return size;
}

Result<Members> parse_relay_list(ByteView behind_head) {
  ByteReader from(behind_head);
  const ByteView signature = from.bytes(Signature{}.size()), body = from.rest();
  if (body.empty()) return malformed("a list without a body");
  return Members{{body.begin(), body.end()}, {signature.begin(), signature.end()}};
}

}  // namespace shoal
