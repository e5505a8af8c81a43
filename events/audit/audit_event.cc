// A line to values, by nlohmann's parser without a document: nothing is kept that the audit does not read.
#include "events/audit/audit_event.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "events/delay.h"
#include "events/event_log.h"

namespace shoal {
namespace {

using F = AuditField;
using K = EventKind;

constexpr std::string_view kFieldNames[] = {
    "time",   "event",    "role",       "run",    "peer",           "session", "microbatch", "stage",
    "about",  "entry",    "lease",      "window", "round",          "version", "digest",     "tag",
    "step",   "entries",  "secured",    "cause",  "loss",           "targets", "state",      "sample",
    "epoch",  "sent",     "received",   "fp32",   "payload",        "missing", "members",    "about_peer",
    "silent", "versions", "delay_mean", "delays", "settle_wait_ms", "back_to"};
static_assert(std::size(kFieldNames) == static_cast<std::size_t>(F::kNone));

constexpr std::uint64_t bit(F field) { return std::uint64_t{1} << static_cast<unsigned>(field); }
template <class... Fields>
constexpr std::uint64_t bits(Fields... fields) {
  return (std::uint64_t{0} | ... | bit(fields));
}

enum Writer : std::uint8_t { kPeer = 1, kTrainer = 2, kSolo = 4, kAny = 7 };

struct Form {
  std::string_view name;
  K kind;
  std::uint8_t writers;
  std::uint64_t required;
};

constexpr std::uint64_t kOfEntry = bits(F::kMicrobatch, F::kStage, F::kEntry);
constexpr std::uint64_t kOfHop = bits(F::kMicrobatch, F::kAbout, F::kLease);
constexpr std::uint64_t kOfSession = bits(F::kAbout, F::kStage);

// Rows of docs/EVENTS.md. `cause` is left out of a line where it says nothing, so it is required only where it always
// does.
constexpr Form kForms[] = {
    {"reopened", K::kReopened, kAny, bits(F::kCause)},
    {"start", K::kStart, kAny, 0},
    {"end", K::kEnd, kAny, 0},
    {"bytes", K::kBytes, kTrainer, bits(F::kSent, F::kReceived)},
    {"bytes", K::kBytes, kPeer, bits(F::kSent, F::kReceived, F::kFp32, F::kPayload)},
    {"train", K::kTrain, kTrainer | kSolo, bits(F::kStep, F::kLoss, F::kTargets)},
    {"estimate", K::kEstimate, kTrainer | kSolo, bits(F::kStep, F::kLoss, F::kTargets)},
    {"validation", K::kValidation, kTrainer, bits(F::kLoss, F::kTargets, F::kVersions)},
    {"validation", K::kValidation, kSolo, bits(F::kLoss, F::kTargets)},
    {"issue", K::kIssue, kTrainer, bits(F::kMicrobatch, F::kStep, F::kSample, F::kEpoch)},
    {"commit", K::kCommit, kTrainer, bits(F::kMicrobatch, F::kEntries, F::kLoss, F::kTargets)},
    {"merged", K::kMerged, kTrainer | kPeer, kOfEntry},
    {"lost", K::kLost, kTrainer, kOfEntry | bits(F::kCause)},
    {"contradiction", K::kContradiction, kTrainer, kOfEntry | bits(F::kCause)},
    {"round_commit", K::kRoundCommit, kTrainer,
     bits(F::kStage, F::kRound, F::kVersion, F::kStep, F::kSecured, F::kTag, F::kDigest)},
    {"round_abandon", K::kRoundAbandon, kTrainer, bits(F::kStage, F::kRound, F::kCause)},
    {"restored", K::kRestored, kTrainer,
     bits(F::kStage, F::kRound, F::kVersion, F::kBackTo, F::kSecured, F::kTag, F::kDigest, F::kCause)},
    {"round_open", K::kRoundOpen, kTrainer, bits(F::kStage, F::kRound, F::kVersion, F::kStep, F::kMembers)},
    {"round_failed", K::kRoundFailed, kTrainer, kOfSession | bits(F::kRound)},
    {"session_over", K::kSessionOver, kTrainer, kOfSession | bits(F::kCause)},
    {"unreachable", K::kUnreachable, kTrainer, bits(F::kAbout, F::kCause)},
    {"member", K::kMember, kTrainer, kOfSession | bits(F::kState)},
    {"serving", K::kServing, kPeer, bits(F::kStage, F::kVersion)},
    {"entry", K::kEntry, kPeer, kOfEntry},
    {"joined", K::kJoined, kPeer, kOfEntry},
    {"taken", K::kTaken, kPeer, kOfEntry},
    {"need_key_frame", K::kNeedKeyFrame, kPeer, kOfEntry},
    {"refused", K::kRefused, kPeer, kOfEntry | bits(F::kCause)},
    {"forward", K::kForward, kPeer, kOfEntry},
    {"drop", K::kDrop, kPeer, kOfEntry | bits(F::kCause)},
    {"counted", K::kCounted, kPeer, kOfEntry},
    {"late", K::kLate, kPeer, kOfEntry},
    {"undo", K::kUndo, kPeer, kOfEntry | bits(F::kCause)},
    {"undone", K::kUndone, kPeer, kOfEntry},
    {"settled", K::kSettled, kPeer, kOfEntry},
    {"commit_gone", K::kCommitGone, kPeer, kOfEntry},
    {"stepped", K::kStepped, kPeer,
     bits(F::kStage, F::kWindow, F::kEntries, F::kTargets, F::kTag, F::kDelayMean, F::kDelays, F::kSettleWaitMs)},
    {"round_enter", K::kRoundEnter, kPeer, bits(F::kStage, F::kRound, F::kVersion, F::kStep)},
    {"round_report", K::kRoundReport, kPeer, bits(F::kStage, F::kRound, F::kSecured, F::kTag)},
    {"round_drop", K::kRoundDrop, kPeer, bits(F::kStage, F::kRound)},
    {"anchor", K::kAnchor, kPeer, bits(F::kStage, F::kVersion, F::kTag, F::kDigest)},
    {"behind", K::kBehind, kPeer, bits(F::kStage, F::kVersion, F::kCause)},
    {"shifted", K::kShifted, kPeer, bits(F::kStage, F::kVersion, F::kCause)},
    {"fenced", K::kFenced, kPeer, bits(F::kCause)},
    {"forward_sent", K::kForwardSent, kPeer | kTrainer, kOfHop},
    {"key_frame", K::kKeyFrame, kPeer | kTrainer, kOfHop},
    {"hop_timer", K::kHopTimer, kPeer | kTrainer, kOfHop},
    {"take", K::kTake, kPeer | kTrainer, kOfHop},
    {"gradient_rejected", K::kGradientRejected, kPeer | kTrainer, kOfHop},
};
constexpr std::uint64_t kOfAnyLine = bits(F::kTime, F::kEvent, F::kRole, F::kRun, F::kPeer, F::kSession);

struct Number {
  F field;
  std::uint64_t AuditEvent::*member;
  std::uint64_t least = 0, most = std::numeric_limits<std::uint64_t>::max();
};
constexpr Number kNumbers[] = {
    {F::kStage, &AuditEvent::stage, 0, 0xffff},
    {F::kWindow, &AuditEvent::window, 0, 1},
    {F::kRound, &AuditEvent::round},
    {F::kVersion, &AuditEvent::version},
    {F::kBackTo, &AuditEvent::back_to},
    {F::kStep, &AuditEvent::step},
    {F::kTargets, &AuditEvent::targets},
    {F::kSample, &AuditEvent::sample},
    {F::kEpoch, &AuditEvent::epoch},
    {F::kMembers, &AuditEvent::members},
    {F::kSettleWaitMs, &AuditEvent::settle_wait_ms},
    {F::kMissing, &AuditEvent::missing, 1},
};

const Form* form_of(const AuditEvent& event) {
  const std::uint8_t writer = event.is_peer() ? kPeer : event.is_trainer() ? kTrainer : kSolo;
  for (const Form& form : kForms)
    if ((form.writers & writer) != 0 && form.name == event.event) return &form;
  return nullptr;
}

F field_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kFieldNames); ++i)
    if (kFieldNames[i] == name) return static_cast<F>(i);
  return F::kNone;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool read_number(std::string_view text, std::uint64_t& out, int base) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return failure == std::errc() && end == text.data() + text.size();
}

