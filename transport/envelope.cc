#include "transport/envelope.h"

#include <array>
#include <exception>
#include <msgpack.hpp>
#include <set>

#include "common/bulk_bytes.h"
#include "common/byte_codec.h"
#include "common/fault.h"
#include "common/host_port.h"
#include "transport/envelope_fields.h"

namespace shoal {
namespace {

constexpr std::uint32_t kMagic = 0x4c4f4853u;       // "SHOL"
constexpr std::uint32_t kChunkMagic = 0x4b4e4843u;  // "CHNK"
constexpr std::uint8_t kFlagTransfer = 1;
constexpr std::size_t kCrcOffset = 12;

// What msgpack writes into.
struct ByteSink {
  std::vector<std::uint8_t> bytes;
  void write(const char* data, std::size_t size) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  }
};

using Writer = fields::FieldWriter<msgpack::packer<ByteSink>>;
using Reader = fields::FieldReader<msgpack::object, msgpack::type::object_type>;

Error too_large(std::string what, std::size_t size, std::size_t limit) {
  return make_error(ErrorCode::kTooLarge,
                    std::move(what) + " of " + std::to_string(size) + " bytes, limit " + std::to_string(limit));
}
Error malformed(std::string what) { return make_error(ErrorCode::kMalformed, std::move(what)); }

template <class T>
Status pack_fields(const T& item, std::string_view name, ByteSink& sink) {
  msgpack::packer<ByteSink> packer(sink);
  Writer writer(packer, fields::text_max<T>(), fields::bytes_max<T>());
  writer.put(item);
  if (writer.beyond())
    return make_error(ErrorCode::kTooLarge, std::string(name) + ": a " + writer.beyond() + " is beyond its limit");
  return Status::success();
}

template <class T>
Status parse_fields(ByteView bytes, std::string_view name, T& to, bool older = false) {
  try {
    const msgpack::unpack_limit limit(limits::kListMax, 0, limits::kBodyMax, limits::kSerialBytesMax, 0,
                                      limits::kDepthMax);
    // Texts and byte strings stay views into `bytes` until the reader has checked them.
    const auto as_reference = [](msgpack::type::object_type, std::size_t, void*) { return true; };
    std::size_t offset = 0;
    const msgpack::object_handle root = msgpack::unpack(reinterpret_cast<const char*>(bytes.data()), bytes.size(),
                                                        offset, as_reference, nullptr, limit);
    if (offset != bytes.size()) return malformed(std::string(name) + ": bytes behind the body");
    Reader reader(fields::text_max<T>(), fields::bytes_max<T>(), older);
    reader.get(root.get(), to);
    if (!reader.ok()) return make_error(reader.error().code, std::string(name) + ": " + reader.error().message);
    return Status::success();
  } catch (const std::exception& e) {  // unpack_error and bad_alloc; nothing of msgpack leaves this file
    return malformed(std::string(name) + ": " + e.what());
  }
}

using ParseBody = Status (*)(ByteView, Message&, bool older);

template <std::size_t I>
Status parse_body(ByteView bytes, Message& to, bool older) {
  auto& item = to.emplace<I>();
  return parse_fields(bytes, name_of(to), item, older);
}

template <std::size_t... I>
constexpr auto make_parsers(std::index_sequence<I...>) {
  return std::array<ParseBody, sizeof...(I)>{&parse_body<I>...};
}
constexpr auto kParsers = make_parsers(std::make_index_sequence<std::variant_size_v<Message>>{});

// The checksum covers all bytes but itself.
std::uint32_t checksum(ByteView envelope) {
  return crc32c(envelope.subspan(kPrologueBytes), crc32c(envelope.first(kCrcOffset)));
}

Status check_transfer(const TransferHead& transfer) {
  if (transfer.id == 0) return malformed("transfer 0");
  if (transfer.frames.empty()) return malformed("a transfer without frames");
  if (transfer.frames.size() > limits::kFramesPerMessageMax) {
    return make_error(ErrorCode::kTooLarge, std::to_string(transfer.frames.size()) + " frames, limit " +
                                                std::to_string(limits::kFramesPerMessageMax));
  }
  std::uint64_t total = 0;
  for (const FrameHead& frame : transfer.frames) {
    if (frame.bytes > limits::kTransferBytesMax - total)
      return too_large("transfer", frame.bytes + total, limits::kTransferBytesMax);
    total += frame.bytes;
  }
  return Status::success();
}

Status parse_transfer(ByteView bytes, TransferHead& to) {
  if (bytes.size() < kTransferPrefixBytes) return malformed("transfer description cut short");
  to.id = get_le<std::uint64_t>(bytes, 0);
  const std::size_t count = bytes[8];
  if (count > limits::kFramesPerMessageMax) {
    return make_error(ErrorCode::kTooLarge,
                      std::to_string(count) + " frames, limit " + std::to_string(limits::kFramesPerMessageMax));
  }
  if (bytes.size() != kTransferPrefixBytes + count * kFrameHeadBytes)
    return malformed("transfer description of the wrong length");
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = kTransferPrefixBytes + i * kFrameHeadBytes;
    to.frames.push_back({get_le<std::uint64_t>(bytes, at), get_le<std::uint32_t>(bytes, at + 8)});
  }
  return check_transfer(to);
}

}  // namespace

