#include "router/trainer_records.h"

#include <utility>

#include "common/byte_codec.h"

namespace shoal {

namespace {

constexpr std::uint8_t kHeader = 1, kPath = 2, kDone = 3, kEnd = 4, kLife = 5, kBase = 6;

void put(ByteWriter& out, const std::vector<Version>& versions) {
  for (const Version version : versions) out.put(version.value);
}

std::vector<Version> get_versions(ByteReader& in, std::uint16_t stages) {
  std::vector<Version> versions(stages);
  for (Version& version : versions) version = Version(in.get<std::uint64_t>());
  return versions;
}

void put(ByteWriter& out, const HeaderRecord& record) {
  out.put(kHeader);
  out.put(record.trainer);
  out.put(record.stages);
}

void put(ByteWriter& out, const LifeRecord& record) {
  out.put(kLife);
  out.put(record.session.peer_tag);
  out.put(record.session.incarnation);
  out.put(record.cursor);
  out.put(record.epoch);
  out.put(record.samples);
  out.bytes(record.text.bytes);
}

void put(ByteWriter& out, const PathRecord& record) {
  out.put(kPath);
  out.put(record.serial);
  out.put(record.loss_sum);
  out.put(record.targets);
  for (const EntryName& entry_name : record.path) {
    out.put(entry_name.session.peer_tag);
    out.put(entry_name.session.incarnation);
    out.put(entry_name.serial);
  }
}

void put(ByteWriter& out, const DoneRecord& record) {
  out.put(kDone);
  out.put(static_cast<std::uint32_t>(record.items.size()));
  for (const DoneItem& item : record.items) {
    out.put(item.serial);
    out.put(item.stage);
    out.put(static_cast<std::uint8_t>(item.lost));
    out.text(item.cause);
  }
  put(out, record.heard);
  out.put(static_cast<std::uint8_t>(record.all));
}

void put(ByteWriter& out, const BaseRecord& record) {
  out.put(kBase);
  out.put(record.low);
  out.put(record.targets);
  out.put(record.lost.pairs);
  put(out, record.heard);
  out.put(static_cast<std::uint32_t>(record.lost.lines.size()));
  for (const auto& [line, pairs] : record.lost.lines) {
    const auto& [peer_tag, stage, cause] = line;
    out.put(peer_tag);
    out.put(stage.value);
    out.text(cause);
    out.put(pairs);
  }
}

void put(ByteWriter& out, const EndRecord&) { out.put(kEnd); }

HeaderRecord get_header(ByteReader& in) {
  HeaderRecord record;
  record.trainer = in.get<std::uint64_t>();
  record.stages = in.get<std::uint16_t>();
  return record;
}

LifeRecord get_life(ByteReader& in) {
  LifeRecord record;
  record.session.peer_tag = in.get<std::uint64_t>();
  record.session.incarnation = in.get<std::uint64_t>();
  record.cursor = in.get<std::uint64_t>();
  record.epoch = in.get<std::uint32_t>();
  record.samples = in.get<std::uint64_t>();
  for (std::uint8_t& byte : record.text.bytes) byte = in.get<std::uint8_t>();
  return record;
}

PathRecord get_path(ByteReader& in, std::uint16_t stages) {
  PathRecord record;
  record.serial = in.get<std::uint64_t>();
  record.loss_sum = in.get<double>();
  record.targets = in.get<std::uint64_t>();
  record.path.resize(stages);
  for (EntryName& entry_name : record.path) {
    entry_name.session.peer_tag = in.get<std::uint64_t>();
    entry_name.session.incarnation = in.get<std::uint64_t>();
    entry_name.serial = in.get<std::uint64_t>();
  }
  return record;
}

DoneRecord get_done(ByteReader& in, std::uint16_t stages) {
  DoneRecord record;
  for (auto count = in.get<std::uint32_t>(); count > 0 && !in.bad(); --count) {
    DoneItem& item = record.items.emplace_back();
    item.serial = in.get<std::uint64_t>();
    item.stage = in.get<std::uint16_t>();
    item.lost = in.get<std::uint8_t>() != 0;
    item.cause = in.text();
  }
  record.heard = get_versions(in, stages);
  record.all = in.get<std::uint8_t>() != 0;
  return record;
}

BaseRecord get_base(ByteReader& in, std::uint16_t stages) {
  BaseRecord record;
  record.low = in.get<std::uint64_t>();
  record.targets = in.get<std::uint64_t>();
  record.lost.pairs = in.get<std::uint64_t>();
  record.heard = get_versions(in, stages);
  for (auto count = in.get<std::uint32_t>(); count > 0 && !in.bad(); --count) {
    const auto peer_tag = in.get<std::uint64_t>();
    const StageId stage(in.get<std::uint16_t>());
    const std::string cause(in.text());
    record.lost.lines[{peer_tag, stage, cause}] += in.get<std::uint64_t>();
  }
  return record;
}

}  // namespace

Error bad_trainer_record() { return make_error(ErrorCode::kCorrupt, "a record of the trainer's log does not parse"); }

Bytes bytes_of(const TrainerRecord& record) {
  ByteWriter out;
  std::visit([&](const auto& r) { put(out, r); }, record);
  return std::move(out).take();
}

Result<TrainerRecord> parse_trainer_record(ByteView bytes, std::uint16_t stages) {
  ByteReader in(bytes);
  std::optional<TrainerRecord> record;
  switch (in.get<std::uint8_t>()) {
    case kHeader:
      record = get_header(in);
      break;
    case kLife:
      record = get_life(in);
      break;
    case kPath:
      record = get_path(in, stages);
      break;
    case kDone:
      record = get_done(in, stages);
      break;
    case kBase:
      record = get_base(in, stages);
      break;
    case kEnd:
      record = EndRecord{};
      break;
    default:
      break;
  }
  if (!record || !in.whole()) return bad_trainer_record();
  return *std::move(record);
}

}  // namespace shoal
