// What a router, or whoever has its address, answers to a request for ports.
#include "tests/fuzz/target.h"
#include "transport/mapping/map_talk.h"

namespace shoal::fuzz {
namespace {

bool take(ByteView bytes) {
  MapTalk talk(*ip_bytes("192.168.1.7"), {4700, 4701}, 1);
  const TimePoint now{std::chrono::seconds(1)};
  (void)talk.turn(now);
  talk.take(bytes, now);
  talk.take(bytes, now);
  const Mapping& mapping = talk.mapping();
  SHOAL_CHECK(mapping.by.empty());  // for it knows no nonce
  return parse_map_answer(bytes).ok();
}

std::vector<Bytes> seeds() {
  std::vector<std::uint8_t> pcp(60), address(12), map(16), version = {0, 0x80, 0, 1, 0, 0, 0, 9};
  pcp[0] = 2;
  pcp[1] = 0x81;
  pcp[36] = 6;
  address[1] = 0x80;
  map[1] = 0x82;
  return {Bytes::from_vector(pcp), Bytes::from_vector(address), Bytes::from_vector(map), Bytes::from_vector(version)};
}

}  // namespace

const Target router_answer{"router_answer", take, seeds};

}  // namespace shoal::fuzz
