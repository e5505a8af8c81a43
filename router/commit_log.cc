// The bytes of the trainer's log: framing, records, replay.
#include <algorithm>
#include <cstring>

#include "router/commit_book.h"

namespace shoal {

namespace {

constexpr std::uint8_t kHeader = 1, kPath = 2, kDone = 3, kEnd = 4, kLife = 5;
constexpr std::uint8_t kLogVersion = 2;
constexpr std::size_t kRecordMax = 1u << 20;
constexpr std::size_t kDoneItemsMax = 4096;        // in one record, which stays far below kRecordMax
constexpr std::uint64_t kReplayGapMax = 1u << 20;  // ids that one record may skip; a window is far below it

class Out {
 public:
  template <class T>
  void put(T value) {
    std::uint8_t raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
  }
  void text(std::string_view value) {
    put(static_cast<std::uint16_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  ByteView view() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

class In {
 public:
  explicit In(ByteView bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value{};
    if (at_ + sizeof(T) > bytes_.size()) {
      bad_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string text() {
    const auto size = get<std::uint16_t>();
    if (at_ + size > bytes_.size()) {
      bad_ = true;
      return {};
    }
    std::string value(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return value;
  }
  bool whole() const { return !bad_ && at_ == bytes_.size(); }
  bool bad() const { return bad_; }

 private:
  ByteView bytes_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

// Size of the whole record at `at`, 0 when there is none.
std::size_t whole_record(ByteView log, std::size_t at) {
  std::uint32_t header[2];
  if (at + sizeof(header) > log.size()) return 0;
  std::memcpy(header, log.data() + at, sizeof(header));
  if (header[0] == 0 || header[0] > kRecordMax || at + sizeof(header) + header[0] > log.size()) return 0;
  return crc32c(log.subspan(at + sizeof(header), header[0])) == header[1] ? sizeof(header) + header[0] : 0;
}

Error bad_record() { return make_error(ErrorCode::kCorrupt, "a record of the trainer's log does not parse"); }
Error no_header() { return make_error(ErrorCode::kCorrupt, "the trainer's log does not begin with its header"); }

// Whether a whole record begins anywhere behind the one at `at` that is not whole: its length may be the damaged part.
bool whole_record_behind(ByteView log, std::size_t at) {
  const std::size_t end = std::min(log.size(), at + 8 + kRecordMax + 1);
  for (std::size_t next = at + 1; next < end; ++next)
    if (whole_record(log, next) > 0) return true;
  return false;
}

}  // namespace

Bytes frame_log_record(ByteView payload) {
  SHOAL_CHECK(!payload.empty() && payload.size() <= kRecordMax);
  std::vector<std::uint8_t> bytes(8 + payload.size());
  const std::uint32_t header[2] = {static_cast<std::uint32_t>(payload.size()), crc32c(payload)};
  std::memcpy(bytes.data(), header, sizeof(header));
  std::memcpy(bytes.data() + 8, payload.data(), payload.size());
  return Bytes::from_vector(std::move(bytes));
}

Result<std::size_t> read_log(ByteView log, const std::function<Status(ByteView)>& record) {
  std::size_t at = 0;
  while (at < log.size()) {
    const std::size_t size = whole_record(log, at);
    if (size == 0) {
      if (whole_record_behind(log, at))
        return make_error(ErrorCode::kCorrupt,
                          "record at byte " + std::to_string(at) + " is damaged and whole records follow it");
      return at;
    }
    SHOAL_TRY(record(log.subspan(at + 8, size - 8)));
    at += size;
  }
  return at;
}

Bytes CommitBook::header_record() const {
  Out out;
  out.put(kHeader);
  out.put(kLogVersion);
  out.put(trainer_);
  out.put(stages_);
  return frame_log_record(out.view());
}

Bytes CommitBook::life_record(const Life& life) {
  life_ = life;
  Out out;
  out.put(kLife);
  out.put(life.session.peer_tag);
  out.put(life.session.incarnation);
  out.put(life.cursor);
  out.put(life.epoch);
  out.put(life.samples);
  for (const std::uint8_t byte : life.text.bytes) out.put(byte);
  return frame_log_record(out.view());
}

Bytes CommitBook::path_record(std::uint64_t serial, const Logged& logged) const {
  Out out;
  out.put(kPath);
  out.put(serial);
  out.put(logged.loss_sum);
  out.put(logged.targets);
  for (const EntryName& entry_name : logged.path) {
    out.put(entry_name.session.peer_tag);
    out.put(entry_name.session.incarnation);
    out.put(entry_name.serial);
  }
  return frame_log_record(out.view());
}

Bytes CommitBook::done_record() {
  const auto end = done_.begin() + static_cast<std::ptrdiff_t>(std::min(done_.size(), kDoneItemsMax));
  const std::vector<Done> items(done_.begin(), end);
  done_.erase(done_.begin(), end);
  writing_.insert(writing_.end(), items.begin(), items.end());
  Out out;
  out.put(kDone);
  out.put(static_cast<std::uint32_t>(items.size()));
  for (const Done& item : items) {
    out.put(item.serial);
    out.put(item.stage);
    out.put(static_cast<std::uint8_t>(item.lost));
    out.text(item.cause);
  }
  return frame_log_record(out.view());
}

Bytes CommitBook::end_record() const {
  Out out;
  out.put(kEnd);
  return frame_log_record(out.view());
}

Status CommitBook::replay(ByteView record) {
  In in(record);
  switch (in.get<std::uint8_t>()) {
    case kHeader: {
      const auto version = in.get<std::uint8_t>();
      const auto trainer = in.get<std::uint64_t>();
      const auto stages = in.get<std::uint16_t>();
      if (!in.whole()) break;
      if (version != kLogVersion)
        return make_error(ErrorCode::kVersion, "the log has version " + std::to_string(version) +
                                                   ", this program reads " + std::to_string(kLogVersion));
      if (trainer != trainer_ || stages != stages_)
        return make_error(ErrorCode::kForeign, "the log belongs to another run");
      header_seen_ = true;
      return {};
    }
    case kPath:
      return header_seen_ ? replay_path(record) : no_header();
    case kDone:
      return header_seen_ ? replay_done(record) : no_header();
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

Status CommitBook::replay_path(ByteView record) {
  In in(record.subspan(1));
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
  if (!in.whole() || (serial > next_serial_ && serial - next_serial_ > kReplayGapMax)) return bad_record();
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
  In in(record.subspan(1));
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

Status CommitBook::replay_done(ByteView record) {
  In in(record.subspan(1));
  for (auto count = in.get<std::uint32_t>(); count > 0 && !in.bad(); --count) {
    const auto serial = in.get<std::uint64_t>();
    const auto stage = in.get<std::uint16_t>();
    const auto lost = in.get<std::uint8_t>();
    const std::string cause = in.text();
    const auto it = logged_.find(serial);
    if (in.bad() || it == logged_.end() || stage >= stages_) continue;
    set(serial, it->second, stage, lost ? StageState::kLost : StageState::kMerged, cause);
  }
  if (!in.whole()) return bad_record();
  done_.clear();
  undurable_.clear();
  raise_low();
  return {};
}

}  // namespace shoal
