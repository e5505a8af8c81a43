// What courier and ledger ask of the peer: messages sent, hops opened and closed, events written.
#include "common/log.h"
#include "runtime/stage_peer/stage_peer.h"
#include "runtime/stage_peer/stage_peer_parts.h"

namespace shoal {

// ---- CourierPort ----

std::vector<Session> StagePeer::candidates(StageId stage) {
  auto result = roster_.candidates(stage, env_.loop.now());
  std::erase(result, options_.self);
  return result;
}

std::uint64_t StagePeer::low_of(std::uint64_t trainer) { return ledger_.low_of(trainer); }

Result<TransferId> StagePeer::send_forward(const Session& to, Forward message, bool key) {
  const Ledger::Entry* entry = ledger_.find_live(message.microbatch);
  SHOAL_CHECK(entry != nullptr);
  const auto tensors = tensors_.find(entry->serial);
  SHOAL_CHECK(tensors != tensors_.end());
  Bytes frame = tensors->second->output;
  if (env_.coder != nullptr && !key && message.kind == ForwardKind::kTrain)
    if (auto delta = env_.coder->delta_for(to, message.sample, tensors->second->activation)) frame = *std::move(delta);
  return send_to(to, std::move(message), {tensors->second->input.front(), std::move(frame)});
}

void StagePeer::on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) {
  if (env_.coder != nullptr) env_.coder->on_branch(microbatch, to, lease, end);
}

void StagePeer::send(const Session& to, Message message) {
  if (auto* commit = std::get_if<shoal::Commit>(&message)) {  // passed on: it says how far the run is, too
    commit->run_targets = run_targets_;
    commit->run_loss = run_loss_;
  }
  if (const auto sent = send_to(to, std::move(message), {}); !sent.ok()) log_debug("not sent: ", sent.error().message);
}

void StagePeer::ask_trainer(shoal::Waiting message) {
  if (const auto sent = env_.transport.send(options_.authority, message); !sent.ok())
    log_debug("not asked: ", sent.error().message);
}

void StagePeer::drop_transfer(const Session& to, TransferId transfer) {
  if (const auto peer = roster_.peer_of(to)) env_.transport.drop(*peer, transfer);
}

void StagePeer::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) {
  const Ledger::Entry* entry = ledger_.find_live(microbatch);
  if (entry == nullptr) return;
  const bool train = entry->kind == ForwardKind::kTrain;
  if (train && (frames.size() != 1 || gradient.path.size() + options_.spec.stage.value + 1 != options_.spec.stages)) {
    courier_.reject(microbatch, "malformed gradient", env_.loop.now());
    return;
  }
  if (train) tensors_.at(entry->serial)->gradient_in = std::move(frames.front());
  ledger_.gradient_arrived(microbatch, gradient, env_.loop.now());
}

void StagePeer::on_parked(const MicrobatchId&, StageId stage, bool parked) {
  if (courier_.parked() != (parked ? 1u : 0u))
    return;  // said once, when the first one waits and when none does any more
  if (parked)
    log_warning("stage ", stage, " has no live peer: microbatches wait here");
  else
    log_info("no microbatch waits here for a peer of stage ", stage, " any more");
}

// ---- LedgerPort ----

bool StagePeer::send_gradient(const Session& to, Gradient message, EntrySerial serial) {
  std::vector<Bytes> frames;
  if (const auto it = tensors_.find(serial); it != tensors_.end() && !it->second->gradient_out.empty())
    frames.push_back(it->second->gradient_out);
  return send_to(to, std::move(message), std::move(frames)).ok();
}

void StagePeer::refuse_frames(const Session& from, TransferId transfer) {
  std::optional<PeerId> peer = roster_.peer_of(from);
  if (!peer && authority_session_ == from) peer = options_.authority;
  if (!peer) return;
  inbound_inputs_.erase({*peer, transfer});
  env_.transport.refuse(*peer, transfer);
}

void StagePeer::open_hop(EntrySerial serial) {
  const Ledger::Entry& entry = *ledger_.find(serial);
  HopSpec spec;
  spec.microbatch = entry.microbatch;
  spec.sample = entry.sample;
  spec.epoch = entry.epoch;
  spec.kind = entry.kind;
  spec.step = entry.step;
  spec.to = StageId(static_cast<std::uint16_t>(options_.spec.stage.value + 1));
  spec.above = entry.above;
  spec.above.push_back(options_.self);
  spec.frame_bytes = tensors_.at(serial)->output.size();
  spec.hint = entry.hint;
  courier_.open(std::move(spec), env_.loop.now());
}

void StagePeer::close_hop(const MicrobatchId& microbatch, ReleaseWhy why) { courier_.close(microbatch, why); }

void StagePeer::commit_hop(const MicrobatchId& microbatch) {
  courier_.commit(microbatch);
  if (const Ledger::Entry* entry = ledger_.find_live(microbatch)) tensors_.erase(entry->serial);
}

void StagePeer::forget_hop(const MicrobatchId& microbatch) { courier_.forget(microbatch); }

void StagePeer::take(const MicrobatchId& microbatch, const GradientHint& hint) {
  courier_.take(microbatch, hint, env_.loop.now());
}

void StagePeer::discard(EntrySerial serial) { tensors_.erase(serial); }

}  // namespace shoal
