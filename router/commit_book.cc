#include "router/commit_book.h"

#include <algorithm>
#include <variant>

#include "events/lost_causes.h"

namespace shoal {

namespace {

constexpr std::uint64_t kSerialMax = 1ull << 62;   // no run comes near it
constexpr std::uint64_t kReplayGapMax = 1u << 20;  // ids that are skipped at a time; a window is far below it

PathRecord path_of(std::uint64_t serial, const CommitBook::Logged& logged) {
  return {serial, logged.loss_sum, logged.targets, logged.path};
}

}  // namespace

CommitBook::CommitBook(std::uint64_t trainer, std::uint16_t stages, std::uint64_t window)
    : trainer_(trainer), stages_(stages), window_(window), done_(stages) {}

std::optional<MicrobatchId> CommitBook::next() const {
  const std::uint64_t serial = reissue_.empty() ? next_serial_ : *reissue_.begin();
  if (serial >= low_ + window_) return std::nullopt;
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
  for (const EntryName& entry_name : logged.path) by_entry_[entry_name] = id.serial;
  Bytes record = bytes_of(path_of(id.serial, logged));
  open_.erase(id.serial);
  unanswered_.insert(id.serial);
  logged_.emplace(id.serial, std::move(logged));
  return record;
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
    set(id.serial, it->second, k, StageState::kLost, lost.back().cause);
  }
  raise_low();  // its entries may all be lost by now
  return lost;
}

bool CommitBook::names_any(const std::vector<EntryName>& path) const {
  return std::any_of(path.begin(), path.end(),
                     [this](const EntryName& entry_name) { return by_entry_.contains(entry_name); });
}

std::optional<std::string> CommitBook::unfit_for_round(StageId stage, const Session& session,
                                                       const std::vector<std::uint64_t>& serials) const {
  for (const std::uint64_t serial : serials) {
    const std::string name = "entry " + std::to_string(serial);
    const auto it = by_entry_.find({session, serial});
    if (it == by_entry_.end())
      return name + ", which the trainer never committed, or forgot since all of it is decided";
    const Logged& logged = logged_.at(it->second);
    if (!logged.durable || stage.value >= stages_ || logged.path[stage.value] != it->first)
      return name + ", which the trainer never committed";
    if (logged.stages[stage.value] == StageState::kMerged) return name + ", which a committed round contains already";
    if (logged.stages[stage.value] == StageState::kLost) return name + ", which is lost already";
  }
  return std::nullopt;
}

std::map<Session, std::vector<CommitItem>> CommitBook::commits_for(const MicrobatchId& id) const {
  std::map<Session, std::vector<CommitItem>> result;
  const auto it = logged_.find(id.serial);
  if (it == logged_.end() || !it->second.durable) return result;
  for (std::size_t k = 0; k < stages_; ++k)
    if (it->second.stages[k] == StageState::kOutstanding)
      result[it->second.path[k].session].push_back(from_stage(id.serial, it->second, k));
  return result;
}

CommitItem CommitBook::from_stage(std::uint64_t serial, const Logged& logged, std::size_t stage) const {
  return {{trainer_, serial}, {logged.path.begin() + static_cast<std::ptrdiff_t>(stage), logged.path.end()}};
}

std::optional<CommitItem> CommitBook::ask(const MicrobatchId& id, StageId stage, const Session& session) {
  if (id.trainer != trainer_ || stage.value >= stages_) return std::nullopt;
  const auto it = logged_.find(id.serial);
  if (it != logged_.end() && it->second.durable) return from_stage(id.serial, it->second, stage.value);
  if (it == logged_.end() && !open_.contains(id.serial)) return std::nullopt;  // below low, or of a life before ours
  if (auto& askers = askers_[id.serial]; askers.size() < kAskersMax) askers.emplace(session, stage);
  return std::nullopt;
}

