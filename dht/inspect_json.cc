// What an inspection found, for programs.
#include <nlohmann/json.hpp>

#include "common/hex.h"
#include "dht/inspect.h"
#include "dht/record.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

Json json_of_disk(const RunReport& report, const DiskRecord* disk) {
  if (disk == nullptr) return nullptr;
  return {{"version", disk->version.value}, {"age_s", disk_age(*disk, report.taken)}};
}

Json seconds_json(const std::optional<WallTime>& time) {
  return time ? Json(std::chrono::floor<std::chrono::seconds>(time->time_since_epoch()).count()) : Json(nullptr);
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class Snapshot>
void add_figures(Json& json, std::span<const Figure<Snapshot>> rows, const Snapshot& figures) {
  for (const Figure<Snapshot>& row : rows) {
    if (row.places.inspect == nullptr) continue;
    const bool known = row.known_at_zero || row.is_told(figures);
    json[row.places.inspect] = known ? figure_json<Json>(row.of(figures)) : Json(nullptr);
  }
}

Json json_of_record(const RunReport& report, const PeerRecord& peer) {
  Json json = {{"peer", hex_of(peer.peer)},
               {"incarnation", hex_of_word(peer.session.incarnation)},  // a text: many readers of JSON keep 53 bits
               {"addresses", peer.whereabouts.addresses},
               {"version", has_version(peer) ? Json(peer.version.value) : Json(nullptr)},
               {"serving", peer.serving},
               {"checkpoint", json_of_disk(report, peer.on_disk ? &*peer.on_disk : nullptr)},
               {"sequence", peer.sequence},
               {"expires", seconds_json(peer.expires)},
               {"age_s", age_of(peer.expires, report.taken)},
               {"signature", "ok"}};
  add_figures(json, peer_figures(), peer.figures);
  return json;
}

Json json_of_standing(const RunReport& report) {
  const StandingRecord& standing = *report.standing;
  Json json = {{"state", name_of(standing.state)},
               {"since", seconds_json(standing.since)},
               {"stage", standing.stage ? Json(standing.stage->value) : Json(nullptr)},
               {"stranded", standing.stranded},
               {"last_members", standing.last},
               {"list_whole", report.list_whole},
               {"sequence", standing.sequence},
               {"age_s", age_of(standing.expires, report.taken)},
               {"signature", "ok"}};
  add_figures(json, launch_figures(), standing.figures);
  return json;
}

Json json_of_stage(const RunReport& report, const StageReport& stage) {
  Json json = {{"stage", stage.stage.value},
               {"key", stage_key(report.run, stage.stage)},
               {"serving", stage.serving},
               {"rate", or_null(stage.rate)},
               {"checkpoint", json_of_disk(report, newest_on_disk(stage))},
               {"peers", Json::array()},
               {"claims", Json::array()}};
  for (const PeerRow& row : stage.peers) {
    const MemberStanding state = state_of(report, row);
    const bool gone = state == MemberStanding::kGone;
    const Json seconds = quiet_seconds(report, row);
    json["peers"].push_back({{"name", row.name},
                             {"state", name_of(state)},
                             {"quiet_s", gone ? Json(nullptr) : seconds},
                             {"gone_s", gone ? seconds : Json(nullptr)},
                             {"record", row.record ? json_of_record(report, *row.record) : Json(nullptr)}});
  }
  for (const PeerRecord& claim : stage.claims) json["claims"].push_back(json_of_record(report, claim));
  return json;
}

}  // namespace

std::string json_of(const RunReport& report, JsonLines lines) {
  Json json = {{"schema", "shoal.inspect/3"},
               {"run", hex_of(report.run)},
               {"network", report.network > 0 ? Json(report.network) : Json(nullptr)},
               {"key", run_key_name(report.run)},
               {"ended", report.ended()},
               {"silent_s", report.silent() ? Json(seconds_of(*report.silent())) : Json(nullptr)},
               {"record", nullptr},
               {"standing", report.standing ? json_of_standing(report) : Json(nullptr)},
               {"stages", Json::array()}};
  if (report.record) {
    const RunRecord& record = *report.record;
    json["record"] = {{"name", record.name},
                      {"stages", record.stages},
                      {"manifest", hex_of(record.manifest)},
                      {"addresses", record.whereabouts.addresses},
                      {"sequence", record.sequence},
                      {"expires", seconds_json(record.expires)},
                      {"age_s", age_of(record.expires, report.taken)},
                      {"live", is_live(record.expires, report.taken)},
                      {"late", is_late(record.expires, report.taken)},
                      {"signature", "ok"},
                      {"ended", or_null(record.ended)}};
  }
  for (const StageReport& stage : report.stages) json["stages"].push_back(json_of_stage(report, stage));
  json["weakest_stage"] = report.weakest ? Json(report.weakest->value) : Json(nullptr);
  json["dht_falls"] = report.falls;
  const RecordCounters& counters = report.counters;
  json["refused"] = {{"malformed", counters.malformed},
                     {"too_large", counters.too_large},
                     {"corrupt", counters.corrupt},
                     {"foreign", counters.foreign},
                     {"stale", counters.stale}};
  return json.dump(lines == JsonLines::kOne ? -1 : 2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shoal
