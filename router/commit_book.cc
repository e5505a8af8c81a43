#include "router/commit_book.h"

#include <algorithm>
#include <cstring>

namespace shoal {

namespace {

constexpr std::uint8_t kHeader = 1, kPath = 2, kDone = 3;
constexpr std::uint8_t kLogVersion = 1;
constexpr std::size_t kRecordMax = 1u << 20;
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
    if (at_ + sizeof(T) > bytes_.size()) { bad_ = true; return value; }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string text() {
    const auto size = get<std::uint16_t>();
    if (at_ + size > bytes_.size()) { bad_ = true; return {}; }
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
        return make_error(ErrorCode::kCorrupt, "record at byte " + std::to_string(at) + " is damaged and whole records follow it");
      return at;
    }
    SHOAL_TRY(record(log.subspan(at + 8, size - 8)));
    at += size;
  }
  return at;
}

CommitBook::CommitBook(std::uint64_t trainer, std::uint16_t stages) : trainer_(trainer), stages_(stages) {}

Bytes CommitBook::header_record() const {
  Out out;
  out.put(kHeader);
  out.put(kLogVersion);
  out.put(trainer_);
  out.put(stages_);
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
        return make_error(ErrorCode::kVersion, "the log has version " + std::to_string(version) + ", this program reads " + std::to_string(kLogVersion));
      if (trainer != trainer_ || stages != stages_) return make_error(ErrorCode::kForeign, "the log belongs to another run");
      header_seen_ = true;
      return {};
    }
    case kPath: return header_seen_ ? replay_path(record) : no_header();
    case kDone: return header_seen_ ? replay_done(record) : no_header();
    default: break;
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
    Token token;
    token.session.peer_tag = in.get<std::uint64_t>();
    token.session.incarnation = in.get<std::uint64_t>();
    token.serial = in.get<std::uint64_t>();
    logged.path.push_back(token);
  }
  if (!in.whole() || (serial > next_serial_ && serial - next_serial_ > kReplayGapMax)) return bad_record();
  if (serial < low_ || logged_.contains(serial))
    return make_error(ErrorCode::kCorrupt, "microbatch " + std::to_string(serial) + " is logged twice");
  logged.stages.assign(stages_, StageState::kOutstanding);
  logged.durable = true;
  ++committed_;
  committed_targets_ += logged.targets;
  for (const Token& token : logged.path) by_token_[token] = serial;
  for (; next_serial_ <= serial; ++next_serial_) reissue_.insert(next_serial_);
  reissue_.erase(serial);
  logged_.emplace(serial, std::move(logged));
  return {};
}

Status CommitBook::replay_done(ByteView record) {
  In in(record.subspan(1));
  for (auto count = in.get<std::uint32_t>(); count > 0 && !in.bad(); --count) {
    const auto serial = in.get<std::uint64_t>();
    const auto stage = in.get<std::uint16_t>();
    const auto listed = in.get<std::uint8_t>();
    const std::string cause = in.text();
    const auto it = logged_.find(serial);
    if (in.bad() || it == logged_.end() || stage >= stages_) continue;
    set(serial, it->second, stage, listed ? StageState::kListed : StageState::kMerged, cause);
  }
  if (!in.whole()) return bad_record();
  done_.clear();
  raise_low();
  return {};
}

std::optional<MicrobatchId> CommitBook::next() const {
  const std::uint64_t serial = reissue_.empty() ? next_serial_ : *reissue_.begin();
  if (serial >= low_ + kWindow) return std::nullopt;
  return MicrobatchId{trainer_, serial};
}

void CommitBook::issued(const MicrobatchId& id) {
  SHOAL_CHECK(!logged_.contains(id.serial) && id.serial >= low_);
  reissue_.erase(id.serial);
  open_.insert(id.serial);
  next_serial_ = std::max(next_serial_, id.serial + 1);
}

