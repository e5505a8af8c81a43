#include "events/event_record.h"

namespace shoal {

EventRecord event_of(const RoundCommit& commit, const std::optional<LastToAgree>& last) {
  EventRecord event = {.event = EventKind::kRoundCommit,
                       .stage = commit.stage,
                       .round = commit.round,
                       .version = commit.version,
                       .digest = commit.digest,
                       .tag = commit.tag,
                       .step = commit.step,
                       .secured = commit.secured};
  if (last) event.rounds = {.waited_for = last->session, .waited_ms = static_cast<std::uint64_t>(last->behind / 1ms)};
  return event;
}

EventRecord restored_event(StageId stage, RoundId round, Version version, Version back_to, const Digest& digest,
                           CountTag tag, std::vector<Secured> taken_back, std::string_view cause) {
  return {.event = EventKind::kRestored,
          .stage = stage,
          .round = round,
          .version = version,
          .back_to = back_to,
          .digest = digest,
          .tag = tag,
          .secured = std::move(taken_back),
          .cause = std::string(cause)};
}

EventRecord session_over_event(const Session& session, StageId stage, std::string_view cause) {
  return {.event = EventKind::kSessionOver, .stage = stage, .about = session, .cause = std::string(cause)};
}

EventRecord commit_event(const MicrobatchId& microbatch, std::vector<EntryName> path, double loss,
                         std::uint64_t targets) {
  return {.event = EventKind::kCommit,
          .microbatch = microbatch,
          .entries = std::move(path),
          .loss = loss,
          .targets = targets};
}

EventRecord anchor_event(StageId stage, Version version, CountTag tag, const Digest& digest) {
  return {.event = EventKind::kAnchor, .stage = stage, .version = version, .digest = digest, .tag = tag};
}

void set_delays(EventRecord& step, const DelayHistogram& delays, std::uint64_t settle_wait_ms) {
  step.delay_mean = delays.mean();
  step.delays.emplace(delays.counts().begin(), delays.counts().end());
  step.settle_wait_ms = settle_wait_ms;
}

EventRecord entry_event(EventKind event, const MicrobatchId& microbatch, const EntryName& entry_name,
                        std::string_view cause) {
  return {.event = event, .microbatch = microbatch, .entry_name = entry_name, .cause = std::string(cause)};
}

EventRecord bytes_event(EventRecord bytes, const std::optional<LongestCallback>& longest) {
  bytes.event = EventKind::kBytes;
  if (!longest) return bytes;
  const auto milliseconds = [](Duration time) {
    return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
  };
  bytes.callbacks.longest_ms = milliseconds(longest->took);
  bytes.callbacks.longest = longest->name;
  bytes.callbacks.computed_ms = milliseconds(longest->computed);
  return bytes;
}

EventRecord claim_event(EventKind event, const MicrobatchId& microbatch, const Session& about, const Lease& lease,
                        std::string_view cause) {
  return {.event = event, .microbatch = microbatch, .about = about, .lease = lease, .cause = std::string(cause)};
}

}  // namespace shoal
