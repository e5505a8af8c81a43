// A line to values, by nlohmann's parser without a document: nothing is kept that the schema does not name.
#include "events/read_event.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace shoal {
namespace {

using Part = FieldPart;

constexpr std::string_view kHead[] = {"time", "event", "role", "run", "peer", "session"};
constexpr std::size_t kHeadSize = std::size(kHead);
constexpr std::uint64_t kWholeHead = (std::uint64_t{1} << kHeadSize) - 1;

// The place of its bit; nothing for a name that no line has.
std::optional<std::size_t> place_of(std::string_view name) {
  for (std::size_t i = 0; i < kHeadSize; ++i)
    if (kHead[i] == name) return i;
  const auto fields = event_fields();
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return kHeadSize + i;
  return std::nullopt;
}

// What nlohmann's parser calls; false ends the parse.
class Reader {
 public:
  explicit Reader(ReadEvent& event) : e_(event) {}

  bool key(std::string& name) {
    if (depth_ > 1) return take({.kind = Part::Kind::kKey, .text = &name});
    place_ = place_of(name);
    if (!place_) return true;
    const std::uint64_t bit = std::uint64_t{1} << *place_;
    return (std::exchange(e_.has, e_.has | bit) & bit) == 0;  // a field that is said twice may mean two things
  }
  bool start_object(std::size_t) { return open(Part::Kind::kObject); }
  bool start_array(std::size_t) { return open(Part::Kind::kList); }
  bool end_object() { return --depth_, true; }
  bool end_array() { return --depth_, true; }
  bool string(std::string& text) { return take({.kind = Part::Kind::kText, .text = &text}); }
  bool number_unsigned(std::uint64_t value) {
    return take({.kind = Part::Kind::kInteger, .integer = value, .real = static_cast<double>(value)});
  }
  bool number_integer(std::int64_t value) { return number_float(static_cast<double>(value), {}); }  // a negative number
  bool number_float(double value, const std::string&) { return take({.kind = Part::Kind::kReal, .real = value}); }
  bool null() { return take({.kind = Part::Kind::kNull}); }
  bool boolean(bool) { return take({.kind = Part::Kind::kOther}); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

 private:
  bool open(Part::Kind kind) {
    const bool fits = depth_ == 0 ? kind == Part::Kind::kObject : take({.kind = kind});
    ++depth_;
    return fits;
  }
  bool take(Part part) {
    if (!place_) return true;
    part.depth = depth_;
    return *place_ < kHeadSize ? take_head(part) : event_fields()[*place_ - kHeadSize].read(part, e_);
  }
  bool take_head(const Part& part) {
    if (*place_ == 0) {
      e_.time = part.real;
      return part.kind == Part::Kind::kReal || part.kind == Part::Kind::kInteger;
    }
    if (part.kind != Part::Kind::kText) return false;
    switch (*place_) {
      case 1:
        return e_.name.swap(*part.text), true;
      case 2:
        return e_.role.swap(*part.text), e_.is_peer() || e_.is_trainer() || e_.role == "solo";
      case 3:
        return parse_id(*part.text, e_.run);
      case 4:
        return parse_id(*part.text, e_.peer);
      default:
        return parse_id(*part.text, e_.session);
    }
  }

  ReadEvent& e_;
  std::optional<std::size_t> place_;
  int depth_ = 0;
};

const EventRow* row_of(const ReadEvent& event) {
  const std::uint8_t writer = event.is_peer()      ? event_writer::kPeer
                              : event.is_trainer() ? event_writer::kTrainer
                                                   : event_writer::kSolo;
  for (const EventRow& row : event_rows())
    if ((row.writers & writer) != 0 && row.name == event.name) return &row;
  return nullptr;
}

}  // namespace

bool read_event(std::string_view line, ReadEvent& event) {
  event = {};
  Reader reader(event);
  if (line.empty() || line.front() != '{') return false;
  if (!nlohmann::json::sax_parse(line.begin(), line.end(), &reader)) return false;
  if (event.name.empty() || event.role.empty() || (event.has >> 5 & 1) == 0) return false;
  event.row = row_of(event);
  if (event.row != nullptr) event.event = event.row->kind;
  return true;
}

std::string_view lacking_field(const ReadEvent& event) {
  const std::uint64_t required = kWholeHead | (event.row == nullptr ? 0 : event.row->required << kHeadSize);
  const std::uint64_t lacking = required & ~event.has;
  if (lacking == 0) return {};
  const auto place = static_cast<std::size_t>(std::countr_zero(lacking));
  return place < kHeadSize ? kHead[place] : event_fields()[place - kHeadSize].name;
}

}  // namespace shoal