Bytes CommitBook::log(const MicrobatchId& id, const Gradient& gradient) {
  SHOAL_CHECK(open_.contains(id.serial));
  SHOAL_CHECK_EQ(gradient.path.size(), static_cast<std::size_t>(stages_));
  Logged logged;
  logged.path = gradient.path;
  logged.stages.assign(stages_, StageState::kOutstanding);
  logged.loss_sum = gradient.loss_sum;
  logged.targets = gradient.targets;
  Out out;
  out.put(kPath);
  out.put(id.serial);
  out.put(logged.loss_sum);
  out.put(logged.targets);
  for (const Token& token : logged.path) {
    out.put(token.session.peer_tag);
    out.put(token.session.incarnation);
    out.put(token.serial);
    by_token_[token] = id.serial;
  }
  open_.erase(id.serial);
  logged_.emplace(id.serial, std::move(logged));
  return frame_log_record(out.view());
}

std::vector<CommitBook::Listing> CommitBook::durable(const MicrobatchId& id) {
  const auto it = logged_.find(id.serial);
  SHOAL_CHECK(it != logged_.end());
  it->second.durable = true;
  ++committed_;
  committed_targets_ += it->second.targets;
  std::vector<Listing> lost;
  for (std::size_t k = 0; k < stages_; ++k) {
    if (!over_.contains(it->second.path[k].session) || it->second.stages[k] >= StageState::kMerged) continue;
    lost.push_back({id, StageId(static_cast<std::uint16_t>(k)), it->second.path[k], "session over"});
    set(id.serial, it->second, k, StageState::kListed, lost.back().cause);
  }
  raise_low();  // its tokens may all be listed by now
  return lost;
}

bool CommitBook::names_any(const std::vector<Token>& path) const {
  return std::any_of(path.begin(), path.end(), [this](const Token& token) { return by_token_.contains(token); });
}

std::map<Session, std::vector<CommitItem>> CommitBook::commits_for(const MicrobatchId& id) const {
  std::map<Session, std::vector<CommitItem>> result;
  const auto it = logged_.find(id.serial);
  if (it == logged_.end() || !it->second.durable) return result;
  for (std::size_t k = 0; k < stages_; ++k)
    if (it->second.stages[k] == StageState::kOutstanding)
      result[it->second.path[k].session].push_back(
          {id, {it->second.path.begin() + static_cast<std::ptrdiff_t>(k), it->second.path.end()}});
  return result;
}

std::map<Session, std::vector<CommitItem>> CommitBook::outstanding() const {
  std::map<Session, std::vector<CommitItem>> result;
  for (const auto& [serial, logged] : logged_)
    for (auto& [session, items] : commits_for({trainer_, serial}))
      result[session].insert(result[session].end(), items.begin(), items.end());
  return result;
}

std::vector<CommitItem> CommitBook::paths(const std::vector<MicrobatchId>& ids) const {
  std::vector<CommitItem> result;
  for (const MicrobatchId& id : ids)
    if (const auto it = logged_.find(id.serial); it != logged_.end()) result.push_back({id, it->second.path});
  return result;
}

std::optional<CommitBook::Listing> CommitBook::on_ack(const CommitAckItem& item) {
  const auto it = logged_.find(item.microbatch.serial);
  if (item.microbatch.trainer != trainer_ || it == logged_.end()) return std::nullopt;
  const auto token = std::find(it->second.path.begin(), it->second.path.end(), item.token);
  if (token == it->second.path.end()) return std::nullopt;
  const auto stage = static_cast<std::size_t>(token - it->second.path.begin());
  const StageState state = it->second.stages[stage];
  if (state == StageState::kMerged || state == StageState::kListed) return std::nullopt;
  switch (item.state) {
    case CommitState::kCommitted: it->second.stages[stage] = StageState::kCommitted; return std::nullopt;
    case CommitState::kMerged:  // only a round's commit marks it; this one comes from the authority's log as well
      it->second.stages[stage] = StageState::kCommitted;
      return std::nullopt;
    case CommitState::kFenced: return std::nullopt;  // the authority's word lists
    case CommitState::kGone:
    case CommitState::kDropped: break;
  }
  const Listing listing{item.microbatch, StageId(static_cast<std::uint16_t>(stage)), item.token,
                        item.state == CommitState::kGone ? "gone" : "dropped"};
  set(item.microbatch.serial, it->second, stage, StageState::kListed, listing.cause);
  raise_low();
  return listing;
}

