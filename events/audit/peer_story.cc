// A peer's sessions and entries.
#include "events/audit/peer_story.h"

#include <algorithm>

#include "common/trainer_id.h"

namespace shoal {
namespace {

// The device takes an undo before any other work; what it was at comes first.
constexpr std::uint64_t kDoneBeforeUndoMax = 2;

}  // namespace

void PeerStory::begin_session(const Session& session, bool gap) {
  end_session();
  begun_ = true;
  session_ = session;
  gap_ = gap;
  over_ = ended_ = serving_ = round_open_ = behind_ = false;
  stage_.reset();
  next_serial_ = 1;
  undos_ = did_since_undo_ = 0;
  stepped_ = 0;
  version_.reset();
  shifted_.reset();
  last_round_ = merged_ = 0;
  reported_.clear();
  SessionFact& fact = books_.sessions[session];
  level_ = fact.level;
  fact.seen = true;
  fact.gap = fact.gap || gap;
  if (fact.stage) stage_ = fact.stage;
}

void PeerStory::note_gap() {
  gap_ = true;
  version_.reset();
  if (begun_) books_.sessions[session_].gap = true;
}

void PeerStory::end_session() {
  if (begun_) books_.sessions[session_].cut = !over_;
  begun_ = false;
  open_.clear();
  open_of_.clear();
}

void PeerStory::take(const ReadEvent& e) {
  if (e.event >= EventKind::kForwardSent) {  // of a holder
    if (lives(e) && e.lease->session != session_ && *e.lease != Lease{})
      findings_.violation("names a lease of session ", e.lease->session);
    return;
  }
  switch (e.event) {
    case EventKind::kFenced:
    case EventKind::kEnd:
      return take_end(e);
    case EventKind::kRoundDrop:  // also of a session that stops
      return take_round_drop(e);
    case EventKind::kStart:
    case EventKind::kReopened:
    case EventKind::kBytes:
      return;
    default:
      break;
  }
  if (!lives(e)) return;
  take_stage(e);
  switch (e.event) {
    case EventKind::kServing:
      return take_serving(e);
    case EventKind::kStepped:
      return take_stepped(e);
    case EventKind::kRoundEnter:
      return take_enter(e);
    case EventKind::kRoundReport:
      return take_report(e);
    case EventKind::kAnchor:
      return take_anchor(e);
    case EventKind::kBehind:
      return take_behind(e);
    case EventKind::kShifted:
      return take_shifted(e);
    case EventKind::kCodec:  // what crosses a link how is nobody's count
      return;
    default:
      return take_of_entry(e);
  }
}

bool PeerStory::lives(const ReadEvent& e) {
  if (over_) findings_.violation(e.name, " in session ", session_, ", which had ended");
  return !over_;
}

void PeerStory::take_stage(const ReadEvent& e) {
  const auto stage = e.stage->value;
  if (!stage_) stage_ = stage;
  if (*stage_ != stage)
    findings_.violation(e.name, " at stage ", stage, ", session ", session_, " serves stage ", *stage_);
}

void PeerStory::take_of_entry(const ReadEvent& e) {
  if (e.entry_name->session != session_)
    return findings_.violation(e.name, " of entry ", *e.entry_name, ", which is not of session ", session_);
  if (e.event == EventKind::kEntry) return take_entry(e);
  if (e.event == EventKind::kCommitGone) return take_gone(e);
  if (is_evaluation_id(e.microbatch->trainer)) {
    const bool counts = e.event == EventKind::kCounted || e.event == EventKind::kLate || e.event == EventKind::kUndo ||
                        e.event == EventKind::kUndone || e.event == EventKind::kSettled ||
                        e.event == EventKind::kMerged;
    if (counts) wrong(e, " of validation is ", e.name);
    if (e.entry_name->serial >= next_serial_)
      findings_.absent(gap_, e.name, " of entry ", *e.entry_name, ", which was never made");
    return;
  }
  const auto found = open_.find(e.entry_name->serial);
  if (found != open_.end()) return take_known(e, found->second);
  findings_.absent(gap_, e.name, " of entry ", *e.entry_name,
                   e.entry_name->serial < next_serial_ ? ", which had ended" : ", which was never made");
}

void PeerStory::take_entry(const ReadEvent& e) {
  if (!serving_) lacks(e, " was made before the session served");
  if (e.entry_name->serial < next_serial_) return wrong(e, " was made twice");
  if (e.entry_name->serial > next_serial_) lacks(e, " was made, entry ", next_serial_, " in front of it was not");
  next_serial_ = e.entry_name->serial + 1;
  if (is_evaluation_id(e.microbatch->trainer)) return;
  ++sums_.entries;
  judge_sender(e);
  if (const auto [other, is_new] = open_of_.try_emplace(*e.microbatch, e.entry_name->serial); !is_new) {
    lacks(e, " of microbatch ", *e.microbatch, " was made, entry ", other->second, " of it had not ended");
    other->second = e.entry_name->serial;
  }
  Open& open = open_[e.entry_name->serial];
  open.microbatch = *e.microbatch;
  const auto fact = books_.entries.find(*e.entry_name);
  if (fact != books_.entries.end()) open.fact = &fact->second;
  const bool committed = open.fact != nullptr && open.fact->committed;
  if (open.fact != nullptr) open.fact->told = true;
  if (committed) {
    ++sums_.winners;
    if (open.fact->microbatch != *e.microbatch || open.fact->stage != e.stage->value)
      wrong(e, " is of microbatch ", *e.microbatch, " at its peer and of ", open.fact->microbatch,
            " in the trainer's log");
    return;
  }
  if (open.fact != nullptr) {
    open.fact->microbatch = *e.microbatch;
    open.fact->stage = e.stage->value;
  }
  const auto microbatch = books_.microbatches.find(*e.microbatch);
  if (TrainerFact& trainer = books_.trainers[e.microbatch->trainer]; trainer.next == 0)
    ++trainer.entries;
  else if (microbatch == books_.microbatches.end() || microbatch->second.issue_life == 0)
    judge_never_issued(e);
  if (microbatch != books_.microbatches.end() && microbatch->second.commit_life != 0) return;
  sums_.unfinished.insert({*e.microbatch, e.stage->value});
  ++sums_.unfinished_entries;
}

// Stage 0 takes entries from the trainer, a later one from members of the stage before.
void PeerStory::judge_sender(const ReadEvent& e) {
  const bool first = e.stage->value == 0;
  const auto found = books_.sessions.find(*e.about);
  const SessionFact sender = found == books_.sessions.end() ? SessionFact{} : found->second;
  if (first ? !sender.seen || sender.stage : !sender.joined)
    return findings_.untold("entry ", *e.entry_name, " was sent by session ", *e.about,
                            first ? ", which is no trainer's" : ", which never joined");
  if (!first && *sender.stage + 1 != e.stage->value)
    wrong(e, " was sent by session ", *e.about, " of stage ", *sender.stage);
}

// To stage 0 the trainer alone sends. A later stage takes what a member of the one before sends, and cannot know how
// far the trainer is: a member may send on what is issued later, or never. It has no lines of that, and what they would
// say is not known; of the receiver nothing is amiss.
void PeerStory::judge_never_issued(const ReadEvent& e) {
  if (e.stage->value == 0)
    return findings_.untold("entry ", *e.entry_name, " of microbatch ", *e.microbatch, ", which was never issued");
  findings_.incomplete("session ", *e.about, " sent microbatch ", *e.microbatch, " on (entry ", *e.entry_name,
                       "), which was never issued");
}

void PeerStory::take_known(const ReadEvent& e, Open& open) {
  if (open.microbatch != *e.microbatch)
    return findings_.violation(e.name, " of entry ", *e.entry_name, " as of microbatch ", *e.microbatch, ", it is of ",
                               open.microbatch);
  switch (e.event) {
    case EventKind::kForward:
      device_did();
      if (open.forwarded || open.counted || open.late || open.settled) wrong(e, " went forward a second time");
      open.forwarded = true;
      return;
    case EventKind::kCounted:
      return take_counted(e, open);
    case EventKind::kLate:
      return take_late(e, open);
    case EventKind::kUndo:
      return take_undo(e, open);
    case EventKind::kUndone:
      return take_undone(e, open);
    case EventKind::kDrop:
      return take_drop(e, open);
    case EventKind::kSettled:
      return take_settled(e, open);
    case EventKind::kMerged:
      return take_merged(e, open);
    default:
      return;  // further leases, key frames, what was refused
  }
}

void PeerStory::take_counted(const ReadEvent& e, Open& open) {
  device_did();
  if (!open.forwarded) lacks(e, " was counted and never went forward");
  if (open.counted) wrong(e, " was counted a second time");
  if (open.late) wrong(e, " was counted after it had come too late");
  if (open.undo) wrong(e, " was counted after it was undone");
  open.counted = true;
  if (open.fact != nullptr) open.fact->counted = true;
}

// Its gradient is in no window: it is neither undone nor secured.
void PeerStory::take_late(const ReadEvent& e, Open& open) {
  device_did();
  if (!open.forwarded) lacks(e, " came too late and never went forward");
  if (open.counted || open.late) wrong(e, " came too late after it was counted");
  open.late = true;
  if (open.fact != nullptr) open.fact->late = true;
}

void PeerStory::take_undo(const ReadEvent& e, Open& open) {
  if (!open.counted) lacks(e, " was undone without being counted");
  if (open.undo) return wrong(e, " was undone twice");
  if (open.settled) wrong(e, " was undone after it was settled");
  if (open.fact != nullptr && open.fact->times > 0) wrong(e, " was secured although its peer had undone it");
  open.undo = true;
  if (undos_++ == 0) did_since_undo_ = 0;
}

void PeerStory::take_undone(const ReadEvent& e, Open& open) {
  if (!open.undo) lacks(e, " was taken out, it was not to be undone");
  if (open.settled) wrong(e, " was undone after it was settled");
  if (open.fact != nullptr && open.fact->times > 0) wrong(e, " was secured although its peer had undone it");
  undos_ -= open.undo && undos_ > 0 ? 1 : 0;
  ++sums_.undone;
  close(e.entry_name->serial);
}

void PeerStory::take_drop(const ReadEvent& e, Open& open) {
  if (open.counted) wrong(e, " was dropped after it was counted");
  if (open.fact != nullptr && open.fact->times > 0) wrong(e, " was secured although its peer had dropped it");
  close(e.entry_name->serial);
}

void PeerStory::take_settled(const ReadEvent& e, Open& open) {
  if (!open.counted && !open.late) lacks(e, " was settled without being counted");
  if (open.undo) wrong(e, " was settled after it was undone");
  if (open.settled) wrong(e, " was settled twice");
  if (open.fact == nullptr || !open.fact->committed)
    findings_.untold("entry ", *e.entry_name, " was settled, the trainer did not commit it");
  open.settled = true;
  if (open.fact != nullptr) open.fact->settled = true;
  if (!open.late) return;
  ++sums_.late;
  close(e.entry_name->serial);
}

void PeerStory::take_merged(const ReadEvent& e, Open& open) {
  if (!open.settled) lacks(e, " was marked merged and not settled");
  const RoundFact* round =
      open.fact != nullptr && open.fact->round != 0 ? &books_.rounds[open.fact->round - 1] : nullptr;
  if (round == nullptr) {
    findings_.untold("entry ", *e.entry_name, " was marked merged, no committed round names it");
  } else {
    if (round->step == 0 && !open.stepped) lacks(e, " was marked merged and in no inner step");
    if (version_ && round->version <= *version_) lacks(e, " was marked merged behind the anchor of its round");
  }
  if (open.stepped) stepped_ -= count_tag(open.microbatch);
  ++merged_;
  close(e.entry_name->serial);
}

// COMMIT came for an entry that could not be settled: it had ended, or it ends now.
void PeerStory::take_gone(const ReadEvent& e) {
  const auto open = open_.find(e.entry_name->serial);
  if (e.entry_name->serial >= next_serial_) lacks(e, " was answered gone, it was never made");
  if (open != open_.end() && open->second.settled) wrong(e, " was answered gone after it was settled");
  EntryFact* fact = books_.winner(*e.entry_name);
  if (fact == nullptr)
    return findings_.untold("entry ", *e.entry_name, " was answered gone, the trainer did not commit it");
  if (fact->microbatch != *e.microbatch || fact->stage != e.stage->value)
    wrong(e, " was answered gone for another microbatch or stage");
  if (fact->times > 0) wrong(e, " was answered gone, yet a round secured it");
  sums_.gone += fact->gone ? 0 : 1;
  fact->gone = true;
}

// A job of the device is done; one that takes something out again goes before all others.
void PeerStory::device_did() {
  if (undos_ == 0 || ++did_since_undo_ <= kDoneBeforeUndoMax) return;
  findings_.absent(gap_, "what was to be undone in session ", session_, " was not taken out");
  undos_ = 0;
}

void PeerStory::close(std::uint64_t serial) {
  const auto found = open_.find(serial);
  if (const auto of = open_of_.find(found->second.microbatch); of != open_of_.end() && of->second == serial)
    open_of_.erase(of);
  open_.erase(found);
}

}  // namespace shoal
