// What comes to a peer over its links, and whom it concerns; what is refused; what is sent.
#include "common/log.h"
#include "runtime/config/frames_allowed.h"
#include "runtime/peer/peer.h"
#include "transport/one_taker.h"

namespace shoal {

void Peer::on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) {
  Life& life = *life_;
  if (!state_.in_session()) {
    if (transfer != 0) life.transport->refuse(remote.peer, transfer);
    return;
  }
  const bool may_have_frames =
      std::visit([](const auto& m) { return AnyOf<decltype(m), Chunk, Forward, Gradient, RoundPart>; }, message);
  if (transfer != 0 && !may_have_frames) return life.transport->refuse(remote.peer, transfer);
  const auto to_stage = [&] {
    if (life.stage_peer)
      life.stage_peer->on_message(remote, message, transfer, frame_bytes);
    else if (transfer != 0)
      life.transport->refuse(remote.peer, transfer);
  };
  std::visit(
      OneTaker{
          [&](const StateQuery& m) {
            if (life.donor) life.donor->on_query(remote.peer, m);
          },
          [&](const ChunkQuery& m) {
            if (life.donor) life.donor->on_chunk_query(remote.peer, m);
          },
          [&](const StateOffer& m) {
            if (life.fetcher) life.fetcher->on_offer(remote.peer, m);
          },
          [&](const Chunk& m) { on_chunk(remote, m, transfer, frame_bytes); },
          [&](const Manifest& m) {
            if (is_authority(remote.peer) && !config_) on_manifest(m);
          },
          [&](const PeersQuery&) {
            if (auto records = announcing_.known()) send(remote.peer, Peers{*std::move(records)});
          },
          [&](const Peers& m) { announcing_.offer(m.records); },
          [&](const End& m) { on_end_message(remote, m); },
          // The stage's peer hears by them, too, that the authority is there.
          [&](const AnyOf<JoinAnswer, Members, MembersChange, BeatAck, Fenced, Goodbye> auto& m) {
            if (to_membership(remote, m)) to_stage();
          },
          [&](const AnyOf<Forward, Take, Busy, Have, Gone, NeedKeyFrame, Progress, Gradient, Release, Renew, Waiting,
                          Hint, Commit, CommitAck, Step, RoundOpen, RoundPart, RoundCommit, RoundAbandon> auto&) {
            to_stage();
          },
          // What the authority takes, and what a link keeps to itself.
          [](const AnyOf<JoinRequest, Beat, Leave, MembersQuery, RoundReport, ManifestQuery> auto&) {},
          [](const AnyOf<Hello, Ping, Pong, ByteCredit, DropTransfer> auto&) {},
      },
      message);
}

bool Peer::to_membership(const Remote& remote, const MembershipMessage& message) {
  if (!life_->membership || !is_authority(remote.peer)) return true;
  if (const Status status = life_->membership->on_message(message); !status.ok())
    if (const auto times = said_.due(std::string(name_of(status.code())), env_.loop.now()))
      log_warning("from the authority: ", status.error().message, LogThrottle::text_of(*times));
  return !std::holds_alternative<Fenced>(message) && state_.in_session();
}

void Peer::on_chunk(const Remote& remote, const Chunk& chunk, TransferId transfer, std::uint64_t frame_bytes) {
  if (!chunk_wanted(life_->fetcher.get(), remote.peer, chunk, frame_bytes)) {
    if (transfer != 0) life_->transport->refuse(remote.peer, transfer);
    return;
  }
  if (transfer == 0) return life_->fetcher->on_chunk(remote.peer, chunk, {});
  if (!life_->inbound.add(remote.peer, transfer, chunk)) life_->transport->refuse(remote.peer, transfer);
}

// The authority proved its key when the link came up; of anybody else the signature does.
void Peer::on_end_message(const Remote& remote, const End& end) {
  const bool is_signed = check_end(end, options_.run).ok();
  if (!is_signed && !is_authority(remote.peer)) {
    log_debug("from ", short_name(remote.peer), ": an end of the run that the run's key did not sign");
    return;
  }
  if (is_signed) end_ = end;
  if (life_->membership) (void)life_->membership->on_message(end);
  if (!state_.is(PeerPhase::kOver)) on_end(end.reason);  // it asked for no place yet
}

void Peer::on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) {
  if (!state_.in_session()) return;
  if (const auto chunk = life_->inbound.take(remote.peer, transfer)) {
    if (life_->fetcher && frames.ok() && frames->size() == 1)
      life_->fetcher->on_chunk(remote.peer, *chunk, frames->front());
    return;
  }
  if (life_->stage_peer) life_->stage_peer->on_frames(remote, transfer, frames);
}

// A machine that is told by another address than it comes from (a forwarded port, two networks) is dialled there once
// it paid: with the requests behind the first answer that says so.
void Peer::send_to_authority(Message message) {
  std::vector<Bytes> frames;
  if (std::holds_alternative<JoinRequest>(message) && !reachability_.why().empty())
    frames.push_back(Bytes::copy_of(std::string(kDialPaymentBytes, '\0')));
  send(authority(), std::move(message), std::move(frames));
}
void Peer::send(const PeerId& to, Message message) { send(to, std::move(message), {}); }
void Peer::send(const PeerId& to, Message message, std::vector<Bytes> frames) {
  if (const auto sent = life_->transport->send(to, std::move(message), std::move(frames)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

}  // namespace shoal
