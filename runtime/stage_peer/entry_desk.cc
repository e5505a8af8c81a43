#include "runtime/stage_peer/entry_desk.h"

#include "common/check.h"
#include "common/log.h"
#include "common/trainer_id.h"
#include "router/loss_claim.h"

namespace shoal {

namespace {

// A microbatch that nobody will ever decide: its claims would keep what is counted beside it from being stepped. The
// trainer issues none a whole window above its low-water mark, of which the newest may be on its way here.
bool never_issued(const Forward& message, const StageSession& session, const Ledger& ledger) {
  const MicrobatchId& id = message.microbatch;
  if (message.kind != ForwardKind::kTrain) return !is_evaluation_id(id.trainer);
  if (id.trainer != trainer_id_of(session.authority)) return true;
  const std::uint64_t low = ledger.low_of(id.trainer);
  return low > 0 && id.serial > low && id.serial - low >= 2 * session.config->id_window();
}

}  // namespace

std::optional<BusyReason> evaluation_refused(const Forward& message, const StageSpec& spec, Version here) {
  if (message.kind != ForwardKind::kEvaluate) return std::nullopt;
  if (message.versions.empty()) return std::nullopt;
  if (message.versions.size() != spec.stages) return BusyReason::kMalformed;
  const Version wanted = message.versions[spec.stage.value];
  if (here == wanted) return std::nullopt;
  return here < wanted ? BusyReason::kBehind : BusyReason::kAhead;
}

std::shared_ptr<EntryTensors> EntryDesk::tensors_of(const MicrobatchId& microbatch) const {
  const Entry* entry = ledger_.entries().find_live(microbatch);
  SHOAL_CHECK(entry != nullptr);
  return tensors_.at(entry->name.serial);
}

std::optional<BusyReason> EntryDesk::unfit(const Remote& from, const Forward& message, TransferId transfer) {
  // The holder of what this stage needs is the trainer, or a peer of the stage before.
  const StageId stage = session_.spec.stage;
  const auto before = session_.spec.route().before;
  const bool holds = before ? neighbours_.roster().stage_of(from.session) == before : neighbours_.is_trainer(from);
  if (!holds || message.stage != stage || transfer == 0) return BusyReason::kNotServing;
  if (!never_issued(message, session_, ledger_)) return std::nullopt;
  if (const auto times = said_.due(short_name(from.session), session_.loop.now()))
    log_warning("stage ", stage, ": microbatch ", message.microbatch, " of session ", short_name(from.session),
                " refused: the run's trainer issued no such one", LogThrottle::text_of(*times));
  return BusyReason::kMalformed;
}

void EntryDesk::on_forward(const Remote& from, const Forward& message, TransferId transfer) {
  const TimePoint now = session_.loop.now();
  const auto serial = ledger_.on_forward(from.session, message, transfer, now);
  if (!serial) return;
  tensors_.begin(*serial, message.microbatch);  // key frames begin anew
}

bool EntryDesk::on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  const TimePoint now = session_.loop.now();
  if (courier_.on_frames(from, transfer, frames, now)) return true;
  const auto serial = ledger_.awaits(from.session, transfer);
  if (!serial) return false;
  const std::size_t wanted = session_.spec.is_first() ? 1 : 2;
  if (!frames.ok() || frames->size() != wanted) {
    ledger_.inputs_lost(*serial, frames.ok() ? BusyReason::kMalformed : BusyReason::kFailed);
    return true;
  }
  tensors_.at(*serial)->input = std::move(*frames);
  ledger_.inputs_arrived(*serial, now);
  return true;
}

std::vector<Session> EntryDesk::on_members(const MemberList& list) {
  std::vector<Session> over = courier_.on_members(list, session_.loop.now()).over;
  for (const Session& session : over) {
    ledger_.on_session_over(session);
    bases_.forget(session);
  }
  return over;
}

void EntryDesk::on_link_down(const Remote& remote) {
  const TimePoint now = session_.loop.now();
  ledger_.on_link_down(courier_.on_link_down(remote, now), now);
}

void EntryDesk::send_progress(std::uint32_t job_ms, bool all) {
  std::unordered_map<Lease, HopPhase> now_told;
  for (auto& [holder, items] : ledger_.progress()) {
    Progress message;
    message.queue_ms = ledger_.queue_ms();
    message.job_ms = job_ms;
    for (const ProgressItem& item : items) {
      const auto known = told_.find(item.lease);
      if (all || known == told_.end() || known->second != item.phase) message.items.push_back(item);
      now_told[item.lease] = item.phase;
    }
    if (!message.items.empty()) send(holder, std::move(message));
  }
  told_ = std::move(now_told);
}

// ---- HopOwner ----

