// What comes to a peer over its links, and whom it concerns; what is refused; what is sent.
#include <algorithm>

#include "common/log.h"
#include "runtime/config/frames_allowed.h"
#include "runtime/peer/peer.h"

namespace shoal {

void Peer::on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) {
  if (restarting_ || over_) {
    if (transfer != 0) transport_->refuse(remote.peer, transfer);
    return;
  }
  if (auto* m = std::get_if<Chunk>(&message)) return on_chunk(remote, *m, transfer, frame_bytes);
  const bool of_work = std::holds_alternative<Forward>(message) || std::holds_alternative<Gradient>(message) ||
                       std::holds_alternative<RoundPart>(message);
  if (transfer != 0 && !of_work) return transport_->refuse(remote.peer, transfer);  // these bring no frames
  if (auto* m = std::get_if<StateQuery>(&message)) {
    if (donor_) donor_->on_query(remote.peer, *m);
  } else if (auto* m = std::get_if<ChunkQuery>(&message)) {
    if (donor_) donor_->on_chunk_query(remote.peer, *m);
  } else if (auto* m = std::get_if<StateOffer>(&message)) {
    if (fetcher_) fetcher_->on_offer(remote.peer, *m);
  } else if (auto* m = std::get_if<Manifest>(&message)) {
    if (is_authority(remote.peer) && !config_) on_manifest(*m);
  } else if (std::holds_alternative<PeersQuery>(message)) {
    if (env_.directory != nullptr) send(remote.peer, Peers{env_.directory->known(64)}, {});
  } else if (auto* m = std::get_if<Peers>(&message)) {
    if (env_.directory != nullptr) env_.directory->offer(m->records);
  } else {
    const auto* fenced = std::get_if<Fenced>(&message);
    if (membership_ && (is_authority(remote.peer) || std::holds_alternative<Members>(message))) {
      if (const Status status = membership_->on_message(message); !status.ok())
        log_warning("from the authority: ", status.error().message);
      if (fenced != nullptr || restarting_ || over_) return;
    }
    if (stage_peer_)
      stage_peer_->on_message(remote, message, transfer, frame_bytes);
    else if (transfer != 0)
      transport_->refuse(remote.peer, transfer);
  }
}

void Peer::on_chunk(const Remote& remote, const Chunk& chunk, TransferId transfer, std::uint64_t frame_bytes) {
  if (!chunk_wanted(fetcher_.get(), remote.peer, chunk, frame_bytes)) {
    if (transfer != 0) transport_->refuse(remote.peer, transfer);
    return;
  }
  if (transfer == 0) return fetcher_->on_chunk(remote.peer, chunk, {});
  const bool announced = std::any_of(inbound_chunks_.begin(), inbound_chunks_.end(), [&](const auto& item) {
    return item.first.peer == remote.peer && item.second.index == chunk.index;
  });
  if (announced) return transport_->refuse(remote.peer, transfer);
  inbound_chunks_[{remote.peer, transfer}] = chunk;
}

void Peer::on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) {
  if (restarting_ || over_) return;
  if (const auto it = inbound_chunks_.find({remote.peer, transfer}); it != inbound_chunks_.end()) {
    const Chunk chunk = it->second;
    inbound_chunks_.erase(it);
    if (fetcher_ && frames.ok() && frames->size() == 1) fetcher_->on_chunk(remote.peer, chunk, frames->front());
    return;
  }
  if (stage_peer_) stage_peer_->on_frames(remote, transfer, frames);
}

void Peer::send_to_authority(Message message) { send(as_peer(options_.run), std::move(message), {}); }
void Peer::send(const PeerId& to, Message message) { send(to, std::move(message), {}); }
void Peer::send(const PeerId& to, Message message, std::vector<Bytes> frames) {
  if (!transport_) return;
  if (const auto sent = transport_->send(to, std::move(message), std::move(frames)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

}  // namespace shoal