std::map<Session, std::vector<CommitItem>> CommitBook::answers(const MicrobatchId& id) {
  std::map<Session, std::vector<CommitItem>> result;
  const auto askers = askers_.extract(id.serial);
  if (askers.empty()) return result;
  for (const auto& [session, stage] : askers.mapped())
    if (auto item = ask(id, stage, session)) result[session].push_back(*std::move(item));
  return result;
}

std::map<Session, std::vector<CommitItem>> CommitBook::outstanding() const {
  std::map<Session, std::vector<CommitItem>> result;
  for (auto it = unanswered_.begin(); it != unanswered_.end();) {
    const auto logged = logged_.find(*it);
    const bool waits = logged != logged_.end() && std::count(logged->second.stages.begin(), logged->second.stages.end(),
                                                             StageState::kOutstanding) > 0;
    if (waits)
      for (auto& [session, items] : commits_for({trainer_, *it}))
        result[session].insert(result[session].end(), items.begin(), items.end());
    it = waits ? std::next(it) : unanswered_.erase(it);
  }
  return result;
}

std::vector<CommitItem> CommitBook::paths(const std::vector<MicrobatchId>& ids) const {
  std::vector<CommitItem> result;
  for (const MicrobatchId& id : ids)
    if (const auto it = logged_.find(id.serial); it != logged_.end()) result.push_back({id, it->second.path});
  return result;
}

std::optional<CommitBook::Listing> CommitBook::on_ack(const CommitAckItem& item, const Session& from) {
  const auto it = logged_.find(item.microbatch.serial);
  if (item.microbatch.trainer != trainer_ || it == logged_.end() || item.entry_name.session != from)
    return std::nullopt;
  const auto entry_name = std::find(it->second.path.begin(), it->second.path.end(), item.entry_name);
  if (entry_name == it->second.path.end()) return std::nullopt;
  const auto stage = static_cast<std::size_t>(entry_name - it->second.path.begin());
  const StageState state = it->second.stages[stage];
  if (state == StageState::kMerged || state == StageState::kLost) return std::nullopt;
  switch (item.state) {
    case CommitState::kCommitted:
      it->second.stages[stage] = StageState::kCommitted;
      return std::nullopt;
    case CommitState::kMerged:  // only a round's commit marks it; this one comes from the authority's log as well
      it->second.stages[stage] = StageState::kCommitted;
      return std::nullopt;
    case CommitState::kGone:
    case CommitState::kDropped:
      break;
  }
  const Listing listing{item.microbatch, StageId(static_cast<std::uint16_t>(stage)), item.entry_name,
                        std::string(item.state == CommitState::kDropped ? kLostLate : "gone")};
  set(item.microbatch.serial, it->second, stage, StageState::kLost, listing.cause);
  raise_low();
  return listing;
}

std::optional<StageId> CommitBook::acknowledged(const CommitAckItem& item) const {
  const Logged* logged = find(item.microbatch);
  if (logged == nullptr) return std::nullopt;
  for (std::size_t k = 0; k < stages_; ++k)
    if (logged->path[k] == item.entry_name && logged->stages[k] == StageState::kCommitted)
      return StageId(static_cast<std::uint16_t>(k));
  return std::nullopt;
}

std::vector<CommitBook::Listing> CommitBook::on_round_commit(
    const RoundCommit& commit, const std::function<void(const MicrobatchId&, StageId, const EntryName&)>& merged) {
  std::vector<Listing> contradictions;
  for (const Secured& secured : commit.secured)
    for (const std::uint64_t serial : secured.serials) {
      const EntryName entry_name{secured.session, serial};
      const auto it = by_entry_.find(entry_name);
      if (it == by_entry_.end()) continue;
      const std::uint64_t microbatch = it->second;
      Logged& logged = logged_.at(microbatch);
      const auto stage =
          static_cast<std::size_t>(std::find(logged.path.begin(), logged.path.end(), entry_name) - logged.path.begin());
      if (logged.stages[stage] == StageState::kMerged) continue;
      if (logged.stages[stage] == StageState::kLost) {
        contradictions.push_back(*lost_.find(entry_name));
        continue;
      }
      set(microbatch, logged, stage, StageState::kMerged, "");
      merged({trainer_, microbatch}, StageId(static_cast<std::uint16_t>(stage)), entry_name);
    }
  contradictions_ += contradictions.size();
  done_.hear(commit.stage, commit.version);
  raise_low();
  return contradictions;
}

