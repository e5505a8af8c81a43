#include "events/event_schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "common/hex.h"

namespace shoal {
namespace {

using K = EventKind;
using L = EventLevel;
using R = EventRecord;
using Part = FieldPart;

template <class Integer>
bool parse_number(std::string_view text, Integer& out, int base) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return failure == std::errc() && end == text.data() + text.size();
}

// "<left><mark><serial>"
bool cut_serial(std::string_view text, char mark, std::string_view& left, std::uint64_t& serial) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return false;
  left = text.substr(0, at);
  return parse_number(text.substr(at + 1), serial, 10);
}

// ---- forms: how a value is written, and taken from the parts that a parser finds ----

template <class T>
constexpr std::uint64_t number_of(T value) {
  if constexpr (requires { value.value; })
    return value.value;
  else
    return static_cast<std::uint64_t>(value);
}

struct Integer {
  template <class T>
  static void write(std::string& line, const T& value) {
    line += std::to_string(number_of(value));
  }
  template <class T>
  static bool read(const Part& part, T& value) {
    if constexpr (requires { value.value; })
      return read(part, value.value);
    else
      value = static_cast<T>(part.integer);
    return part.kind == Part::Kind::kInteger && number_of(value) == part.integer;
  }
};

struct Slot : Integer {
  static bool read(const Part& part, WindowSlot& slot) { return Integer::read(part, slot) && part.integer <= 1; }
};

struct Number {
  static void write(std::string& line, double value) {
    char digits[32];
    if (std::isfinite(value))
      line.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    else
      line += "null";
  }
  static bool read(const Part& part, double& value) {
    value = part.real;
    return part.kind == Part::Kind::kReal || part.kind == Part::Kind::kInteger;
  }
};

struct NumberOrNull : Number {
  static bool read(const Part& part, double& value) {
    const bool none = part.kind == Part::Kind::kNull;
    if (none) value = std::numeric_limits<double>::quiet_NaN();
    return none || Number::read(part, value);
  }
};

struct Text {
  static void write(std::string& line, const std::string& value) { append_text(line, value); }
  static bool read(const Part& part, std::string& value) {
    if (part.kind == Part::Kind::kText) value.swap(*part.text);
    return part.kind == Part::Kind::kText;
  }
};

struct Id {
  template <class T>
  static void write(std::string& line, const T& value) {
    append_id(line, value);
  }
  template <class T>
  static bool read(const Part& part, T& value) {
    return part.kind == Part::Kind::kText && parse_id(*part.text, value);
  }
};

struct Tag {
  static void write(std::string& line, CountTag tag) { append_text(line, hex_of_word(tag)); }
  static bool read(const Part& part, CountTag& tag) {
    return part.kind == Part::Kind::kText && part.text->size() == 16 && parse_number(*part.text, tag, 16);
  }
};

template <class Form>
struct List {
  template <class T>
  static void write(std::string& line, const std::vector<T>& list) {
    line += '[';
    for (const T& value : list) {
      if (line.back() != '[') line += ',';
      Form::write(line, value);
    }
    line += ']';
  }
  template <class T>
  static bool read(const Part& part, std::vector<T>& list) {
    if (part.depth == 1) return part.kind == Part::Kind::kList;
    return Form::read(part, list.emplace_back());
  }
};

struct Delays : List<Integer> {
  static bool read(const Part& part, std::vector<std::uint64_t>& counts) {
    return List::read(part, counts) && counts.size() <= DelayHistogram::kBins;
  }
};

struct SerialsBySession {
  static void write(std::string& line, const std::vector<Secured>& members) {
    line += '{';
    for (const Secured& member : members) {
      if (line.back() != '{') line += ',';
      Id::write(line, member.session);
      line += ':';
      List<Integer>::write(line, member.serials);
    }
    line += '}';
  }
  static bool read(const Part& part, std::vector<Secured>& members) {
    if (part.depth == 1) return part.kind == Part::Kind::kObject;
    if (part.kind == Part::Kind::kKey) return parse_id(*part.text, members.emplace_back().session);
    if (part.depth == 2) return part.kind == Part::Kind::kList;
    return Integer::read(part, members.back().serials.emplace_back());
  }
};

