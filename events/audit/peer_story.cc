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

void PeerStory::take(const ReadEvent& e, Where where) {
  if (e.event >= EventKind::kForwardSent) {  // of a holder
    if (lives(e, where) && e.lease->session != session_ && *e.lease != Lease{})
      findings_.violation(where, "names a lease of session ", e.lease->session);
    return;
  }
  switch (e.event) {
    case EventKind::kFenced:
    case EventKind::kEnd:
      return take_end(e, where);
    case EventKind::kRoundDrop:  // also of a session that stops
      return take_round_drop(e, where);
    case EventKind::kStart:
    case EventKind::kReopened:
    case EventKind::kBytes:
      return;
    default:
      break;
  }
  if (!lives(e, where)) return;
  take_stage(e, where);
  switch (e.event) {
    case EventKind::kServing:
      return take_serving(e, where);
    case EventKind::kStepped:
      return take_stepped(e, where);
    case EventKind::kRoundEnter:
      return take_enter(e, where);
    case EventKind::kRoundReport:
      return take_report(e, where);
    case EventKind::kAnchor:
      return take_anchor(e, where);
    case EventKind::kBehind:
      return take_behind(e, where);
    case EventKind::kShifted:
      return take_shifted(e, where);
    case EventKind::kCodec:  // what crosses a link how is nobody's count
      return;
    default:
      return take_of_entry(e, where);
  }
}

bool PeerStory::lives(const ReadEvent& e, Where where) {
  if (over_) findings_.violation(where, e.name, " in session ", session_, ", which had ended");
  return !over_;
}

void PeerStory::take_stage(const ReadEvent& e, Where where) {
  const auto stage = e.stage->value;
  if (!stage_) stage_ = stage;
  if (*stage_ != stage)
    findings_.violation(where, e.name, " at stage ", stage, ", session ", session_, " serves stage ", *stage_);
}

void PeerStory::take_of_entry(const ReadEvent& e, Where where) {
  if (e.entry_name->session != session_)
    return findings_.violation(where, e.name, " of entry ", *e.entry_name, ", which is not of session ", session_);
  if (e.event == EventKind::kEntry) return take_entry(e, where);
  if (e.event == EventKind::kCommitGone) return take_gone(e, where);
  if (is_evaluation_id(e.microbatch->trainer)) {
    const bool counts = e.event == EventKind::kCounted || e.event == EventKind::kLate || e.event == EventKind::kUndo ||
                        e.event == EventKind::kUndone || e.event == EventKind::kSettled ||
                        e.event == EventKind::kMerged;
    if (counts) findings_.violation(where, "entry ", *e.entry_name, " of validation is ", e.name);
    if (e.entry_name->serial >= next_serial_)
      findings_.absent(gap_, where, e.name, " of entry ", *e.entry_name, ", which was never made");
    return;
  }
  const auto found = open_.find(e.entry_name->serial);
  if (found != open_.end()) return take_known(e, found->second, where);
  findings_.absent(gap_, where, e.name, " of entry ", *e.entry_name,
                   e.entry_name->serial < next_serial_ ? ", which had ended" : ", which was never made");
}

