// What courier and ledger ask of the peer: frames, won gradients, messages sent.
#include <cmath>

#include "common/log.h"
#include "runtime/stage_peer/stage_peer.h"

namespace shoal {

// ---- HopOwner ----

std::vector<Bytes> StagePeer::frames_of(const Session& to, const Forward& message, bool key) {
  const Entry* entry = ledger_.find_live(message.microbatch);
  SHOAL_CHECK(entry != nullptr);
  const auto tensors = tensors_.find(entry->name.serial);
  SHOAL_CHECK(tensors != nullptr);
  const OutgoingActivation& output = tensors->output;
  if (message.kind != ForwardKind::kTrain || output.after_key.empty()) return {tensors->input.front(), output.key};
  if (key) bases_.lacks(to, message.sample);
  const bool delta = bases_.sends_delta(to, message.sample, output.base_hash);
  tensors->sent_deltas[message.lease] = delta;
  return {tensors->input.front(), delta ? output.delta : output.key};
}

void StagePeer::on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) {
  if (end != BranchEnd::kSettled) return;
  const Entry* entry = ledger_.find_live(microbatch);
  SHOAL_CHECK(entry != nullptr);
  const auto tensors = tensors_.find(entry->name.serial);
  SHOAL_CHECK(tensors != nullptr);
  const auto delta = tensors->sent_deltas.find(lease);
  if (delta == tensors->sent_deltas.end()) return;  // no codec with bases
  bases_.settled(to, entry->sample, delta->second ? tensors->output.after_delta : tensors->output.after_key);
}

bool StagePeer::ask_trainer(Waiting message) {
  const auto sent = env_.transport.send(options_.authority, message);
  if (!sent.ok()) log_debug("not asked: ", sent.error().message);
  return sent.ok();
}

void StagePeer::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) {
  const Entry* entry = ledger_.find_live(microbatch);
  if (entry == nullptr) return;
  const bool train = entry->kind == ForwardKind::kTrain;
  if (train && (frames.size() != 1 || gradient.path.size() + options_.spec.stage.value + 1 != options_.spec.stages ||
                !std::isfinite(gradient.loss_sum) || gradient.targets != options_.config->targets_per_microbatch())) {
    courier_.reject(microbatch, "malformed gradient", env_.loop.now());
    return;
  }
  if (train) tensors_.find(entry->name.serial)->gradient_in = std::move(frames.front());
  ledger_.gradient_arrived(microbatch, gradient);
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

void StagePeer::discard(EntrySerial serial) {
  const Entry* entry = ledger_.find(serial);
  const auto tensors = tensors_.find(serial);
  if (entry != nullptr && is_final(entry->state) && tensors != nullptr && !tensors->after.empty())
    bases_.keep(entry->transfer_from, entry->sample, std::move(tensors->after));
  tensors_.erase(serial);
}

bool StagePeer::send_gradient(const Session& to, Gradient message, EntrySerial serial) {
  if (!message.path.empty()) meters_.computed(message.forward_us, message.backward_us);
  std::vector<Bytes> frames;
  if (const auto tensors = tensors_.find(serial); tensors != nullptr && !tensors->gradient_out.empty())
    frames.push_back(tensors->gradient_out);
  return neighbours_.send_to(to, std::move(message), std::move(frames)).ok();
}

void StagePeer::refuse_frames(const Session& from, TransferId transfer) {
  const auto peer = neighbours_.peer_of(from);
  if (!peer) return;
  tensors_.forget({*peer, transfer});
  env_.transport.refuse(*peer, transfer);
}

}  // namespace shoal
