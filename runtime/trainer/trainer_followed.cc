// What becomes of what is decided: acknowledgements, rounds, sessions that are over.
#include "common/log.h"
#include "runtime/trainer/trainer.h"

namespace shoal {

namespace {

EventRecord event_of(EventKind event, const CommitBook::Listing& listing) {
  return {.event = event,
          .microbatch = listing.microbatch,
          .stage = listing.stage,
          .entry_name = listing.entry_name,
          .cause = listing.cause};
}

}  // namespace

void Trainer::on_ack(const Remote& from, const CommitAck& message) {
  if (is(TrainerPhase::kStopped) || !neighbours_.admits(from)) return;
  for (CommitAckItem item : message.items) {
    if (item.state == CommitState::kDropped && options_.config.optimizer.delay_max == 0) {
      // Nothing is late in this run: what it drops it has to bring to a round like any other commit that it has.
      item.state = CommitState::kCommitted;
      if (const auto times = said_.due(short_name(from.session), env_.loop.now()))
        log_warning("session ", short_name(from.session),
                    " says that it dropped a late gradient, and the run has no delay_max",
                    LogThrottle::text_of(*times));
    }
    acks_gone_ += item.state == CommitState::kGone;
    if (const auto listing = env_.book.on_ack(item, from.session)) say_lost(*listing);
    if (const auto stage = env_.book.acknowledged(item); stage && item.entry_name.session == from.session)
      held_back_.acknowledged(*stage, item.entry_name, options_.config.targets_per_microbatch(), env_.loop.now());
  }
  issue();
}

void Trainer::on_round_commit(const RoundCommit& commit) {
  const auto contradictions = env_.book.on_round_commit(
      commit, [this](const MicrobatchId& microbatch, StageId stage, const EntryName& entry_name) {
        write({.event = EventKind::kMerged, .microbatch = microbatch, .stage = stage, .entry_name = entry_name});
      });
  for (const CommitBook::Listing& listing : contradictions) {
    write(event_of(EventKind::kContradiction, listing));
    log_error("microbatch ", listing.microbatch, " of stage ", listing.stage, " was lost (", listing.cause,
              ") and a committed round contains it");
  }
  steps_.done(commit.step, commit.stage);
  end_sessions(held_back_.on_round_commit(commit, env_.loop.now()));
  issue();
}

void Trainer::end_sessions(const HeldBack::Culprits& culprits) {
  for (const auto& [session, what] : culprits) owner_.on_misconduct(session, what);
}

void Trainer::look_for_full() {
  const bool full = is(TrainerPhase::kFeeding) && !env_.book.next() && env_.book.open() + deciding_.size() == 0;
  end_sessions(held_back_.on_full(full ? env_.book.holding_up() : std::vector<Session>(), env_.loop.now()));
}

void Trainer::on_session_over(const Session& session, const std::string& why) {
  held_back_.on_session_over(session);
  blames_.forget(session);
  for (const CommitBook::Listing& listing : env_.book.on_session_over(session, why)) say_lost(listing);
  issue();
}

void Trainer::say_lost(const CommitBook::Listing& listing) {
  held_back_.forget(listing.entry_name);
  write(event_of(EventKind::kLost, listing));
  owner_.on_lost(listing);
}

}  // namespace shoal