void PeerStory::take_entry(const ReadEvent& e, Where where) {
  if (!serving_) findings_.absent(gap_, where, "entry ", *e.entry_name, " was made before the session served");
  if (e.entry_name->serial < next_serial_)
    return findings_.violation(where, "entry ", *e.entry_name, " was made twice");
  if (e.entry_name->serial > next_serial_)
    findings_.absent(gap_, where, "entry ", *e.entry_name, " was made, entry ", next_serial_,
                     " in front of it was not");
  next_serial_ = e.entry_name->serial + 1;
  if (is_evaluation_id(e.microbatch->trainer)) return;
  ++sums_.entries;
  judge_sender(e, where);
  if (const auto [other, is_new] = open_of_.try_emplace(*e.microbatch, e.entry_name->serial); !is_new) {
    findings_.absent(gap_, where, "entry ", *e.entry_name, " of microbatch ", *e.microbatch, " was made, entry ",
                     other->second, " of it had not ended");
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
      findings_.violation(where, "entry ", *e.entry_name, " is of microbatch ", *e.microbatch, " at its peer and of ",
                          open.fact->microbatch, " in the trainer's log");
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
    judge_never_issued(e, where);
  if (microbatch != books_.microbatches.end() && microbatch->second.commit_life != 0) return;
  sums_.unfinished.insert({*e.microbatch, e.stage->value});
  ++sums_.unfinished_entries;
}

// Stage 0 takes entries from the trainer, a later one from members of the stage before.
void PeerStory::judge_sender(const ReadEvent& e, Where where) {
  const bool first = e.stage->value == 0;
  const auto found = books_.sessions.find(*e.about);
  const SessionFact sender = found == books_.sessions.end() ? SessionFact{} : found->second;
  if (first ? !sender.seen || sender.stage : !sender.joined)
    return findings_.absent(books_.trainer_gap, where, "entry ", *e.entry_name, " was sent by session ", *e.about,
                            first ? ", which is no trainer's" : ", which never joined");
  if (!first && *sender.stage + 1 != e.stage->value)
    findings_.violation(where, "entry ", *e.entry_name, " was sent by session ", *e.about, " of stage ", *sender.stage);
}

// To stage 0 the trainer alone sends. A later stage takes what a member of the one before sends, and cannot know how
// far the trainer is: a member may send on what is issued later, or never. It has no lines of that, and what they would
// say is not known; of the receiver nothing is amiss.
void PeerStory::judge_never_issued(const ReadEvent& e, Where where) {
  if (e.stage->value == 0)
    return findings_.absent(books_.trainer_gap, where, "entry ", *e.entry_name, " of microbatch ", *e.microbatch,
                            ", which was never issued");
  findings_.incomplete(where, "session ", *e.about, " sent microbatch ", *e.microbatch, " on (entry ", *e.entry_name,
                       "), which was never issued");
}

void PeerStory::take_known(const ReadEvent& e, Open& open, Where where) {
  if (open.microbatch != *e.microbatch)
    return findings_.violation(where, e.name, " of entry ", *e.entry_name, " as of microbatch ", *e.microbatch,
                               ", it is of ", open.microbatch);
  switch (e.event) {
    case EventKind::kForward:
      device_did(e, where);
      if (open.forwarded || open.counted || open.late || open.settled)
        findings_.violation(where, "entry ", *e.entry_name, " went forward a second time");
      open.forwarded = true;
      return;
    case EventKind::kCounted:
      return take_counted(e, open, where);
    case EventKind::kLate:
      return take_late(e, open, where);
    case EventKind::kUndo:
      return take_undo(e, open, where);
    case EventKind::kUndone:
      return take_undone(e, open, where);
    case EventKind::kDrop:
      return take_drop(e, open, where);
    case EventKind::kSettled:
      return take_settled(e, open, where);
    case EventKind::kMerged:
      return take_merged(e, open, where);
    default:
      return;  // further leases, key frames, what was refused
  }
}

void PeerStory::take_counted(const ReadEvent& e, Open& open, Where where) {
  device_did(e, where);
  if (!open.forwarded) findings_.absent(gap_, where, "entry ", *e.entry_name, " was counted and never went forward");
  if (open.counted) findings_.violation(where, "entry ", *e.entry_name, " was counted a second time");
  if (open.late) findings_.violation(where, "entry ", *e.entry_name, " was counted after it had come too late");
  if (open.undo) findings_.violation(where, "entry ", *e.entry_name, " was counted after it was undone");
  open.counted = true;
  if (open.fact != nullptr) open.fact->counted = true;
}

// Its gradient is in no window: it is neither undone nor secured.
void PeerStory::take_late(const ReadEvent& e, Open& open, Where where) {
  device_did(e, where);
  if (!open.forwarded) findings_.absent(gap_, where, "entry ", *e.entry_name, " came too late and never went forward");
  if (open.counted || open.late)
    findings_.violation(where, "entry ", *e.entry_name, " came too late after it was counted");
  open.late = true;
  if (open.fact != nullptr) open.fact->late = true;
}

void PeerStory::take_undo(const ReadEvent& e, Open& open, Where where) {
  if (!open.counted) findings_.absent(gap_, where, "entry ", *e.entry_name, " was undone without being counted");
  if (open.undo) return findings_.violation(where, "entry ", *e.entry_name, " was undone twice");
  if (open.settled) findings_.violation(where, "entry ", *e.entry_name, " was undone after it was settled");
  if (open.fact != nullptr && open.fact->times > 0)
    findings_.violation(where, "entry ", *e.entry_name, " was secured although its peer had undone it");
  open.undo = true;
  if (undos_++ == 0) did_since_undo_ = 0;
}

void PeerStory::take_undone(const ReadEvent& e, Open& open, Where where) {
  if (!open.undo) findings_.absent(gap_, where, "entry ", *e.entry_name, " was taken out, it was not to be undone");
  if (open.settled) findings_.violation(where, "entry ", *e.entry_name, " was undone after it was settled");
  if (open.fact != nullptr && open.fact->times > 0)
    findings_.violation(where, "entry ", *e.entry_name, " was secured although its peer had undone it");
  undos_ -= open.undo && undos_ > 0 ? 1 : 0;
  ++sums_.undone;
  close(e.entry_name->serial);
}

void PeerStory::take_drop(const ReadEvent& e, Open& open, Where where) {
  if (open.counted) findings_.violation(where, "entry ", *e.entry_name, " was dropped after it was counted");
  if (open.fact != nullptr && open.fact->times > 0)
    findings_.violation(where, "entry ", *e.entry_name, " was secured although its peer had dropped it");
  close(e.entry_name->serial);
}

void PeerStory::take_settled(const ReadEvent& e, Open& open, Where where) {
  if (!open.counted && !open.late)
    findings_.absent(gap_, where, "entry ", *e.entry_name, " was settled without being counted");
  if (open.undo) findings_.violation(where, "entry ", *e.entry_name, " was settled after it was undone");
  if (open.settled) findings_.violation(where, "entry ", *e.entry_name, " was settled twice");
  if (open.fact == nullptr || !open.fact->committed)
    findings_.absent(books_.trainer_gap, where, "entry ", *e.entry_name, " was settled, the trainer did not commit it");
  open.settled = true;
  if (open.fact != nullptr) open.fact->settled = true;
  if (!open.late) return;
  ++sums_.late;
  close(e.entry_name->serial);
}

void PeerStory::take_merged(const ReadEvent& e, Open& open, Where where) {
  if (!open.settled) findings_.absent(gap_, where, "entry ", *e.entry_name, " was marked merged and not settled");
  const RoundFact* round =
      open.fact != nullptr && open.fact->round != 0 ? &books_.rounds[open.fact->round - 1] : nullptr;
  if (round == nullptr) {
    findings_.absent(books_.trainer_gap, where, "entry ", *e.entry_name,
                     " was marked merged, no committed round names it");
  } else {
    if (round->step == 0 && !open.stepped)
      findings_.absent(gap_, where, "entry ", *e.entry_name, " was marked merged and in no inner step");
    if (version_ && round->version <= *version_)
      findings_.absent(gap_, where, "entry ", *e.entry_name, " was marked merged behind the anchor of its round");
  }
  if (open.stepped) stepped_ -= count_tag(open.microbatch);
  ++merged_;
  close(e.entry_name->serial);
}

// COMMIT came for an entry that could not be settled: it had ended, or it ends now.
void PeerStory::take_gone(const ReadEvent& e, Where where) {
  const auto open = open_.find(e.entry_name->serial);
  if (e.entry_name->serial >= next_serial_)
    findings_.absent(gap_, where, "entry ", *e.entry_name, " was answered gone, it was never made");
  if (open != open_.end() && open->second.settled)
    findings_.violation(where, "entry ", *e.entry_name, " was answered gone after it was settled");
  EntryFact* fact = books_.winner(*e.entry_name);
  if (fact == nullptr)
    return findings_.absent(books_.trainer_gap, where, "entry ", *e.entry_name,
                            " was answered gone, the trainer did not commit it");
  if (fact->microbatch != *e.microbatch || fact->stage != e.stage->value)
    findings_.violation(where, "entry ", *e.entry_name, " was answered gone for another microbatch or stage");
  if (fact->times > 0)
    findings_.violation(where, "entry ", *e.entry_name, " was answered gone, yet a round secured it");
  sums_.gone += fact->gone ? 0 : 1;
  fact->gone = true;
}

// A job of the device is done; one that takes something out again goes before all others.
void PeerStory::device_did(const ReadEvent&, Where where) {
  if (undos_ == 0 || ++did_since_undo_ <= kDoneBeforeUndoMax) return;
  findings_.absent(gap_, where, "what was to be undone in session ", session_, " was not taken out");
  undos_ = 0;
}

void PeerStory::close(std::uint64_t serial) {
  const auto found = open_.find(serial);
  if (const auto of = open_of_.find(found->second.microbatch); of != open_of_.end() && of->second == serial)
    open_of_.erase(of);
  open_.erase(found);
}

}  // namespace shoal