std::vector<CommitBook::Listing> CommitBook::on_session_over(const Session& session, std::string_view cause) {
  over_.insert(session);
  std::vector<Listing> lost;
  for (auto& [serial, logged] : logged_)
    for (std::size_t k = 0; k < stages_; ++k) {
      if (logged.path[k].session != session || !logged.durable) continue;  // not decided yet: durable() lists it
      if (logged.stages[k] == StageState::kMerged || logged.stages[k] == StageState::kLost) continue;
      lost.push_back({{trainer_, serial}, StageId(static_cast<std::uint16_t>(k)), logged.path[k], std::string(cause)});
    }
  for (const Listing& listing : lost)
    set(listing.microbatch.serial, logged_.at(listing.microbatch.serial), listing.stage.value, StageState::kLost,
        cause);
  raise_low();
  return lost;
}

std::vector<CommitBook::Listing> CommitBook::list_rest(std::string_view cause) {
  std::set<Session> sessions;
  for (const auto& [serial, logged] : logged_)
    for (const EntryName& entry_name : logged.path) sessions.insert(entry_name.session);
  std::vector<Listing> rest;
  for (const Session& session : sessions)
    for (Listing& listing : on_session_over(session, cause)) rest.push_back(std::move(listing));
  return rest;
}

void CommitBook::done_durable() {
  done_.durable();
  raise_low();
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

std::vector<Session> CommitBook::holding_up() const {
  std::vector<Session> sessions;
  if (const auto it = logged_.find(low_); it != logged_.end())
    for (std::size_t k = 0; k < stages_; ++k)
      if (it->second.stages[k] <= StageState::kCommitted) sessions.push_back(it->second.path[k].session);
  return sessions;
}

std::string CommitBook::waiting_for() const {
  const auto it = logged_.find(low_);
  if (it == logged_.end()) return "microbatch " + std::to_string(low_) + ", not committed yet";
  for (std::size_t k = 0; k < stages_; ++k)
    if (it->second.stages[k] <= StageState::kCommitted)
      return "stage " + std::to_string(k) + ", session " + short_name(it->second.path[k].session) +
             " (no committed round names its work yet)";
  return "nobody";
}

void CommitBook::set(std::uint64_t serial, Logged& logged, std::size_t stage, StageState state,
                     std::string_view cause) {
  if (logged.stages[stage] == state) return;
  logged.stages[stage] = state;
  const bool lost = state == StageState::kLost;
  const std::string kept(cause.substr(0, LostBook::kCauseMax));
  done_.add({serial, static_cast<std::uint16_t>(stage), lost, kept});
  if (lost) lost_.add({{trainer_, serial}, StageId(static_cast<std::uint16_t>(stage)), logged.path[stage], kept});
}

void CommitBook::raise_low() {
  while (true) {
    const auto it = logged_.find(low_);
    if (it == logged_.end() || !it->second.durable || done_.holds(low_)) return;
    for (const StageState state : it->second.stages)
      if (state <= StageState::kCommitted) return;
    for (const EntryName& entry_name : it->second.path) {
      by_entry_.erase(entry_name);
      lost_.pass(entry_name);
    }
    targets_below_ += it->second.targets;
    logged_.erase(it);
    ++low_;
  }
}

// ---- the log ----
std::vector<DoneItem> CommitBook::decided() const {
  std::vector<DoneItem> items;
  for (const auto& [serial, logged] : logged_)
    for (std::uint16_t k = 0; k < stages_; ++k) {
      if (logged.stages[k] < StageState::kMerged) continue;
      const Listing* const listing = lost_.find(logged.path[k]);
      items.push_back({serial, k, logged.stages[k] == StageState::kLost, listing == nullptr ? "" : listing->cause});
    }
  return items;
}

std::vector<Bytes> CommitBook::compacted() const {
  SHOAL_CHECK(!ended_ && lost_.left_at_end().empty());
  const std::vector<Version>& heard = done_.heard();
  std::vector<Bytes> records;
  records.push_back(header_record());
  if (life_) records.push_back(bytes_of(*life_));
  records.push_back(bytes_of(BaseRecord{low_, targets_below_, heard, lost_.below()}));
  for (const auto& [serial, logged] : logged_) records.push_back(bytes_of(path_of(serial, logged)));
  const std::vector<DoneItem> items = decided();
  for (auto at = items.begin(); at != items.end();) {
    const auto end = at + std::min<std::ptrdiff_t>(items.end() - at, kDoneItemsMax);
    records.push_back(bytes_of(DoneRecord{{at, end}, heard, end == items.end()}));
    at = end;
  }
  return records;
}

Status CommitBook::replay(ByteView bytes) {
  SHOAL_ASSIGN(const TrainerRecord record, parse_trainer_record(bytes, stages_));
  if (!header_seen_ && !std::holds_alternative<HeaderRecord>(record) && !std::holds_alternative<EndRecord>(record))
    return make_error(ErrorCode::kCorrupt, "the trainer's log does not begin with its header");
  return std::visit([this](const auto& r) { return apply(r); }, record);
}

Status CommitBook::apply(const HeaderRecord& record) {
  if (record.trainer != trainer_ || record.stages != stages_)
    return make_error(ErrorCode::kForeign,
                      "the log belongs to another run: it was begun with another run.key, or another number of "
                      "stages. HINT: put back the run.key that was made with it");
  header_seen_ = true;
  return {};
}

Status CommitBook::apply(const LifeRecord& record) {
  life_ = record;
  return {};
}

Status CommitBook::apply(const PathRecord& record) {
  const std::uint64_t serial = record.serial;
  const std::uint64_t skipped = serial > next_serial_ ? serial - next_serial_ : 0;
  if (skipped > kReplayGapMax || reissue_.size() + skipped > kReplayGapMax) return bad_trainer_record();
  if (serial < low_ || logged_.contains(serial))
    return make_error(ErrorCode::kCorrupt, "microbatch " + std::to_string(serial) + " is logged twice");
  ++committed_;
  committed_targets_ += record.targets;
  for (const EntryName& entry_name : record.path) by_entry_[entry_name] = serial;
  for (; next_serial_ <= serial; ++next_serial_) reissue_.insert(next_serial_);
  reissue_.erase(serial);
  Logged& logged = logged_[serial];
  logged.path = record.path;
  logged.stages.assign(stages_, StageState::kOutstanding);
  logged.loss_sum = record.loss_sum;
  logged.targets = record.targets;
  logged.durable = true;
  unanswered_.insert(serial);
  return {};
}

Status CommitBook::apply(const BaseRecord& record) {
  // It stands for the records before it, so there are none.
  if (next_serial_ != 0 || low_ != 0 || record.low > kSerialMax) return bad_trainer_record();
  low_ = next_serial_ = committed_ = record.low;
  committed_targets_ = targets_below_ = record.targets;
  lost_.restore(record.lost);
  done_.replayed(record.heard, true);
  return {};
}

Status CommitBook::apply(const DoneRecord& record) {
  for (const DoneItem& item : record.items)
    if (const auto it = logged_.find(item.serial); it != logged_.end() && item.stage < stages_)
      set(item.serial, it->second, item.stage, item.lost ? StageState::kLost : StageState::kMerged, item.cause);
  done_.replayed(record.heard, record.all);
  raise_low();
  return {};
}

Status CommitBook::apply(const EndRecord&) {
  ended_ = true;
  return {};
}

}  // namespace shoal
