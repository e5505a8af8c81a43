// The words on a relay's connection, of any stranger at the relay, and of any relay at a member.
#include "transport/relay/relay_words.h"

#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

bool take(ByteView bytes) {
  bool accepted = false;
  const auto again = [&](const auto& parsed, const auto& pack) {
    if (!parsed.ok()) return;
    SHOAL_CHECK(same_bytes(pack(*parsed), bytes));
    accepted = true;
  };
  again(parse_relay_home(bytes), pack_relay_home);
  again(parse_relay_call(bytes), pack_relay_call);
  again(parse_relay_answer(bytes), pack_relay_answer);
  again(parse_relay_verdict(bytes), pack_relay_verdict);
  again(parse_relay_incoming(bytes), pack_relay_incoming);
  if (bytes.size() < kRelayListHeadBytes) return accepted;
  const auto size = parse_relay_list_head(bytes.first(kRelayListHeadBytes));
  if (size.ok() && *size == bytes.size() - kRelayListHeadBytes)
    again(parse_relay_list(bytes.subspan(kRelayListHeadBytes)), pack_relay_list);
  return accepted;
}

std::vector<Bytes> seeds() {
  RelayCall call;
  call.lane = Lane::kBulk;
  call.callee.bytes.fill(1);
  call.call_name.fill(2);
  RelayIncoming incoming;
  incoming.call_name.fill(3);
  return {pack_relay_home({RelayKind::kRegister, {}, call.callee}),
          pack_relay_home({RelayKind::kRun, {}, {}}),
          pack_relay_call(call),
          pack_relay_answer(call.call_name),
          pack_relay_verdict(RelayVerdict::kRate),
          pack_relay_incoming(incoming),
          pack_relay_list({{1, 2, 3}, std::vector<std::uint8_t>(64, 4)})};
}

}  // namespace

const Target relay_words{"relay_words", take, seeds};

}  // namespace shoal::fuzz
