#include "transport/outbox.h"

#include <algorithm>

#include "transport/envelope.h"

namespace shoal {
namespace {

// The parts of `frames` that make up [offset, offset + size) of their concatenation.
std::vector<ByteView> pieces_of(const std::vector<Bytes>& frames, std::uint64_t offset, std::uint64_t size) {
  std::vector<ByteView> pieces;
  for (const Bytes& frame : frames) {
    if (size == 0) break;
    if (offset >= frame.size()) {
      offset -= frame.size();
      continue;
    }
    const std::uint64_t here = std::min<std::uint64_t>(size, frame.size() - offset);
    pieces.push_back(frame.view().subspan(offset, here));
    size -= here;
    offset = 0;
  }
  return pieces;
}

}  // namespace

Result<std::uint64_t> Outbox::push(const Message& message, std::vector<Bytes> frames) {
  if (control_.size() >= limits::kOutboundQueueMax) {
    return make_error(ErrorCode::kBusy, std::to_string(control_.size()) + " messages wait for this link already");
  }
  std::optional<TransferHead> head;
  std::uint64_t total = 0;
  if (!frames.empty()) {
    head.emplace().id = next_transfer_;
    for (const Bytes& frame : frames) {
      head->frames.push_back({frame.size(), frame.sum()});
      total += frame.size();
    }
    if (total <= limits::kTransferBytesMax && queued_bytes_ + total > limits::kOutboundBytesMax) {
      return make_error(ErrorCode::kBusy, std::to_string(queued_bytes_) + " frame bytes wait for this link already");
    }
  }
  SHOAL_ASSIGN(Bytes envelope, pack_envelope(message, head));
  control_.push_back(std::move(envelope));
  if (!head) return std::uint64_t{0};
  next_transfer_ += 2;
  if (total > 0) transfers_.push_back({head->id, std::move(frames), total, 0});
  queued_bytes_ += total;
  return head->id;
}

void Outbox::push_link_message(const Message& message) {
  auto envelope = pack_envelope(message, std::nullopt);
  SHOAL_CHECK(envelope.ok());
  control_.push_back(std::move(envelope).value());
}

bool Outbox::drop(std::uint64_t transfer) {
  const auto found =
      std::find_if(transfers_.begin(), transfers_.end(), [&](const Transfer& t) { return t.id == transfer; });
  if (found == transfers_.end()) return false;
  queued_bytes_ -= found->total - found->sent;
  transfers_.erase(found);
  return true;
}

std::uint64_t Outbox::ahead_of(std::uint64_t transfer) const {
  std::uint64_t bytes = 0;
  for (const Transfer& waiting : transfers_) {
    bytes += waiting.total - waiting.sent;
    if (waiting.id == transfer) return bytes;
  }
  return 0;
}

void Outbox::open() { credit_ = limits::kByteCreditsInitial; }

bool Outbox::add_credit(std::uint64_t bytes) {
  if (bytes > limits::kByteCreditsMax || credit_ + bytes > limits::kByteCreditsMax) return false;
  credit_ += bytes;
  return true;
}

Outbox::Sent Outbox::pump(Wire& wire, ConnectionId connection, LineFill& line, TimePoint now, std::uint64_t bulk_max) {
  Sent sent;
  while (!control_.empty()) {
    const std::size_t bytes = control_.front().size();
    if (!wire.send(connection, Lane::kControl, control_.front()).ok())
      break;  // busy: on_writable follows; gone: on_down does
    sent.control_bytes += bytes;
    control_.pop_front();
  }
  // The header of a transfer leaves before its chunks do; a lane that is busy with headers holds the chunks back as
  // well.
  while (control_.empty() && !transfers_.empty() && sent.chunk_payload_bytes < bulk_max) {
    Transfer& transfer = transfers_.front();
    // Not in crumbs: what is too little for a chunk waits for more, unless it is all that the transfer needs.
    const std::uint64_t payload = std::min(transfer.total - transfer.sent, line.chunk_bytes());
    if (credit_ < payload || (sent.chunk_payload_bytes > 0 && sent.chunk_payload_bytes + payload > bulk_max)) break;
    if (line.room() < payload) {
      line.on_held();
      break;
    }
    Bytes chunk = pack_chunk({transfer.id, transfer.sent}, pieces_of(transfer.frames, transfer.sent, payload));
    if (!wire.send(connection, Lane::kBulk, std::move(chunk)).ok()) break;
    line.on_sent(now, payload);
    credit_ -= payload;
    queued_bytes_ -= payload;
    transfer.sent += payload;
    sent.chunk_payload_bytes += payload;
    sent.bulk_bytes += payload + kChunkHeadBytes;
    if (transfer.sent == transfer.total) transfers_.pop_front();
  }
  return sent;
}

void Outbox::clear() {
  control_.clear();
  transfers_.clear();
  queued_bytes_ = 0;
  credit_ = 0;
}

}  // namespace shoal
