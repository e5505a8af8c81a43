#pragma once
// What an event line may say, once: a row a field and a row a kind of event. The writer (event_line), the reader of the
// audit and the test of docs/EVENTS.md walk these tables. Another field is a member of EventRecord and a row here;
// another kind is an enumerator of EventKind and a row here. Pure; thread-safe.
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "events/event_level.h"
#include "events/event_record.h"

namespace shoal {

// What a parser finds of one field: its value, or one after another the parts of it.
struct FieldPart {
  enum class Kind : std::uint8_t { kText, kInteger, kReal, kNull, kKey, kList, kObject, kOther } kind;
  int depth = 1;                // how many brackets are open around it
  std::string* text = nullptr;  // of kText and kKey; may be moved from
  std::uint64_t integer = 0;
  double real = 0;  // of kReal and kInteger
};

struct EventField {
  std::string_view name;
  std::string_view form;  // as the page says it
  // Writes `,"name":value`; nothing when it is not set.
  void (*write)(std::string& line, std::string_view name, const EventRecord& record);
  bool (*read)(const FieldPart& part, EventRecord& record);  // false: not of its form
};

namespace event_writer {  // bits
inline constexpr std::uint8_t kPeer = 1, kTrainer = 2, kSolo = 4, kAny = 7;
}

// What a line of this kind has when one of these writes it. Writers of which it has different fields have a row each.
struct EventRow {
  EventKind kind;
  std::string_view name;
  std::uint8_t writers;                   // the authority lives with the trainer and writes as such
  std::uint64_t required;                 // bits by place in event_fields()
  std::string_view when;                  // in short; the page says more
  EventLevel from = EventLevel::kRounds;  // the first level that writes it
};

std::span<const EventField> event_fields();  // in the order of a line
std::span<const EventRow> event_rows();

// Values as they stand in a line.
void append_name(std::string& line, std::string_view name);   // `,"name":`
void append_text(std::string& line, std::string_view value);  // quoted and escaped: any text is valid there
template <class T>
void append_id(std::string& line, const T& id) {
  std::ostringstream out;
  out << id;
  append_text(line, out.view());
}
// False: the text is no such id.
bool parse_id(std::string_view text, Session& id);
bool parse_id(std::string_view text, EntryName& id);
bool parse_id(std::string_view text, Lease& id);
bool parse_id(std::string_view text, MicrobatchId& id);
template <class Tag>
bool parse_id(std::string_view text, Key32<Tag>& id) {
  const auto bytes = parse_hex32(text);
  if (bytes.ok()) id.bytes = *bytes;
  return bytes.ok();
}

}  // namespace shoal