template <class T>
bool is_set(const std::optional<T>& value) {
  return value.has_value();
}
bool is_set(const std::string& value) { return !value.empty(); }
template <class T>
const T& in(const std::optional<T>& value) {
  return *value;
}
const std::string& in(const std::string& value) { return value; }
template <class T>
T& made(std::optional<T>& value) {
  return value ? *value : value.emplace();
}
std::string& made(std::string& value) { return value; }

template <auto Member, class Form, auto... Within>
constexpr EventField field(std::string_view name, std::string_view form) {
  return {name, form,
          [](std::string& line, std::string_view key, const R& record) {
            const auto& value = ((record.*Member).*....*Within);
            if (!is_set(value)) return;
            append_name(line, key);
            Form::write(line, in(value));
          },
          [](const Part& part, R& record) { return Form::read(part, made(((record.*Member).*....*Within))); }};
}

constexpr EventField kFields[] = {
    field<&R::microbatch, Id>("microbatch", "`<16 hex>:<serial>`"),
    field<&R::stage, Integer>("stage", "integer"),
    field<&R::about, Id>("about", "session"),
    field<&R::about_peer, Id>("about_peer", "64 hex digits"),
    field<&R::entry_name, Id>("entry", "`<session>#<serial>`"),
    field<&R::lease, Id>("lease", "`<session>~<serial>`"),
    field<&R::window, Slot>("window", "0 or 1"),
    field<&R::round, Integer>("round", "integer"),
    field<&R::version, Integer>("version", "integer"),
    field<&R::back_to, Integer>("back_to", "integer"),
    field<&R::versions, List<Integer>>("versions", "list of integers"),
    field<&R::digest, Id>("digest", "64 hex digits"),
    field<&R::tag, Tag>("tag", "16 hex digits"),
    field<&R::step, Integer>("step", "integer"),
    field<&R::sample, Integer>("sample", "integer"),
    field<&R::epoch, Integer>("epoch", "integer"),
    field<&R::entries, List<Id>>("entries", "list of entries"),
    field<&R::secured, SerialsBySession>("secured", "`{session: [serials]}`"),
    field<&R::members, Integer>("members", "integer"),
    field<&R::silent, Id>("silent", "session"),
    field<&R::state, Text>("state", "text"),
    field<&R::cause, Text>("cause", "text"),
    field<&R::peer_name, Text>("peer_name", "text"),
    field<&R::loss, NumberOrNull>("loss", "number or null"),
    field<&R::targets, Integer>("targets", "integer"),
    field<&R::delay_mean, Number>("delay_mean", "number"),
    field<&R::delays, Delays>("delays", "list of integers"),
    field<&R::settle_wait_ms, Integer>("settle_wait_ms", "integer"),
    field<&R::sent, Integer>("sent", "integer"),
    field<&R::received, Integer>("received", "integer"),
    field<&R::relayed, Integer>("relayed", "integer"),
    field<&R::fp32, Integer>("fp32", "integer"),
    field<&R::payload, Integer>("payload", "integer"),
    field<&R::bases, Integer, &FramesByBase::deltas>("deltas", "integer"),
    field<&R::bases, Integer, &FramesByBase::keys>("keys", "integer"),
    field<&R::rounds, Integer, &RoundFigures::sent>("round_sent", "integer"),
    field<&R::rounds, Integer, &RoundFigures::device_us>("round_device_us", "integer"),
    field<&R::rounds, Id, &RoundFigures::waited_for>("waited_for", "session"),
    field<&R::rounds, Integer, &RoundFigures::waited_ms>("waited_ms", "integer"),
    field<&R::callbacks, Integer, &CallbackFigures::longest_ms>("longest_callback_ms", "integer"),
    field<&R::callbacks, Text, &CallbackFigures::longest>("callback", "text"),
    field<&R::callbacks, Integer, &CallbackFigures::computed_ms>("computed_ms", "integer"),
    field<&R::missing, Integer>("missing", "integer"),
    field<&R::level, Text>("level", "text"),
};

// Bits of the fields with these names. A name that no row above has does not compile.
consteval std::uint64_t fields(std::string_view names) {
  std::uint64_t bits = 0;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    std::size_t i = 0;
    while (kFields[i].name != name) ++i;
    bits |= std::uint64_t{1} << i;
  }
  return bits;
}

