#include "transport/inbox.h"

#include <algorithm>

#include "common/bulk_bytes.h"
#include "transport/limits.h"

namespace shoal {
namespace {
constexpr Duration kMeasureTimeMin = 20ms;
constexpr std::uint64_t kOnDemandBytes = kBulkBytesMax / 4;  // of a frame: what is copied as it grows is less
constexpr std::uint64_t kGrowth = 4;                         // of a frame's buffer, as a multiple of what came

Error malformed(const char* what) { return make_error(ErrorCode::kMalformed, what); }
}  // namespace

Inbox::Inbox(InboundBudget& budget, bool odd_transfers)
    : budget_(budget),
      odd_(odd_transfers),
      granted_(limits::kByteCreditsInitial),
      window_(limits::kByteCreditsInitial) {}

Inbox::~Inbox() { budget_.used -= reserved_; }

Status Inbox::on_header(const TransferHead& head) {
  if ((head.id % 2 == 1) != odd_) return malformed("transfer number of the wrong parity");
  if (head.id <= last_header_)
    return make_error(ErrorCode::kStale, "transfer " + std::to_string(head.id) + " came before");
  last_header_ = head.id;
  const std::uint64_t total = head.total_bytes();
  // Chunks of transfers whose header was refused or damaged: nobody will ask for them now.
  while (!early_.empty()) {
    const auto chunk = parse_chunk(early_.front());
    if (chunk->head.transfer >= head.id) break;
    consumed(chunk->payload.size());
    early_.pop_front();
  }
  if (reserved_ + total > limits::kInboundBytesPerPeerMax || budget_.used + total > budget_.limit) {
    return make_error(ErrorCode::kTooLarge,
                      "transfer of " + std::to_string(total) + " bytes: " + std::to_string(reserved_) +
                          " are reserved for this link, " + std::to_string(budget_.used) + " for all");
  }
  reserved_ += total;
  budget_.used += total;
  Incoming incoming;
  incoming.total = total;
  for (const FrameHead& frame : head.frames) {
    incoming.frames.emplace_back();
    incoming.frames.back().head = frame;
  }
  active_.emplace(head.id, std::move(incoming));
  return Status::success();
}

std::vector<Inbox::Finished> Inbox::replay() {
  std::vector<Finished> finished;
  if (const auto newest = active_.find(last_header_); newest != active_.end() && newest->second.total == 0) {
    Incoming incoming = std::move(newest->second);
    active_.erase(newest);
    finished.push_back(finish(last_header_, std::move(incoming)));
  }
  while (!early_.empty()) {
    const Bytes bytes = early_.front();
    const auto chunk = parse_chunk(bytes);
    if (chunk->head.transfer > last_header_) break;
    early_.pop_front();
    if (!place(*chunk, finished).ok()) drop(chunk->head.transfer);  // out of order: what is left of it is discarded
  }
  return finished;
}

Result<std::vector<Inbox::Finished>> Inbox::on_chunk(Bytes bytes) {
  SHOAL_ASSIGN(const ParsedChunk chunk, parse_chunk(bytes));
  if (chunk.payload.size() > granted_) return malformed("more bulk bytes than were granted");
  if ((chunk.head.transfer % 2 == 1) != odd_) return malformed("chunk with a transfer number of the wrong parity");
  granted_ -= chunk.payload.size();
  received_ += chunk.payload.size();
  measured_ += chunk.payload.size();
  std::vector<Finished> finished;
  if (chunk.head.transfer > last_header_) {
    early_.push_back(std::move(bytes));
    if (early_.size() > limits::kOutboundQueueMax) return malformed("too many chunks before their headers");
    return finished;
  }
  SHOAL_TRY(place(chunk, finished));
  return finished;
}

Status Inbox::place(const ParsedChunk& chunk, std::vector<Finished>& finished) {
  consumed(chunk.payload.size());
  const auto found = active_.find(chunk.head.transfer);
  if (found == active_.end()) return Status::success();  // dropped or refused: discarded unread
  Incoming& incoming = found->second;
  if (chunk.head.offset != incoming.received) return malformed("chunk out of order");
  if (chunk.payload.size() > incoming.total - incoming.received)
    return malformed("chunk beyond the end of its transfer");
  ByteView rest = chunk.payload;
  while (!rest.empty()) {
    Frame& frame = incoming.frames[incoming.current];
    if (frame.filled == frame.head.bytes) {
      ++incoming.current;
      continue;
    }
    const ByteView part = rest.first(std::min<std::uint64_t>(rest.size(), frame.head.bytes - frame.filled));
    make_room(frame, part.size());
    std::memcpy(frame.buffer.data() + frame.filled, part.data(), part.size());
    note_bulk(part.size());
    frame.crc = crc32c(part, frame.crc);
    frame.filled += part.size();
    rest = rest.subspan(part.size());
  }
  incoming.received += chunk.payload.size();
  if (incoming.received == incoming.total) {
    Incoming whole = std::move(incoming);
    active_.erase(found);
    finished.push_back(finish(chunk.head.transfer, std::move(whole)));
  }
  return Status::success();
}

// What was announced is only believed as it comes: a frame's buffer grows by kGrowth, and its first size is that of the
// first chunk. One that becomes larger than kOnDemandBytes gets its last size, page by page as it is filled, and
// nothing of it is copied again.
void Inbox::make_room(Frame& frame, std::uint64_t bytes) {
  const std::uint64_t needed = frame.filled + bytes;
  if (needed <= frame.buffer.size()) return;
  const std::uint64_t grown = std::min(frame.head.bytes, std::max(needed, kGrowth * frame.filled));
  Buffer larger = grown < kOnDemandBytes ? Buffer(grown) : Buffer::on_demand(frame.head.bytes);
  if (frame.filled > 0) std::memcpy(larger.data(), frame.buffer.data(), frame.filled);
  note_bulk(frame.filled);
  frame.buffer = std::move(larger);
}

Inbox::Finished Inbox::finish(std::uint64_t id, Incoming incoming) {
  release(incoming.total);
  std::vector<Bytes> frames;
  for (Frame& frame : incoming.frames) {
    if (frame.crc != frame.head.crc) {
      return {id,
              make_error(ErrorCode::kCorrupt, "checksum of frame " + std::to_string(frames.size()) + " does not fit")};
    }
    frames.push_back(std::move(frame.buffer).freeze());
  }
  return {id, std::move(frames)};
}

bool Inbox::drop(std::uint64_t transfer) {
  const auto found = active_.find(transfer);
  if (found == active_.end()) return false;
  release(found->second.total);
  active_.erase(found);
  return true;
}

std::vector<std::uint64_t> Inbox::abandon() {
  std::vector<std::uint64_t> transfers;
  for (const auto& [id, incoming] : active_) transfers.push_back(id);
  active_.clear();
  early_.clear();
  release(reserved_);
  return transfers;
}

void Inbox::consumed(std::uint64_t bytes) { consumed_ += bytes; }

void Inbox::release(std::uint64_t bytes) {
  reserved_ -= bytes;
  budget_.used -= bytes;
}

std::optional<std::uint64_t> Inbox::take_grant(TimePoint now, Duration rtt) {
  if (measured_ > 0 && measure_since_ == TimePoint{}) measure_since_ = now;
  if (const Duration span = now - measure_since_;
      measure_since_ != TimePoint{} && span >= std::max(rtt, kMeasureTimeMin)) {
    const double rate = static_cast<double>(measured_) / seconds_of(span);
    const auto wanted = static_cast<std::uint64_t>(2 * rate * seconds_of(rtt));
    window_ = std::clamp(std::max(wanted, window_), limits::kByteCreditsInitial, limits::kByteCreditsMax);
    measure_since_ = now;
    measured_ = 0;
  }
  if (consumed_ == told_) return std::nullopt;
  told_ = consumed_;
  std::uint64_t waiting = 0;
  for (const Bytes& chunk : early_) waiting += chunk.size();
  // All that is neither granted nor held by early chunks, up to the window.
  const std::uint64_t outstanding = granted_ + waiting;
  if (outstanding >= window_) return 0;
  const std::uint64_t grant = window_ - outstanding;
  granted_ += grant;
  return grant;
}

}  // namespace shoal
