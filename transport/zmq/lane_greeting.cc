#include "transport/zmq/lane_greeting.h"

#include <algorithm>

#include "common/byte_codec.h"
#include "transport/limits.h"

namespace shoal {
namespace {

constexpr std::uint32_t kGreetingMagic = 0x49484853u;  // "SHHI"
constexpr std::uint32_t kAnswerMagic = 0x4f594853u;    // "SHYO"
constexpr std::uint16_t kLaneVersion = 1;
constexpr std::size_t kAnswerHeadBytes = 12;

std::vector<std::uint8_t> head(std::uint32_t magic, Lane lane, std::uint8_t flag) {
  std::vector<std::uint8_t> bytes;
  append_le<std::uint32_t>(bytes, magic);
  append_le<std::uint16_t>(bytes, kLaneVersion);
  bytes.push_back(static_cast<std::uint8_t>(lane));
  bytes.push_back(flag);
  return bytes;
}

Status check_head(ByteView bytes, std::uint32_t magic, std::uint8_t flag_max) {
  if (get_le<std::uint32_t>(bytes, 0) != magic) return make_error(ErrorCode::kMalformed, "not a greeting of shoal");
  if (const std::uint16_t version = get_le<std::uint16_t>(bytes, 4); version != kLaneVersion) {
    return make_error(ErrorCode::kVersion, "lane version " + std::to_string(version) + ", this program speaks " +
                                               std::to_string(kLaneVersion));
  }
  if (bytes[6] > static_cast<std::uint8_t>(Lane::kBulk) || bytes[7] > flag_max)
    return make_error(ErrorCode::kMalformed, "greeting with unknown fields");
  return Status::success();
}

}  // namespace

Bytes pack_lane_greeting(const LaneGreeting& greeting) {
  std::vector<std::uint8_t> bytes = head(kGreetingMagic, greeting.lane, 0);
  bytes.insert(bytes.end(), greeting.peer.bytes.begin(), greeting.peer.bytes.end());
  bytes.insert(bytes.end(), greeting.secret.begin(), greeting.secret.end());
  return Bytes::from_vector(std::move(bytes));
}

Result<LaneGreeting> parse_lane_greeting(ByteView bytes) {
  if (bytes.size() != kLaneGreetingBytes)
    return make_error(ErrorCode::kMalformed, "greeting of " + std::to_string(bytes.size()) + " bytes");
  SHOAL_TRY(check_head(bytes, kGreetingMagic, 0));
  LaneGreeting greeting;
  greeting.lane = static_cast<Lane>(bytes[6]);
  std::copy_n(bytes.data() + 8, 32, greeting.peer.bytes.begin());
  std::copy_n(bytes.data() + 40, 16, greeting.secret.begin());
  return greeting;
}

Bytes pack_lane_answer(const LaneAnswer& answer) {
  std::vector<std::uint8_t> bytes = head(kAnswerMagic, answer.lane, answer.accepted ? 1 : 0);
  const std::string reason = answer.reason.substr(0, limits::kTextMax);
  append_le<std::uint16_t>(bytes, answer.bulk_port);
  append_le<std::uint16_t>(bytes, static_cast<std::uint16_t>(reason.size()));
  bytes.insert(bytes.end(), reason.begin(), reason.end());
  return Bytes::from_vector(std::move(bytes));
}

Result<LaneAnswer> parse_lane_answer(ByteView bytes) {
  if (bytes.size() < kAnswerHeadBytes)
    return make_error(ErrorCode::kMalformed, "answer of " + std::to_string(bytes.size()) + " bytes");
  SHOAL_TRY(check_head(bytes, kAnswerMagic, 1));
  LaneAnswer answer;
  answer.lane = static_cast<Lane>(bytes[6]);
  answer.accepted = bytes[7] == 1;
  answer.bulk_port = get_le<std::uint16_t>(bytes, 8);
  const std::size_t size = get_le<std::uint16_t>(bytes, 10);
  if (size > limits::kTextMax || bytes.size() != kAnswerHeadBytes + size)
    return make_error(ErrorCode::kMalformed, "answer of the wrong length");
  answer.reason.assign(reinterpret_cast<const char*>(bytes.data()) + kAnswerHeadBytes, size);
  return answer;
}

}  // namespace shoal
