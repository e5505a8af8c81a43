#include "dht/record_table.h"

#include <algorithm>

#include "transport/limits.h"

namespace shoal {
namespace {

const PeerRecord& peer_of(const AnyRecord& record) { return std::get<PeerRecord>(record); }

constexpr std::size_t kClocksNoted = 16;

bool newer(const PeerRecord& a, const PeerRecord& b) {
  return a.expires != b.expires ? a.expires > b.expires : a.peer < b.peer;
}

}  // namespace

Result<bool> RecordTable::offer(const std::string& text, WallTime now) { return take(text, now, kClockSkewMax); }

Result<bool> RecordTable::restore(const std::string& text, WallTime now) { return take(text, now, kRememberedFor); }

void RecordTable::count(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTooLarge:
      ++counters_.too_large;
      break;
    case ErrorCode::kCorrupt:
      ++counters_.corrupt;
      break;
    case ErrorCode::kForeign:
      ++counters_.foreign;
      break;
    case ErrorCode::kStale:
      ++counters_.stale;
      break;
    default:
      ++counters_.malformed;
      break;
  }
}

void RecordTable::note_clock(const AnyRecord& record, WallTime now) {
  const PeerId signer = signer_of(record);
  const Duration ahead = std::chrono::duration_cast<Duration>(expires_of(record) - kRecordTtl - now);
  // A peer that is gone leaves a last record, as long as nodes keep it, which says nothing of clocks where others do.
  const Duration kept = kRecordTtl + kClockSkewMax + (counters_.accepted > 0 ? kRecordTtl : Duration(0));
  const bool near = ahead <= kClockSkewMax && ahead > -kept;
  if (near) {
    apart_.erase(signer);
  } else if (apart_.size() < kClocksNoted || apart_.contains(signer)) {
    apart_[signer] = ahead;
  }
}

std::string RecordTable::clocks_apart() const {
  if (apart_.empty()) return "";
  const auto [signer, gap] = *std::min_element(apart_.begin(), apart_.end(), [](const auto& a, const auto& b) {
    return std::chrono::abs(a.second) < std::chrono::abs(b.second);
  });
  const bool ahead = gap > Duration(0);
  const auto alike = std::count_if(apart_.begin(), apart_.end(),
                                   [ahead](const auto& one) { return (one.second > Duration(0)) == ahead; });
  const std::string seconds = std::to_string(std::chrono::round<std::chrono::seconds>(std::chrono::abs(gap)).count());
  return (alike == 1 ? "the clock of " + short_name(signer) + " is "
                     : "the clocks of " + std::to_string(alike) + " others are ") +
         seconds + (alike == 1 ? " s " : " s or more ") + (ahead ? "ahead of" : "behind") + " this machine's";
}

Result<bool> RecordTable::take(const std::string& text, WallTime now, Duration age_max) {
  const auto result = [&]() -> Result<bool> {
    if (text.size() > kRecordBytesMax) return make_error(ErrorCode::kTooLarge, "record: over 512 bytes");
    if (texts_.contains(text)) return false;
    Result<AnyRecord> parsed = parse_any_record(text);
    if (!parsed.ok()) return parsed.error();
    const RunId& run = std::visit([](const auto& r) -> const RunId& { return r.run; }, *parsed);
    if (run != run_) return make_error(ErrorCode::kForeign, "record: of run " + short_name(run));
    const WallTime expires = expires_of(*parsed);
    if (age_max == kClockSkewMax) note_clock(*parsed, now);  // what a disk held may be of long ago
    if (now >= expires + age_max) return make_error(ErrorCode::kStale, "record: expired");
    if (is_from_future(expires, now))
      return make_error(ErrorCode::kStale, "record: made by a clock that is ahead of ours");
    if (std::holds_alternative<RunRecord>(*parsed)) {
      if (run_record_) return place(*run_record_, std::move(*parsed), text);
      run_record_ = hold(std::move(*parsed), text);
      return true;
    }
    if (const auto* standing = std::get_if<StandingRecord>(&*parsed)) {
      const std::uint16_t part = standing->part;
      if (const auto known = standing_.find(part); known != standing_.end())
        return place(known->second, std::move(*parsed), text);
      standing_.emplace(part, hold(std::move(*parsed), text));
      return true;
    }
    const PeerId peer = peer_of(*parsed).peer;
    if (const auto known = peers_.find(peer); known != peers_.end())
      return place(known->second, std::move(*parsed), text);
    make_room(peer_of(*parsed).stage, now);
    peers_.emplace(peer, hold(std::move(*parsed), text));
    return true;
  }();
  if (!result.ok()) {
    count(result.code());
  } else {
    ++(*result ? counters_.accepted : counters_.unchanged);
  }
  return result;
}

