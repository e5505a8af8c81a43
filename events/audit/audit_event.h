#pragma once
// One line of an event file as the audit reads it, and which fields a line of each event must have (docs/EVENTS.md).
// Pure; thread-safe.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "events/event_kind.h"
#include "transport/messages.h"

namespace shoal {

enum class AuditField : std::uint8_t {
  kTime,
  kEvent,
  kRole,
  kRun,
  kPeer,
  kSession,
  kMicrobatch,
  kStage,
  kAbout,
  kEntry,
  kLease,
  kWindow,
  kRound,
  kVersion,
  kDigest,
  kTag,
  kStep,
  kEntries,
  kSecured,
  kCause,
  kLoss,
  kTargets,
  kState,
  kSample,
  kEpoch,
  kSent,
  kReceived,
  kFp32,
  kPayload,
  kMissing,
  kMembers,
  kAboutPeer,
  kSilent,
  kVersions,
  kDelayMean,
  kDelays,
  kSettleWaitMs,
  kBackTo,
  kNone,
};

struct AuditEvent {
  std::uint64_t has = 0;          // bits by AuditField
  std::optional<EventKind> kind;  // none: no event of its writer
  std::string event, role, run, peer, cause, state;
  double time = 0, loss = 0, delay_mean = 0;
  Session session, about, silent;
  MicrobatchId microbatch;
  EntryName entry;
  Lease lease;
  std::uint64_t stage = 0, window = 0, round = 0, version = 0, step = 0, targets = 0, sample = 0, epoch = 0,
                missing = 0, members = 0, settle_wait_ms = 0, back_to = 0;
  CountTag tag = 0;
  std::string digest, about_peer;
  std::vector<EntryName> entries;
  std::vector<Secured> secured;
  std::vector<std::uint64_t> versions;
  std::vector<std::uint64_t> delays;  // targets by delay: at most DelayHistogram::kBins

  bool holds(AuditField field) const { return (has >> static_cast<unsigned>(field) & 1) != 0; }
  bool is_trainer() const { return role == "trainer"; }
  bool is_peer() const { return role == "peer"; }
};

// False: no object of JSON, or a field that is not of its form. Fields and values that the page does not name are
// passed over. `event` is overwritten; it may be used again for the next line.
bool read_audit_event(std::string_view line, AuditEvent& event);

// The field that a line of its event must have and this one has not; empty: it has them all.
std::string_view lacking_field(const AuditEvent& event);

std::string_view name_of(AuditField field);

}  // namespace shoal