std::uint64_t TransferHead::total_bytes() const {
  std::uint64_t total = 0;
  for (const FrameHead& frame : frames) total += frame.bytes;
  return total;
}

std::uint16_t protocol_version() {
  return static_cast<std::uint16_t>(limits::kProtocolVersion + (SHOAL_FAULT("transport.foreign_version") ? 1 : 0));
}

Result<Bytes> pack_envelope(const Message& message, const std::optional<TransferHead>& transfer) {
  ByteSink sink;
  sink.bytes.resize(kPrologueBytes);
  SHOAL_TRY(std::visit([&](const auto& item) { return pack_fields(item, name_of(message), sink); }, message));
  const std::size_t body_bytes = sink.bytes.size() - kPrologueBytes;
  if (transfer) {
    SHOAL_TRY(check_transfer(*transfer));
    append_le<std::uint64_t>(sink.bytes, transfer->id);
    sink.bytes.push_back(static_cast<std::uint8_t>(transfer->frames.size()));
    for (const FrameHead& frame : transfer->frames) {
      append_le<std::uint64_t>(sink.bytes, frame.bytes);
      append_le<std::uint32_t>(sink.bytes, frame.crc);
    }
  }
  if (sink.bytes.size() > limits::kControlBytesMax)
    return too_large(std::string(name_of(message)), sink.bytes.size(), limits::kControlBytesMax);
  std::uint8_t* prologue = sink.bytes.data();
  put_le<std::uint32_t>(prologue, kMagic);
  put_le<std::uint16_t>(prologue + 4, protocol_version());
  prologue[6] = static_cast<std::uint8_t>(message.index());
  prologue[7] = transfer ? kFlagTransfer : 0;
  put_le<std::uint32_t>(prologue + 8, static_cast<std::uint32_t>(body_bytes));
  put_le<std::uint32_t>(prologue + kCrcOffset, checksum(sink.bytes));
  return Bytes::from_vector(std::move(sink.bytes));
}

namespace {
Status check_envelope(ByteView bytes, std::uint16_t oldest) {
  if (bytes.size() > limits::kControlBytesMax) return too_large("envelope", bytes.size(), limits::kControlBytesMax);
  if (bytes.size() < kPrologueBytes) return malformed("envelope of " + std::to_string(bytes.size()) + " bytes");
  if (get_le<std::uint32_t>(bytes, 0) != kMagic) return malformed("not an envelope of shoal");
  const std::uint16_t version = get_le<std::uint16_t>(bytes, 4);
  if (version < oldest || version > protocol_version()) {
    return make_error(ErrorCode::kVersion, "protocol version " + std::to_string(version) + ", this program speaks " +
                                               std::to_string(protocol_version()) +
                                               "; HINT: use the same release of shoal at both ends");
  }
  if (get_le<std::uint32_t>(bytes, kCrcOffset) != checksum(bytes))
    return make_error(ErrorCode::kCorrupt, "checksum of an envelope does not fit");
  return Status::success();
}
}  // namespace

Status check_envelope(ByteView bytes) { return check_envelope(bytes, protocol_version()); }

Result<Envelope> parse_envelope(ByteView bytes) { return parse_envelope(bytes, protocol_version()); }