std::vector<Bytes> EntryDesk::frames_of(const Session& to, const Forward& message, bool key) {
  const auto tensors = tensors_of(message.microbatch);
  const OutgoingActivation& output = tensors->output;
  if (message.kind != ForwardKind::kTrain || output.after_key.empty()) return {tensors->input.front(), output.key};
  if (key) bases_.lacks(to, message.sample);
  const bool delta = bases_.sends_delta(to, message.sample, output.base_hash);
  tensors->sent_deltas[message.lease] = delta;
  return {tensors->input.front(), delta ? output.delta : output.key};
}

void EntryDesk::on_branch(const MicrobatchId& microbatch, const Session& to, const Lease& lease, BranchEnd end) {
  if (end != BranchEnd::kSettled) return;
  const auto tensors = tensors_of(microbatch);
  const auto delta = tensors->sent_deltas.find(lease);
  if (delta == tensors->sent_deltas.end()) return;  // no codec with bases
  bases_.settled(to, ledger_.entries().find_live(microbatch)->sample,
                 delta->second ? tensors->output.after_delta : tensors->output.after_key);
}

void EntryDesk::on_won(const MicrobatchId& microbatch, const Gradient& gradient, std::vector<Bytes> frames) {
  const Entry* entry = ledger_.entries().find_live(microbatch);
  if (entry == nullptr) return;
  const bool train = entry->kind == ForwardKind::kTrain;
  std::string refusal =
      LossBound{session_.config->targets_per_microbatch(), session_.config->model.vocabulary}.refusal(gradient);
  if (train && (frames.size() != 1 || gradient.path.size() != session_.spec.route().behind ||
                gradient.tags.size() != gradient.path.size()))
    refusal = "malformed gradient";
  if (!refusal.empty()) return courier_.reject(microbatch, refusal, session_.loop.now());
  if (train) tensors_of(microbatch)->gradient_in = std::move(frames.front());
  ledger_.gradient_arrived(microbatch, gradient);
}

// Said once, when the first one waits and when none does any more.
void EntryDesk::on_parked(const MicrobatchId&, StageId stage, bool parked) {
  if (courier_.hops().parked() != (parked ? 1u : 0u)) return;
  if (parked)
    log_warning("stage ", stage, " has no live peer: microbatches wait here");
  else
    log_info("no microbatch waits here for a peer of stage ", stage, " any more");
}

// ---- LedgerPort ----

bool EntryDesk::ask_trainer(Waiting message) {
  const auto sent = session_.links.send(session_.authority, std::move(message));
  if (!sent.ok()) log_debug("not asked: ", sent.error().message);
  return sent.ok();
}

// Device and lines work beside each other, so the slowest of them says how long a microbatch takes this peer.
void EntryDesk::add_lines(Gradient& message, const Session& to, EntrySerial serial) const {
  const auto kept = tensors_.find(serial);
  const std::uint64_t computed = std::uint64_t{message.forward_us} + message.backward_us;
  if (kept == nullptr || computed == 0) return;
  double line = neighbours_.line_seconds(to, kept->gradient_out.size());
  if (const auto below = courier_.hops().won_by(message.microbatch))
    line = std::max(line, neighbours_.line_seconds(*below, kept->output.key.size()));
  const double factor = std::max(1.0, 1e6 * line / static_cast<double>(computed));
  const auto longer = [factor](std::uint32_t us) {
    return static_cast<std::uint32_t>(std::min(factor * us, static_cast<double>(UINT32_MAX)));
  };
  message.forward_us = longer(message.forward_us);
  message.backward_us = longer(message.backward_us);
}

bool EntryDesk::send_gradient(const Session& to, Gradient message, EntrySerial serial) {
  if (!message.path.empty()) meters_.computed(message.forward_us, message.backward_us);
  add_lines(message, to, serial);
  std::vector<Bytes> frames;
  if (const auto kept = tensors_.find(serial); kept != nullptr && !kept->gradient_out.empty())
    frames.push_back(kept->gradient_out);
  return neighbours_.send_to(to, std::move(message), std::move(frames)).ok();
}

void EntryDesk::refuse_frames(const Session& from, TransferId transfer) {
  if (const auto peer = neighbours_.peer_of(from)) session_.links.refuse(*peer, transfer);
}

void EntryDesk::discard(EntrySerial serial) {
  const Entry* entry = ledger_.entries().find(serial);
  const auto kept = tensors_.find(serial);
  if (entry != nullptr && is_final(entry->state) && kept != nullptr && !kept->after.empty())
    bases_.keep(entry->transfer_from, entry->sample, std::move(kept->after));
  tensors_.discard(serial);
}

}  // namespace shoal
