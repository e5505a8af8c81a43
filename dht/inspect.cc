#include "dht/inspect.h"

#include <algorithm>
#include <memory>

#include "common/hex.h"
#include "dht/record.h"

namespace shoal {
namespace {

constexpr std::uint16_t kQuietTold = 5;  // seconds; beats come every second

bool is_serving(const RunReport& report, const PeerRow& row) {
  return state_of(report, row) == MemberStanding::kServing;
}

void summarise(RunReport& report) {
  const StageReport* weakest = nullptr;
  for (StageReport& stage : report.stages) {
    for (const PeerRow& row : stage.peers) {
      if (!is_serving(report, row)) continue;
      ++stage.serving;
      if (row.record && row.record->figures.rate > 0) stage.rate = stage.rate.value_or(0) + row.record->figures.rate;
    }
    const bool weaker = weakest == nullptr || stage.serving < weakest->serving ||
                        (stage.serving == weakest->serving && stage.rate.value_or(0) < weakest->rate.value_or(0));
    if (weaker) weakest = &stage;
  }
  if (weakest != nullptr) report.weakest = weakest->stage;
}

// Holds an inspection while its questions are under way.
struct Inspection {
  PeerDirectory& directory;
  EventLoop& loop;
  InspectOptions options;
  std::function<void(RunReport)> done;
  RunReport report;
  std::size_t open = 0;
  std::vector<MemberRow> members;
  std::vector<PeerRecord> records;  // of peers, verified

  // Each name of the list once: it may have moved from one part to another while we asked.
  void place_members() {
    std::vector<std::pair<std::uint64_t, StageId>> seen;
    for (const MemberRow& peer : members) {
      if (peer.stage.value >= report.stages.size()) continue;
      if (std::find(seen.begin(), seen.end(), std::pair(peer.tag, peer.stage)) != seen.end()) continue;
      seen.emplace_back(peer.tag, peer.stage);
      report.stages[peer.stage.value].peers.push_back(
          {.member = peer, .name = hex_of_word(peer.tag).substr(0, 8), .record = std::nullopt});
    }
  }

  void place_records() {
    std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.peer < b.peer; });
    for (PeerRecord& record : records) {
      StageReport& stage = report.stages[record.stage.value];
      const auto row = std::find_if(stage.peers.begin(), stage.peers.end(),
                                    [&](const PeerRow& one) { return one.member.tag == record.session.peer_tag; });
      if (row != stage.peers.end()) {
        row->record = std::move(record);
      } else if (is_live(record.expires, report.taken)) {
        stage.claims.push_back(std::move(record));
      }
    }
  }

  void finish() {
    report.taken = loop.wall();
    report.falls = directory.falls();
    if (options.counters) report.counters = options.counters();
    place_members();
    place_records();
    if (!report.record)  // stages beyond the last peer were only guessed
      while (!report.stages.empty() && report.stages.back().peers.empty() && report.stages.back().claims.empty())
        report.stages.pop_back();
    summarise(report);
    done(std::move(report));
  }
  void close() {
    if (--open == 0) finish();
  }
};

void ask_members(const std::shared_ptr<Inspection>& inspection) {
  const std::uint16_t stages =
      inspection->report.record ? inspection->report.record->stages : inspection->options.stages_if_unknown;
  const std::uint16_t parts = inspection->report.standing ? inspection->report.standing->parts : 1;
  inspection->report.stages.resize(stages);
  inspection->open = std::size_t{1} + stages + parts - 1;
  for (std::uint16_t part = 1; part < parts; ++part)
    inspection->directory.look_up_standing(
        part, inspection->options.budget, [inspection](const Result<StandingRecord>& found) {
          RunReport& report = inspection->report;
          // Parts of two tellings are not one list.
          report.list_whole = report.list_whole && found.ok() && found->sequence == report.standing->sequence;
          if (found.ok())
            inspection->members.insert(inspection->members.end(), found->peers.begin(), found->peers.end());
          inspection->close();
        });
  for (std::uint16_t k = 0; k < stages; ++k) {
    inspection->report.stages[k].stage = StageId(k);
    inspection->directory.look_up_stage(
        StageId(k), inspection->options.budget, [inspection](const std::vector<PeerRecord>& peers) {
          inspection->records.insert(inspection->records.end(), peers.begin(), peers.end());
          inspection->close();
        });
  }
  inspection->close();
}

}  // namespace