Result<Envelope> parse_envelope(ByteView bytes, std::uint16_t oldest) {
  SHOAL_TRY(check_envelope(bytes, oldest));
  const std::uint8_t type = bytes[6], flags = bytes[7];
  if (type >= kParsers.size()) return malformed("message type " + std::to_string(type));
  if (flags & ~kFlagTransfer) return malformed("flags " + std::to_string(flags));
  const std::size_t body_bytes = get_le<std::uint32_t>(bytes, 8);
  const std::size_t rest = bytes.size() - kPrologueBytes;
  if (body_bytes > rest) return malformed("body cut short");
  if (!(flags & kFlagTransfer) && body_bytes != rest) return malformed("bytes behind the body");
  Envelope envelope;
  if (flags & kFlagTransfer)
    SHOAL_TRY(parse_transfer(bytes.subspan(kPrologueBytes + body_bytes), envelope.transfer.emplace()));
  const bool older = get_le<std::uint16_t>(bytes, 4) < protocol_version();
  SHOAL_TRY(kParsers[type](bytes.subspan(kPrologueBytes, body_bytes), envelope.message, older));
  return envelope;
}

namespace {
template <class T>
Result<std::vector<std::uint8_t>> pack_list(const T& list, const char* name) {
  ByteSink sink;
  SHOAL_TRY(pack_fields(list, name, sink));
  if (sink.bytes.size() > limits::kListBytesMax) return too_large(name, sink.bytes.size(), limits::kListBytesMax);
  return std::move(sink.bytes);
}
template <class T>
Result<T> parse_list(ByteView bytes, const char* name, bool older = false) {
  if (bytes.size() > limits::kListBytesMax) return too_large(name, bytes.size(), limits::kListBytesMax);
  T list;
  SHOAL_TRY(parse_fields(bytes, name, list, older));
  return list;
}
}  // namespace

Status check_relays(const std::vector<RelayPlace>& relays) {
  if (relays.size() > limits::kRelaysMax)
    return make_error(ErrorCode::kTooLarge,
                      std::to_string(relays.size()) + " relays, limit " + std::to_string(limits::kRelaysMax));
  std::set<std::string_view> known;
  for (const RelayPlace& relay : relays) {
    const auto place = parse_host_port(relay.address);
    if (!place.ok() || !place->is_literal()) return malformed("a relay that is no IP address with a port");
    if (!known.insert(relay.address).second) return malformed("relay " + relay.address + " twice");
  }
  return {};
}

Result<std::vector<std::uint8_t>> pack_member_list(const MemberList& list) { return pack_list(list, "MemberList"); }
Result<MemberList> parse_member_list(ByteView bytes, bool older) {
  SHOAL_ASSIGN(MemberList list, parse_list<MemberList>(bytes, "MemberList", older));
  SHOAL_TRY(check_relays(list.relays));
  return list;
}
Result<std::vector<std::uint8_t>> pack_list_change(const ListChange& change) { return pack_list(change, "ListChange"); }
Result<ListChange> parse_list_change(ByteView bytes) {
  SHOAL_ASSIGN(ListChange change, parse_list<ListChange>(bytes, "ListChange"));
  if (change.relays) SHOAL_TRY(check_relays(*change.relays));
  return change;
}

Bytes pack_chunk(const ChunkHead& head, const std::vector<ByteView>& pieces) {
  std::size_t payload = 0;
  for (const ByteView& piece : pieces) payload += piece.size();
  SHOAL_CHECK(payload >= 1 && payload <= limits::kChunkBytesMax);
  std::vector<std::uint8_t> bytes;
  bytes.reserve(kChunkHeadBytes + payload);
  append_le<std::uint32_t>(bytes, kChunkMagic);
  append_le<std::uint32_t>(bytes, static_cast<std::uint32_t>(payload));
  append_le<std::uint64_t>(bytes, head.transfer);
  append_le<std::uint64_t>(bytes, head.offset);
  for (const ByteView& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  note_bulk(payload);
  return Bytes::from_vector(std::move(bytes));
}

Result<ParsedChunk> parse_chunk(ByteView bytes) {
  if (bytes.size() > kChunkHeadBytes + limits::kChunkBytesMax)
    return too_large("chunk", bytes.size(), kChunkHeadBytes + limits::kChunkBytesMax);
  if (bytes.size() <= kChunkHeadBytes) return malformed("chunk of " + std::to_string(bytes.size()) + " bytes");
  if (get_le<std::uint32_t>(bytes, 0) != kChunkMagic) return malformed("not a chunk");
  if (get_le<std::uint32_t>(bytes, 4) != bytes.size() - kChunkHeadBytes) return malformed("chunk of the wrong length");
  return ParsedChunk{{get_le<std::uint64_t>(bytes, 8), get_le<std::uint64_t>(bytes, 16)},
                     bytes.subspan(kChunkHeadBytes)};
}

}  // namespace shoal