constexpr std::uint64_t kOfEntry = fields("microbatch stage entry");
constexpr std::uint64_t kOfClaim = fields("microbatch about lease");
constexpr std::uint64_t kOfSession = fields("about stage");
constexpr std::uint64_t kOfStep = fields("step loss targets");
constexpr std::uint64_t kCause = fields("cause");  // left out where it says nothing: required where it always does
using namespace event_writer;

// In the order of the page.
constexpr EventRow kRows[] = {
    {K::kReopened, "reopened", kAny, kCause, "goes on with a file whose last line is torn"},
    {K::kStart, "start", kAny, 0, "a session begins"},
    {K::kEnd, "end", kAny, 0, "it goes"},
    {K::kBytes, "bytes", kTrainer, fields("sent received"), "every second"},
    {K::kBytes, "bytes", kPeer, fields("sent received fp32 payload"), "every second"},
    {K::kIssue, "issue", kTrainer, fields("microbatch step sample epoch"), "before its first Forward leaves"},
    {K::kCommit, "commit", kTrainer, fields("microbatch entries loss targets"), "durable in the trainer's log"},
    {K::kMerged, "merged", kTrainer | kPeer, kOfEntry, "a committed round names", L::kEntries},
    {K::kLost, "lost", kTrainer, kOfEntry | kCause, "the contribution is lost"},
    {K::kContradiction, "contradiction", kTrainer, kOfEntry | kCause, "a round names what was lost before"},
    {K::kTrain, "train", kTrainer | kSolo, kOfStep, "a train line was printed"},
    {K::kEstimate, "estimate", kTrainer | kSolo, kOfStep, "the loss of some validation samples while the run trains"},
    {K::kValidation, "validation", kTrainer, fields("loss targets versions"), "at the end, on the anchors"},
    {K::kValidation, "validation", kSolo, fields("loss targets"), "at the end"},
    {K::kMember, "member", kTrainer, kOfSession | fields("state"), "a session joined"},
    {K::kSessionOver, "session_over", kTrainer, kOfSession | kCause, "it left"},
    {K::kUnreachable, "unreachable", kTrainer, fields("about cause"), "nobody could dial it"},
    {K::kRoundOpen, "round_open", kTrainer, fields("stage round version step members"), "the opening is durable"},
    {K::kRoundFailed, "round_failed", kTrainer, kOfSession | fields("round"), "reports that its attempt failed"},
    {K::kRoundCommit, "round_commit", kTrainer, fields("stage round version step secured tag digest"),
     "the round is durable in the authority's log"},
    {K::kRoundAbandon, "round_abandon", kTrainer, fields("stage round cause"), "no agreement"},
    {K::kRestored, "restored", kTrainer, fields("stage round version back_to secured tag digest cause"),
     "the restore is durable"},
    {K::kServing, "serving", kPeer, fields("stage version"), "it has the stage's state"},
    {K::kEntry, "entry", kPeer, kOfEntry | fields("about"), "a Forward was admitted and made an entry", L::kEntries},
    {K::kJoined, "joined", kPeer, kOfEntry, "a further lease on a living entry", L::kFull},
    {K::kTaken, "taken", kPeer, kOfEntry, "a further lease on a living entry", L::kFull},
    {K::kForward, "forward", kPeer, kOfEntry, "forward is computed", L::kEntries},
    {K::kRefused, "refused", kPeer, kOfEntry | kCause, "failed its checks", L::kEntries},
    {K::kDrop, "drop", kPeer, kOfEntry | kCause, "an entry that was not counted ends", L::kEntries},
    {K::kNeedKeyFrame, "need_key_frame", kPeer, kOfEntry, "a frame's base was not here", L::kFull},
    {K::kCounted, "counted", kPeer, kOfEntry, "backward is computed and added to a window", L::kEntries},
    {K::kLate, "late", kPeer, kOfEntry, "its own gradient comes later", L::kEntries},
    {K::kUndo, "undo", kPeer, kOfEntry | kCause, "a counted entry ends", L::kEntries},
    {K::kUndone, "undone", kPeer, kOfEntry, "what was counted is taken out again", L::kEntries},
    {K::kSettled, "settled", kPeer, kOfEntry, "COMMIT came: it will never be undone", L::kEntries},
    {K::kCommitGone, "commit_gone", kPeer, kOfEntry, "COMMIT came for an entry that is not there", L::kEntries},
    {K::kStepped, "stepped", kPeer, fields("stage window entries targets tag delay_mean delays settle_wait_ms"),
     "a window's inner step is done"},
    {K::kCodec, "codec", kPeer, kCause, "takes another codec"},
    {K::kRoundEnter, "round_enter", kPeer, fields("stage round version step"), "the authority's opening is here"},
    {K::kRoundReport, "round_report", kPeer, fields("stage round secured tag"), "what it contributed"},
    {K::kRoundDrop, "round_drop", kPeer, fields("stage round"), "what it holds of the round is given up"},
    {K::kAnchor, "anchor", kPeer, fields("stage version tag digest"), "its anchor is at this version"},
    {K::kBehind, "behind", kPeer, fields("stage version cause"), "was committed without it"},
    {K::kShifted, "shifted", kPeer, fields("stage version cause"), "it has caught up with this version"},
    {K::kForwardSent, "forward_sent", kPeer | kTrainer, kOfClaim, "towards the next stage: asked", L::kFull},
    {K::kKeyFrame, "key_frame", kPeer | kTrainer, kOfClaim, "the frames were sent again as key frames", L::kFull},
    {K::kHopTimer, "hop_timer", kPeer | kTrainer, kOfClaim, "no word in time", L::kFull},
    {K::kTake, "take", kPeer | kTrainer, kOfClaim, "asked for a gradient that waits", L::kFull},
    {K::kGradientRejected, "gradient_rejected", kPeer | kTrainer, kOfClaim, "the gradient that came could not be used",
     L::kFull},
    {K::kFenced, "fenced", kPeer, kCause, "it learns that its session is over"},
};