template <class T>
bool keep(Result<T> parsed, T& out) {
  if (parsed.ok()) out = *parsed;
  return parsed.ok();
}

bool read_lease(std::string_view text, Lease& out) {
  const std::size_t at = text.rfind('~');
  return at != std::string_view::npos && keep(parse_session(text.substr(0, at)), out.session) &&
         read_number(text.substr(at + 1), out.serial, 10);
}

// What nlohmann's parser calls; false ends the parse.
class Reader {
 public:
  explicit Reader(AuditEvent& event) : e_(event) {}

  bool key(std::string& name) {
    if (depth_ == 1) {
      field_ = field_of(name);
    } else if (depth_ == 2 && field_ == F::kSecured && !in_list_) {
      e_.secured.emplace_back();
      return keep(parse_session(name), e_.secured.back().session);
    }
    return true;
  }
  bool start_object(std::size_t) {
    ++depth_;
    if (depth_ == 2 && field_ == F::kSecured) return mark();
    return depth_ == 1 || (depth_ == 2 ? field_ == F::kNone : field_ == F::kNone);
  }
  bool end_object() { return --depth_, true; }
  bool start_array(std::size_t) {
    ++depth_;
    if (depth_ == 1) return false;
    if (depth_ == 2 && (field_ == F::kEntries || field_ == F::kVersions || field_ == F::kDelays)) return mark();
    in_list_ = depth_ == 3 && field_ == F::kSecured && !e_.secured.empty();
    return in_list_ || field_ == F::kNone;
  }
  bool end_array() { return --depth_, in_list_ = false, true; }
  bool string(std::string& text) {
    if (depth_ == 2 && field_ == F::kEntries) {
      e_.entries.emplace_back();
      return keep(parse_entry_name(text), e_.entries.back());
    }
    return field_ == F::kNone || (depth_ == 1 && mark() && take(text));
  }
  bool number_unsigned(std::uint64_t value) {
    if (in_list_) return e_.secured.back().serials.push_back(value), true;
    if (depth_ == 2 && field_ == F::kVersions) return e_.versions.push_back(value), true;
    if (depth_ == 2 && field_ == F::kDelays) {
      e_.delays.push_back(value);
      return e_.delays.size() <= DelayHistogram::kBins;
    }
    if (is_real(field_)) return number_float(static_cast<double>(value), {});
    return field_ == F::kNone || (depth_ == 1 && mark() && take(value));
  }
  bool number_integer(std::int64_t value) {
    return number_float(static_cast<double>(value), {});  // of a negative number
  }
  bool number_float(double value, const std::string&) {
    if (field_ == F::kNone) return true;
    if (field_ == F::kTime) e_.time = value;
    if (field_ == F::kLoss) e_.loss = value;
    if (field_ == F::kDelayMean) e_.delay_mean = value;
    return depth_ == 1 && mark() && is_real(field_);
  }
  bool null() {  // a loss that is not finite
    e_.loss = std::nan("");
    return field_ == F::kNone || (depth_ == 1 && field_ == F::kLoss && mark());
  }
  bool boolean(bool) { return field_ == F::kNone; }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

