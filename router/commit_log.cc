// The records of the trainer's log, and their replay.
#include <algorithm>

#include "common/byte_codec.h"
#include "router/commit_book.h"

namespace shoal {

namespace {

constexpr std::uint8_t kHeader = 1, kPath = 2, kDone = 3, kEnd = 4, kLife = 5, kBase = 6;
constexpr std::size_t kDoneItemsMax = 4096;        // in one record, which stays far below what kTrainerLog allows
constexpr std::uint64_t kSerialMax = 1ull << 62;   // no run comes near it
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
  return life_bytes();
}

Bytes CommitBook::life_bytes() const {
  ByteWriter out;
  out.put(kLife);
  out.put(life_->session.peer_tag);
  out.put(life_->session.incarnation);
  out.put(life_->cursor);
  out.put(life_->epoch);
  out.put(life_->samples);
  out.bytes(life_->text.bytes);
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
  writing_all_ = done_.empty();
  writing_heard_ = heard_;
  return bytes_of(items, writing_all_);
}

Bytes CommitBook::bytes_of(std::span<const Done> items, bool all) const {
  ByteWriter out;
  out.put(kDone);
  out.put(static_cast<std::uint32_t>(items.size()));
  for (const Done& item : items) {
    out.put(item.serial);
    out.put(item.stage);
    out.put(static_cast<std::uint8_t>(item.lost));
    out.text(item.cause);
  }
  for (const Version version : heard_) out.put(version.value);
  out.put(static_cast<std::uint8_t>(all));
  return std::move(out).take();
}

// What is below low(): each of those serials was committed and is settled.
Bytes CommitBook::base_record() const {
  ByteWriter out;
  out.put(kBase);
  out.put(low_);
  out.put(targets_below_);
  out.put(lost_below_);
  for (const Version version : heard_) out.put(version.value);
  out.put(static_cast<std::uint32_t>(losses_below_.size()));
  for (const auto& [line, pairs] : losses_below_) {
    const auto& [peer_tag, stage, cause] = line;
    out.put(peer_tag);
    out.put(stage.value);
    out.text(cause);
    out.put(pairs);
  }
  return std::move(out).take();
}

std::vector<CommitBook::Done> CommitBook::decided() const {
  std::vector<Done> items;
  for (const auto& [serial, logged] : logged_)
    for (std::uint16_t k = 0; k < stages_; ++k) {
      if (logged.stages[k] < StageState::kMerged) continue;
      const auto listing = listings_.find(logged.path[k]);
      items.push_back(
          {serial, k, logged.stages[k] == StageState::kLost, listing == listings_.end() ? "" : listing->second.cause});
    }
  return items;
}

std::vector<Bytes> CommitBook::compacted() const {
  SHOAL_CHECK(!ended_ && left_at_end_.empty());
  std::vector<Bytes> records;
  records.push_back(header_record());
  if (life_) records.push_back(life_bytes());
  records.push_back(base_record());
  for (const auto& [serial, logged] : logged_) records.push_back(path_record(serial, logged));
  const std::vector<Done> items = decided();
  for (std::span<const Done> rest = items; !rest.empty(); rest = rest.subspan(std::min(rest.size(), kDoneItemsMax)))
    records.push_back(bytes_of(rest.first(std::min(rest.size(), kDoneItemsMax)), rest.size() <= kDoneItemsMax));
  return records;
}

Bytes CommitBook::end_record() const {
  ByteWriter out;
  out.put(kEnd);
  return std::move(out).take();
}

Status CommitBook::replay(ByteView record) {
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
      return header_seen_ ? replay_path(record) : no_header();
    case kDone:
      return header_seen_ ? replay_done(record) : no_header();
    case kLife:
      return header_seen_ ? replay_life(record) : no_header();
    case kBase:
      return header_seen_ ? replay_base(record) : no_header();
    case kEnd:
      if (record.size() != 1) break;
      ended_ = true;
      return {};
    default:
      break;
  }
  return bad_record();
}

Status CommitBook::replay_path(ByteView record) {
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
  for (const EntryName& entry_name : logged.path) by_entry_[entry_name] = serial;
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

Status CommitBook::replay_base(ByteView record) {
  ByteReader in(record.subspan(1));
  const auto low = in.get<std::uint64_t>();
  targets_below_ = in.get<std::uint64_t>();
  lost_below_ = in.get<std::uint64_t>();
  for (Version& version : heard_) version = Version(in.get<std::uint64_t>());
  for (auto count = in.get<std::uint32_t>(); count > 0 && !in.bad(); --count) {
    const auto peer_tag = in.get<std::uint64_t>();
    const StageId stage(in.get<std::uint16_t>());
    const std::string cause(in.text());
    losses_below_[{peer_tag, stage, cause}] += in.get<std::uint64_t>();
  }
  // It stands for the records before it, so there are none.
  if (!in.whole() || next_serial_ != 0 || low_ != 0 || low > kSerialMax) return bad_record();
  low_ = next_serial_ = committed_ = low;
  committed_targets_ = targets_below_;
  lost_ = lost_below_;
  settled_ = heard_;
  return {};
}

Status CommitBook::replay_done(ByteView record) {
  ByteReader in(record.subspan(1));
  for (auto count = in.get<std::uint32_t>(); count > 0 && !in.bad(); --count) {
    const auto serial = in.get<std::uint64_t>();
    const auto stage = in.get<std::uint16_t>();
    const auto lost = in.get<std::uint8_t>();
    const std::string cause = in.text();
    const auto it = logged_.find(serial);
    if (in.bad() || it == logged_.end() || stage >= stages_) continue;
    set(serial, it->second, stage, lost ? StageState::kLost : StageState::kMerged, cause);
  }
  for (Version& version : heard_) version = std::max(version, Version(in.get<std::uint64_t>()));
  if (in.get<std::uint8_t>() != 0) settled_ = heard_;
  if (!in.whole()) return bad_record();
  done_.clear();
  undurable_.clear();
  raise_low();
  return {};
}

}  // namespace shoal
