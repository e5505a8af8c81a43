// What comes on the two lanes: envelopes, chunks, and the member lists inside of envelopes.
#include "transport/envelope.h"

#include "common/byte_codec.h"
#include "tests/fuzz/target.h"
#include "tests/transport/samples.h"

namespace shoal::fuzz {
namespace {

constexpr std::size_t kMagicAt = 0, kVersionAt = 4, kSumAt = 12;

std::vector<std::uint8_t> mended(ByteView bytes) {
  std::vector<std::uint8_t> copy = copy_of(bytes);
  if (copy.size() < kPrologueBytes) return copy;
  put_le(copy.data() + kMagicAt, get_le<std::uint32_t>(pack_envelope(Goodbye{}, std::nullopt)->view(), kMagicAt));
  put_le(copy.data() + kVersionAt, protocol_version());
  const ByteView view(copy);
  put_le(copy.data() + kSumAt, crc32c(view.subspan(kPrologueBytes), crc32c(view.first(kSumAt))));
  return copy;
}

// What is accepted can be said again, and says the same.
bool take_envelope(ByteView bytes) {
  const auto parsed = parse_envelope(bytes);
  if (!parsed.ok()) return false;
  const auto packed = pack_envelope(parsed->message, parsed->transfer);
  SHOAL_CHECK(packed.ok());
  const auto again = parse_envelope(*packed);
  SHOAL_CHECK(again.ok());
  SHOAL_CHECK(same_bytes(*pack_envelope(again->message, again->transfer), *packed));
  return true;
}

bool take_chunk(ByteView bytes) {
  const auto chunk = parse_chunk(bytes);
  if (!chunk.ok()) return false;
  SHOAL_CHECK(same_bytes(pack_chunk(chunk->head, {chunk->payload}), bytes));
  return true;
}

bool take_lists(ByteView bytes) {
  const auto list = parse_member_list(bytes);
  if (list.ok()) SHOAL_CHECK(parse_member_list(*pack_member_list(*list)).ok());
  const auto change = parse_list_change(bytes);
  if (change.ok()) SHOAL_CHECK(parse_list_change(*pack_list_change(*change)).ok());
  return list.ok() || change.ok();
}

bool take(ByteView bytes) {
  const bool envelope = take_envelope(bytes), with_sum = take_envelope(mended(bytes));
  const bool chunk = take_chunk(bytes), list = take_lists(bytes);
  return envelope || with_sum || chunk || list;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const Message& message : sample_messages()) all.push_back(*pack_envelope(message, std::nullopt));
  all.push_back(*pack_envelope(Forward{}, TransferHead{7, {{1000, 1}, {5, 2}}}));
  all.push_back(pack_chunk({7, 0}, {all.front()}));
  MemberList list;
  SampleFiller().fill(list);
  list.relays = {{"203.0.113.7:443", 9}};
  all.push_back(Bytes::from_vector(*pack_member_list(list)));
  ListChange change;
  SampleFiller().fill(change);
  change.relays = list.relays;
  all.push_back(Bytes::from_vector(*pack_list_change(change)));
  return all;
}

}  // namespace

const Target envelope{"envelope", take, seeds};

}  // namespace shoal::fuzz