 private:
  static bool is_real(F field) { return field == F::kTime || field == F::kLoss || field == F::kDelayMean; }
  bool mark() {  // a field that is said twice may mean two things
    const bool is_new = (e_.has & bit(field_)) == 0;
    e_.has |= bit(field_);
    return is_new;
  }
  bool take(std::uint64_t value) {
    for (const Number& number : kNumbers) {
      if (number.field != field_) continue;
      e_.*number.member = value;
      return value >= number.least && value <= number.most;
    }
    return field_ == F::kSent || field_ == F::kReceived || field_ == F::kFp32 || field_ == F::kPayload;
  }
  bool take(std::string& text) {
    switch (field_) {
      case F::kEvent:
        return e_.event.swap(text), !e_.event.empty();
      case F::kRole:
        return e_.role.swap(text), e_.is_peer() || e_.is_trainer() || e_.role == "solo";
      case F::kRun:
        return e_.run.swap(text), is_hex(e_.run, 64);
      case F::kPeer:
        return e_.peer.swap(text), is_hex(e_.peer, 64);
      case F::kCause:
        return e_.cause.swap(text), true;
      case F::kState:
        return e_.state.swap(text), true;
      case F::kSession:
        return keep(parse_session(text), e_.session);
      case F::kAbout:
        return keep(parse_session(text), e_.about);
      case F::kMicrobatch:
        return keep(parse_microbatch(text), e_.microbatch);
      case F::kEntry:
        return keep(parse_entry_name(text), e_.entry);
      case F::kLease:
        return read_lease(text, e_.lease);
      case F::kDigest:
        return e_.digest.swap(text), is_hex(e_.digest, 64);
      case F::kSilent:
        return keep(parse_session(text), e_.silent);
      case F::kAboutPeer:
        return e_.about_peer.swap(text), is_hex(e_.about_peer, 64);
      case F::kTag:
        return is_hex(text, 16) && read_number(text, e_.tag, 16);
      default:
        return false;
    }
  }

  AuditEvent& e_;
  F field_ = F::kNone;
  int depth_ = 0;
  bool in_list_ = false;
};

}  // namespace

std::string_view name_of(AuditField field) { return kFieldNames[static_cast<std::size_t>(field)]; }

bool read_audit_event(std::string_view line, AuditEvent& event) {
  event.has = 0;
  event.missing = 0;
  event.entries.clear();
  event.secured.clear();
  event.versions.clear();
  event.delays.clear();
  event.about_peer.clear();
  event.cause.clear();
  event.state.clear();
  event.event.clear();
  event.role.clear();
  Reader reader(event);
  if (line.empty() || line.front() != '{') return false;
  if (!nlohmann::json::sax_parse(line.begin(), line.end(), &reader)) return false;
  if ((event.has & bits(F::kEvent, F::kRole, F::kSession)) != bits(F::kEvent, F::kRole, F::kSession)) return false;
  const Form* form = form_of(event);
  event.kind = form == nullptr ? std::nullopt : std::optional(form->kind);
  return true;
}

std::string_view lacking_field(const AuditEvent& event) {
  const Form* form = form_of(event);
  const std::uint64_t lacking = (kOfAnyLine | (form == nullptr ? 0 : form->required)) & ~event.has;
  for (unsigned i = 0; i < static_cast<unsigned>(F::kNone); ++i)
    if ((lacking >> i & 1) != 0) return kFieldNames[i];
  return {};
}

}  // namespace shoal