std::vector<CommitBook::Listing> CommitBook::on_round_commit(
    const RoundCommit& commit, const std::function<void(const MicrobatchId&, StageId, const Token&)>& merged) {
  std::vector<Listing> contradictions;
  for (const Secured& secured : commit.secured)
    for (const std::uint64_t serial : secured.serials) {
      const Token token{secured.session, serial};
      const auto it = by_token_.find(token);
      if (it == by_token_.end()) continue;
      const std::uint64_t microbatch = it->second;
      Logged& logged = logged_.at(microbatch);
      const auto stage = static_cast<std::size_t>(std::find(logged.path.begin(), logged.path.end(), token) - logged.path.begin());
      if (logged.stages[stage] == StageState::kMerged) continue;
      if (logged.stages[stage] == StageState::kListed) {
        contradictions.push_back({{trainer_, microbatch}, StageId(static_cast<std::uint16_t>(stage)), token, "listed, and in a round"});
        continue;
      }
      set(microbatch, logged, stage, StageState::kMerged, "");
      merged({trainer_, microbatch}, StageId(static_cast<std::uint16_t>(stage)), token);
    }
  contradictions_ += contradictions.size();
  raise_low();
  return contradictions;
}

std::vector<CommitBook::Listing> CommitBook::on_session_over(const Session& session, std::string_view cause) {
  over_.insert(session);
  std::vector<Listing> lost;
  for (auto& [serial, logged] : logged_)
    for (std::size_t k = 0; k < stages_; ++k) {
      if (logged.path[k].session != session || !logged.durable) continue;  // not decided yet: durable() lists it
      if (logged.stages[k] == StageState::kMerged || logged.stages[k] == StageState::kListed) continue;
      lost.push_back({{trainer_, serial}, StageId(static_cast<std::uint16_t>(k)), logged.path[k], std::string(cause)});
    }
  for (const Listing& listing : lost)
    set(listing.microbatch.serial, logged_.at(listing.microbatch.serial), listing.stage.value, StageState::kListed, cause);
  raise_low();
  return lost;
}

Bytes CommitBook::done_record() const {
  Out out;
  out.put(kDone);
  out.put(static_cast<std::uint32_t>(done_.size()));
  for (const Done& item : done_) {
    out.put(item.serial);
    out.put(item.stage);
    out.put(static_cast<std::uint8_t>(item.listed));
    out.text(item.cause);
  }
  return frame_log_record(out.view());
}

const CommitBook::Logged* CommitBook::find(const MicrobatchId& id) const {
  const auto it = logged_.find(id.serial);
  return it == logged_.end() ? nullptr : &it->second;
}

std::size_t CommitBook::undecided(const Session& session) const {
  std::size_t count = 0;
  for (const auto& [serial, logged] : logged_)
    for (std::size_t k = 0; k < stages_; ++k)
      count += logged.path[k].session == session && logged.stages[k] <= StageState::kCommitted;
  return count;
}

std::size_t CommitBook::unmerged() const {
  std::size_t count = 0;
  for (const auto& [serial, logged] : logged_)
    for (const StageState state : logged.stages) count += state <= StageState::kCommitted;
  return count;
}

std::string CommitBook::waiting_for() const {
  const auto it = logged_.find(low_);
  if (it == logged_.end()) return "microbatch " + std::to_string(low_) + ", not committed yet";
  for (std::size_t k = 0; k < stages_; ++k)
    if (it->second.stages[k] <= StageState::kCommitted)
      return "stage " + std::to_string(k) + ", session " + short_name(it->second.path[k].session) + " (no committed round names its work yet)";
  return "nobody";
}

void CommitBook::set(std::uint64_t serial, Logged& logged, std::size_t stage, StageState state, std::string_view cause) {
  if (logged.stages[stage] == state) return;
  logged.stages[stage] = state;
  const bool listed = state == StageState::kListed;
  done_.push_back({serial, static_cast<std::uint16_t>(stage), listed, std::string(cause)});
  if (!listed) return;
  ++listed_;
  listings_.push_back({{trainer_, serial}, StageId(static_cast<std::uint16_t>(stage)), logged.path[stage], std::string(cause)});
}

void CommitBook::raise_low() {
  while (true) {
    const auto it = logged_.find(low_);
    if (it == logged_.end() || !it->second.durable) return;
    for (const StageState state : it->second.stages)
      if (state <= StageState::kCommitted) return;
    for (const Token& token : it->second.path) by_token_.erase(token);
    logged_.erase(it);
    ++low_;
  }
}

}  // namespace shoal