bool RunReport::found() const {
  return record || standing ||
         std::any_of(stages.begin(), stages.end(), [](const StageReport& stage) { return !stage.claims.empty(); });
}

bool RunReport::ended() const { return (record && record->ended) || (standing && standing->state == RunState::kEnded); }

std::optional<Duration> RunReport::silent() const {
  if (ended()) return std::nullopt;
  std::optional<WallTime> newest;
  if (record) newest = record->expires;
  if (standing && (!newest || standing->expires > *newest)) newest = standing->expires;
  if (!newest || !is_late(*newest, taken)) return std::nullopt;
  return taken - (*newest - kRecordTtl);
}

std::string_view name_of(MemberStanding state) {
  constexpr std::string_view kNames[] = {"serving", "joining", "leaving", "silent", "gone", "served", "joined"};
  static_assert(std::size(kNames) == std::size(kMemberStandings));
  return kNames[static_cast<std::size_t>(state)];
}

MemberStanding state_of(const RunReport& report, const PeerRow& row) {
  using enum MemberStanding;
  const MemberRow& member = row.member;
  if (member.place == MemberRow::Place::kGone) return kGone;
  if (report.silent()) {
    if (!row.record || is_late(row.record->expires, report.taken)) return kSilent;
    return row.record->serving ? kServing : kJoining;
  }
  if (member.quiet_s >= kQuietTold) return kSilent;
  if (member.place == MemberRow::Place::kLeaving) return kLeaving;
  if (report.ended()) return member.place == MemberRow::Place::kServing ? kServed : kJoined;
  return member.place == MemberRow::Place::kServing ? kServing : kJoining;
}

// The list says it as of the moment when it was made.
std::uint64_t quiet_seconds(const RunReport& report, const PeerRow& row) {
  if (!report.standing) return row.member.quiet_s;
  const WallTime made = report.standing->expires - kRecordTtl;
  const auto age = std::chrono::floor<std::chrono::seconds>(report.taken - made).count();
  return row.member.quiet_s + static_cast<std::uint64_t>(std::max<std::int64_t>(0, age));
}

double age_of(WallTime expires, WallTime now) { return std::max(0.0, seconds_of(now - (expires - kRecordTtl))); }

bool has_version(const PeerRecord& record) { return record.serving || record.version.value > 0; }

double disk_age(const DiskRecord& disk, WallTime now) { return std::max(0.0, seconds_of(now - disk.saved)); }

const DiskRecord* newest_on_disk(const StageReport& stage) {
  const DiskRecord* newest = nullptr;
  for (const PeerRow& row : stage.peers) {
    if (!row.record || !row.record->on_disk) continue;
    const DiskRecord& one = *row.record->on_disk;
    if (newest == nullptr || std::pair(one.version, one.saved) > std::pair(newest->version, newest->saved))
      newest = &one;
  }
  return newest;
}

void inspect_run(PeerDirectory& directory, EventLoop& loop, InspectOptions options,
                 std::function<void(RunReport)> done) {
  auto inspection =
      std::make_shared<Inspection>(Inspection{directory, loop, std::move(options), std::move(done), {}, 2, {}, {}});
  inspection->report.run = inspection->options.run;
  inspection->report.network = inspection->options.network;
  const auto answered = [inspection] {
    if (--inspection->open == 0) ask_members(inspection);
  };
  directory.look_up_run(inspection->options.budget, [inspection, answered](Result<RunRecord> record) {
    if (record.ok()) inspection->report.record = std::move(*record);
    answered();
  });
  directory.look_up_standing(0, inspection->options.budget, [inspection, answered](Result<StandingRecord> found) {
    if (found.ok()) {
      inspection->members = found->peers;
      inspection->report.list_whole = found->unnamed == 0;
      inspection->report.standing = std::move(*found);
    }
    answered();
  });
}

}  // namespace shoal
