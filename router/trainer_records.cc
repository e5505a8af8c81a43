#include "router/trainer_records.h"

#include <optional>
#include <utility>

#include "common/byte_codec.h"

namespace shoal {

namespace {

constexpr std::uint8_t kHeader = 1, kPath = 2, kDone = 3, kEnd = 4, kLife = 5, kBase = 6;

// fields() says once what a record has, for the way to bytes and for the way back.
struct Writing {
  ByteWriter out;
  void field(const std::string& value) { out.text(value); }
  void field(const Digest& value) { out.bytes(value.bytes); }
  void field(bool value) { out.put(static_cast<std::uint8_t>(value)); }
  void field(FixedWidth auto value) { out.put(value); }
  template <class Item>
  void list(std::vector<Item>& items, auto each) {
    out.put(static_cast<std::uint32_t>(items.size()));
    for (Item& item : items) each(item);
  }
};

struct Reading {
  ByteReader in;
  void field(std::string& value) { value = in.text(); }
  void field(Digest& value) {
    for (std::uint8_t& byte : value.bytes) byte = in.get<std::uint8_t>();
  }
  void field(bool& value) { value = in.get<std::uint8_t>() != 0; }
  template <FixedWidth T>
  void field(T& value) {
    value = in.get<T>();
  }
  template <class Item>
  void list(std::vector<Item>& items, auto each) {
    for (auto count = in.get<std::uint32_t>(); count > 0 && !in.bad(); --count) each(items.emplace_back());
  }
};

void all(auto& io, auto&... values) { (io.field(values), ...); }

void versions(auto& io, std::vector<Version>& by_stage) {
  for (Version& version : by_stage) io.field(version.value);
}

void fields(auto& io, HeaderRecord& r) { all(io, r.trainer, r.stages); }

void fields(auto& io, LifeRecord& r) {
  all(io, r.session.peer_tag, r.session.incarnation, r.cursor, r.epoch, r.samples, r.text);
}

void fields(auto& io, PathRecord& r) {
  all(io, r.serial, r.loss_sum, r.targets);
  for (EntryName& entry : r.path) all(io, entry.session.peer_tag, entry.session.incarnation, entry.serial);
}

void fields(auto& io, DoneRecord& r) {
  io.list(r.items, [&](DoneItem& item) { all(io, item.serial, item.stage, item.lost, item.cause); });
  versions(io, r.heard);
  io.field(r.all);
}

void fields(auto& io, BaseRecord& r) {
  struct Line {
    std::uint64_t peer_tag = 0;
    std::uint16_t stage = 0;
    std::string cause{};
    std::uint64_t pairs = 0;
  };
  std::vector<Line> lines;
  for (const auto& [of, pairs] : r.lost.lines)
    lines.push_back({std::get<0>(of), std::get<1>(of).value, std::get<2>(of), pairs});
  all(io, r.low, r.targets, r.lost.pairs);
  versions(io, r.heard);
  io.list(lines, [&](Line& line) { all(io, line.peer_tag, line.stage, line.cause, line.pairs); });
  for (const Line& line : lines) r.lost.lines[{line.peer_tag, StageId(line.stage), line.cause}] = line.pairs;
}

void fields(auto&, EndRecord&) {}

std::uint8_t kind_of(const TrainerRecord& record) {
  constexpr std::uint8_t kKinds[] = {kHeader, kLife, kPath, kDone, kBase, kEnd};  // in the order of TrainerRecord
  return kKinds[record.index()];
}

std::optional<TrainerRecord> empty_record(std::uint8_t kind, std::uint16_t stages) {
  switch (kind) {
    case kHeader:
      return HeaderRecord{};
    case kLife:
      return LifeRecord{};
    case kPath:
      return PathRecord{.path = std::vector<EntryName>(stages)};
    case kDone:
      return DoneRecord{.items = {}, .heard = std::vector<Version>(stages)};
    case kBase:
      return BaseRecord{.heard = std::vector<Version>(stages), .lost = {}};
    case kEnd:
      return EndRecord{};
    default:
      return std::nullopt;
  }
}

}  // namespace

Error bad_trainer_record() { return make_error(ErrorCode::kCorrupt, "a record of the trainer's log does not parse"); }

Bytes bytes_of(TrainerRecord record) {
  Writing io;
  io.field(kind_of(record));
  std::visit([&](auto& r) { fields(io, r); }, record);
  return std::move(io.out).take();
}

Result<TrainerRecord> parse_trainer_record(ByteView bytes, std::uint16_t stages) {
  Reading io{ByteReader(bytes)};
  std::optional<TrainerRecord> record = empty_record(io.in.get<std::uint8_t>(), stages);
  if (record) std::visit([&](auto& r) { fields(io, r); }, *record);
  if (!record || !io.in.whole()) return bad_trainer_record();
  return *std::move(record);
}

}  // namespace shoal