constexpr auto kNames = [] {
  std::array<std::string_view, static_cast<std::size_t>(kEventKindLast) + 1> names;
  for (const EventRow& row : kRows) names[static_cast<std::size_t>(row.kind)] = row.name;
  return names;
}();
static_assert(
    [] {
      for (const std::string_view name : kNames)
        if (name.empty()) return false;
      return true;
    }(),
    "each kind has a row");

}  // namespace

std::span<const EventField> event_fields() { return kFields; }
std::span<const EventRow> event_rows() { return kRows; }

namespace {
constexpr std::string_view kLevelNames[] = {"rounds", "entries", "full"};
static_assert(std::size(kLevelNames) == std::size(kEventLevels));

constexpr auto kFrom = [] {
  std::array<EventLevel, static_cast<std::size_t>(kEventKindLast) + 1> from{};
  for (const EventRow& row : kRows) from[static_cast<std::size_t>(row.kind)] = row.from;
  return from;
}();
}  // namespace

std::string_view name_of(EventLevel level) { return kLevelNames[static_cast<std::size_t>(level)]; }

std::optional<EventLevel> event_level_named(std::string_view name) {
  for (const EventLevel level : kEventLevels)
    if (name_of(level) == name) return level;
  return std::nullopt;
}

bool is_written(EventKind kind, EventLevel level) { return kFrom.at(static_cast<std::size_t>(kind)) <= level; }

std::string_view name_of(EventKind event) { return kNames.at(static_cast<std::size_t>(event)); }
std::ostream& operator<<(std::ostream& out, EventKind event) { return out << name_of(event); }

void append_name(std::string& line, std::string_view name) {
  line += ",\"";
  line += name;
  line += "\":";
}

void append_text(std::string& line, std::string_view value) {
  line += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') line += '\\';
    if (byte >= 0x20 && byte < 0x7f) {
      line += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      line += escape;
    }
  }
  line += '"';
}

bool parse_id(std::string_view text, Session& id) {
  return text.size() == 33 && text[16] == '.' && parse_number(text.substr(0, 16), id.peer_tag, 16) &&
         parse_number(text.substr(17), id.incarnation, 16);
}
bool parse_id(std::string_view text, EntryName& id) {
  std::string_view left;
  return cut_serial(text, '#', left, id.serial) && parse_id(left, id.session);
}
bool parse_id(std::string_view text, Lease& id) {
  std::string_view left;
  return cut_serial(text, '~', left, id.serial) && parse_id(left, id.session);
}
bool parse_id(std::string_view text, MicrobatchId& id) {
  std::string_view left;
  return cut_serial(text, ':', left, id.serial) && left.size() == 16 && parse_number(left, id.trainer, 16);
}

}  // namespace shoal
