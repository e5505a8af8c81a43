// The first bytes on a lane, of whoever proved any key, and the answer to them.
#include "tests/fuzz/target.h"
#include "transport/zmq/lane_greeting.h"

namespace shoal::fuzz {
namespace {

bool take(ByteView bytes) {
  const auto greeting = parse_lane_greeting(bytes);
  if (greeting.ok()) SHOAL_CHECK(same_bytes(pack_lane_greeting(*greeting), bytes));
  const auto answer = parse_lane_answer(bytes);
  if (answer.ok()) SHOAL_CHECK(same_bytes(pack_lane_answer(*answer), bytes));
  return greeting.ok() || answer.ok();
}

std::vector<Bytes> seeds() {
  LaneGreeting greeting{Lane::kBulk, {}, {}};
  greeting.peer.bytes.fill(3);
  greeting.secret.fill(4);
  return {pack_lane_greeting(greeting), pack_lane_answer({Lane::kControl, true, 7741, ""}),
          pack_lane_answer({Lane::kBulk, false, 0, "this key is not admitted"})};
}

}  // namespace

const Target greeting{"greeting", take, seeds};

}  // namespace shoal::fuzz