Result<bool> RecordTable::place(Held& held, AnyRecord record, const std::string& text) {
  if (sequence_of(record) <= sequence_of(held.record))
    return make_error(ErrorCode::kStale, "record: sequence " + std::to_string(sequence_of(record)) + " when " +
                                             std::to_string(sequence_of(held.record)) + " is held");
  texts_.erase(held.text);
  held = hold(std::move(record), text);
  return true;
}

RecordTable::Held RecordTable::hold(AnyRecord record, const std::string& text) {
  texts_.insert(text);
  return {std::move(record), text};
}

void RecordTable::drop(std::map<PeerId, Held>::iterator peer) {
  texts_.erase(peer->second.text);
  peers_.erase(peer);
}

void RecordTable::make_room(StageId stage, WallTime now) {
  std::vector<std::map<PeerId, Held>::iterator> rivals;
  const bool table_full = peers_.size() >= kTableRecordsMax;
  for (auto it = peers_.begin(); it != peers_.end(); ++it)
    if (table_full || peer_of(it->second.record).stage == stage) rivals.push_back(it);
  if (!table_full && rivals.size() < limits::kReplicasMax) return;
  const auto oldest = *std::min_element(rivals.begin(), rivals.end(), [](auto a, auto b) {
    return expires_of(a->second.record) < expires_of(b->second.record);
  });
  if (!is_live(expires_of(oldest->second.record), now)) {
    return drop(oldest);
  }
  const auto first_member = std::partition(rivals.begin(), rivals.end(),
                                           [this](auto rival) { return !is_member(peer_of(rival->second.record)); });
  const auto strangers = static_cast<std::size_t>(first_member - rivals.begin());
  drop(rivals[rng_.below(strangers > 0 ? strangers : rivals.size())]);
}

bool RecordTable::is_member(const PeerRecord& record) const {
  for (const auto& [part, held] : standing_)
    for (const MemberRow& peer : std::get<StandingRecord>(held.record).peers)
      if (peer.tag == record.session.peer_tag && peer.stage == record.stage) return true;
  return false;
}

std::vector<PeerRecord> RecordTable::stage(StageId stage, WallTime now) const {
  std::vector<PeerRecord> out;
  for (const auto& [id, held] : peers_) {
    const PeerRecord& record = peer_of(held.record);
    if (record.stage == stage && is_live(record.expires, now)) out.push_back(record);
  }
  return out;
}

std::vector<PeerRecord> RecordTable::remembered_stage(StageId stage, WallTime now) const {
  std::vector<PeerRecord> out;
  for (const auto& [id, held] : peers_) {
    const PeerRecord& record = peer_of(held.record);
    if (record.stage == stage && now < record.expires + kRememberedFor) out.push_back(record);
  }
  std::sort(out.begin(), out.end(), newer);
  return out;
}

std::optional<RunRecord> RecordTable::run_record(WallTime now) const {
  if (!run_record_ || now >= expires_of(run_record_->record) + kRememberedFor) return std::nullopt;
  return std::get<RunRecord>(run_record_->record);
}

std::optional<StandingRecord> RecordTable::standing(std::uint16_t part, WallTime now) const {
  const auto held = standing_.find(part);
  if (held == standing_.end() || now >= expires_of(held->second.record) + kRememberedFor) return std::nullopt;
  return std::get<StandingRecord>(held->second.record);
}

std::vector<std::string> RecordTable::texts(std::size_t limit, WallTime now, Duration age_max) const {
  std::vector<const Held*> found;
  for (const auto& [id, held] : peers_)
    if (now < expires_of(held.record) + age_max) found.push_back(&held);
  std::sort(found.begin(), found.end(),
            [](const Held* a, const Held* b) { return newer(peer_of(a->record), peer_of(b->record)); });
  if (run_record_ && now < expires_of(run_record_->record) + age_max) found.insert(found.begin(), &*run_record_);
  if (found.size() > limit) found.resize(limit);
  std::vector<std::string> out;
  for (const Held* held : found) out.push_back(held->text);
  return out;
}

std::vector<std::string> RecordTable::live_texts(std::size_t limit, WallTime now) const {
  return texts(limit, now, kClockSkewMax);
}
std::vector<std::string> RecordTable::remembered_texts(std::size_t limit, WallTime now) const {
  return texts(limit, now, kRememberedFor);
}

}  // namespace shoal
