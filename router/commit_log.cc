// The records of the trainer's log, and their replay.
#include <algorithm>

#include "common/byte_codec.h"
#include "router/commit_book.h"

namespace shoal {

namespace {

constexpr std::uint8_t kHeader = 1, kPath = 2, kDone = 3, kEnd = 4, kLife = 5;
constexpr std::size_t kDoneItemsMax = 4096;        // in one record, which stays far below what kTrainerLog allows
constexpr std::uint64_t kReplayGapMax = 1u << 20;  // ids that are skipped at a time; a window is far below it

Error bad_record() { return make_error(ErrorCode::kCorrupt, "a record of the trainer's log does not parse"); }
Error no_header() { return make_error(ErrorCode::kCorrupt, "the trainer's log does not begin with its header"); }

}  // namespace

Bytes CommitBook::header_record() const {
  ByteWriter out;
  out.put(kHeader);
  out.put(trainer_);
  out.put(stages_);
  return std::move(out).take();
}

Bytes CommitBook::life_record(const Life& life) {
  life_ = life;
  ByteWriter out;
  out.put(kLife);
  out.put(life.session.peer_tag);
  out.put(life.session.incarnation);
  out.put(life.cursor);
  out.put(life.epoch);
  out.put(life.samples);
  out.bytes(life.text.bytes);
  return std::move(out).take();
}

Bytes CommitBook::path_record(std::uint64_t serial, const Logged& logged) const {
  ByteWriter out;
  out.put(kPath);
  out.put(serial);
  out.put(logged.loss_sum);
  out.put(logged.targets);
  for (const EntryName& entry_name : logged.path) {
    out.put(entry_name.session.peer_tag);
    out.put(entry_name.session.incarnation);
    out.put(entry_name.serial);
  }
  return std::move(out).take();
}

Bytes CommitBook::done_record() {
  const auto end = done_.begin() + static_cast<std::ptrdiff_t>(std::min(done_.size(), kDoneItemsMax));
  const std::vector<Done> items(done_.begin(), end);
  done_.erase(done_.begin(), end);
  writing_.insert(writing_.end(), items.begin(), items.end());
  ByteWriter out;
  out.put(kDone);
  out.put(static_cast<std::uint32_t>(items.size()));
  for (const Done& item : items) {
    out.put(item.serial);
    out.put(item.stage);
    out.put(static_cast<std::uint8_t>(item.lost));
    out.text(item.cause);
  }
  return std::move(out).take();
}

Bytes CommitBook::end_record() const {
  ByteWriter out;
  out.put(kEnd);
  return std::move(out).take();
}

Status CommitBook::replay(ByteView record, const ReplayWatch* watch) {
  ByteReader in(record);
  switch (in.get<std::uint8_t>()) {
    case kHeader: {
      const auto trainer = in.get<std::uint64_t>();
      const auto stages = in.get<std::uint16_t>();
      if (!in.whole()) break;
      if (trainer != trainer_ || stages != stages_)
        return make_error(ErrorCode::kForeign,
                          "the log belongs to another run: it was begun with another run.key, or another number of "
                          "stages. HINT: put back the run.key that was made with it");
      header_seen_ = true;
      return {};
    }
    case kPath:
      return header_seen_ ? replay_path(record, watch) : no_header();
    case kDone:
      return header_seen_ ? replay_done(record, watch) : no_header();
    case kLife:
      return header_seen_ ? replay_life(record) : no_header();
    case kEnd:
      if (record.size() != 1) break;
      ended_ = true;
      return {};
    default:
      break;
  }
  return bad_record();
}

Status CommitBook::replay_path(ByteView record, const ReplayWatch* watch) {
  ByteReader in(record.subspan(1));
  const auto serial = in.get<std::uint64_t>();
  Logged logged;
  logged.loss_sum = in.get<double>();
  logged.targets = in.get<std::uint64_t>();
  for (std::uint16_t k = 0; k < stages_; ++k) {
    EntryName entry_name;
    entry_name.session.peer_tag = in.get<std::uint64_t>();
    entry_name.session.incarnation = in.get<std::uint64_t>();
    entry_name.serial = in.get<std::uint64_t>();
    logged.path.push_back(entry_name);
  }
  const std::uint64_t skipped = serial > next_serial_ ? serial - next_serial_ : 0;
  if (!in.whole() || skipped > kReplayGapMax || reissue_.size() + skipped > kReplayGapMax) return bad_record();
  if (serial < low_ || logged_.contains(serial))
    return make_error(ErrorCode::kCorrupt, "microbatch " + std::to_string(serial) + " is logged twice");
  logged.stages.assign(stages_, StageState::kOutstanding);
  logged.durable = true;
  ++committed_;
  committed_targets_ += logged.targets;
  for (const EntryName& entry_name : logged.path) {
    by_entry_[entry_name] = serial;
    if (watch != nullptr) watch->logged(entry_name);
  }
  for (; next_serial_ <= serial; ++next_serial_) reissue_.insert(next_serial_);
  reissue_.erase(serial);
  logged_.emplace(serial, std::move(logged));
  unanswered_.insert(serial);
  return {};
}

Status CommitBook::replay_life(ByteView record) {
  ByteReader in(record.subspan(1));
  Life life;
  life.session.peer_tag = in.get<std::uint64_t>();
  life.session.incarnation = in.get<std::uint64_t>();
  life.cursor = in.get<std::uint64_t>();
  life.epoch = in.get<std::uint32_t>();
  life.samples = in.get<std::uint64_t>();
  for (std::uint8_t& byte : life.text.bytes) byte = in.get<std::uint8_t>();
  if (!in.whole()) return bad_record();
  life_ = life;
  return {};
}

Status CommitBook::replay_done(ByteView record, const ReplayWatch* watch) {
  ByteReader in(record.subspan(1));
  for (auto count = in.get<std::uint32_t>(); count > 0 && !in.bad(); --count) {
    const auto serial = in.get<std::uint64_t>();
    const auto stage = in.get<std::uint16_t>();
    const auto lost = in.get<std::uint8_t>();
    const std::string cause = in.text();
    const auto it = logged_.find(serial);
    if (in.bad() || it == logged_.end() || stage >= stages_) continue;
    if (watch != nullptr && lost == 0) watch->merged(it->second.path[stage]);
    set(serial, it->second, stage, lost ? StageState::kLost : StageState::kMerged, cause);
  }
  if (!in.whole()) return bad_record();
  done_.clear();
  undurable_.clear();
  raise_low();
  return {};
}

}  // namespace shoal
