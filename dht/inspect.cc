#include "dht/inspect.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/hex.h"
#include "common/log.h"
#include "dht/record.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

double age_of(WallTime expires, WallTime now) { return seconds_of(now - (expires - kRecordTtl)); }

// What the launching process last told of a stage; none: not told, or it is silent itself.
std::optional<std::size_t> told_serving(const RunReport& report, StageId stage) {
  if (!report.record || is_late(report.record->expires, report.taken)) return std::nullopt;
  if (stage.value >= report.record->serving.size()) return std::nullopt;
  return report.record->serving[stage.value];
}

// Of a dead process its record tells for a minute that it serves: so the record's age and the launching process decide.
const char* state_of(const RunReport& report, const PeerRecord& record) {
  if (!is_live(record.expires, report.taken)) return "expired";
  if (is_late(record.expires, report.taken)) return "silent";
  if (!record.serving) return "joining";
  return told_serving(report, record.stage) == 0u ? "silent" : "serving";
}
bool is_serving(const RunReport& report, const PeerRecord& record) {
  return std::string_view(state_of(report, record)) == "serving";
}

std::string one_of(const std::vector<std::string>& addresses) { return addresses.empty() ? "-" : addresses.front(); }

void summarise(RunReport& report) {
  const StageReport* weakest = nullptr;
  for (StageReport& stage : report.stages) {
    for (const PeerRecord& peer : stage.peers) {
      if (!is_serving(report, peer)) continue;
      ++stage.serving;
      stage.rate += peer.rate;
    }
    // 9 stands for 9 and more.
    if (const auto told = told_serving(report, stage.stage); told && *told < 9) stage.serving = *told;
    const bool weaker = weakest == nullptr || stage.serving < weakest->serving ||
                        (stage.serving == weakest->serving && stage.rate < weakest->rate);
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

  void finish() {
    report.taken = loop.wall();
    if (options.counters) report.counters = options.counters();
    if (!report.record) {  // stages beyond the last peer were only guessed
      while (!report.stages.empty() && report.stages.back().peers.empty()) report.stages.pop_back();
    }
    summarise(report);
    done(std::move(report));
  }
};

void ask_stages(const std::shared_ptr<Inspection>& inspection) {
  const std::uint16_t stages =
      inspection->report.record ? inspection->report.record->stages : inspection->options.stages_if_unknown;
  inspection->open = stages;
  inspection->report.stages.resize(stages);
  if (stages == 0) return inspection->finish();
  for (std::uint16_t k = 0; k < stages; ++k) {
    inspection->report.stages[k].stage = StageId(k);
    inspection->directory.look_up_stage(
        StageId(k), inspection->options.budget, [inspection, k](std::vector<PeerRecord> peers) {
          std::sort(peers.begin(), peers.end(),
                    [](const PeerRecord& a, const PeerRecord& b) { return a.peer < b.peer; });
          inspection->report.stages[k].peers = std::move(peers);
          if (--inspection->open == 0) inspection->finish();
        });
  }
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, pattern, values...);
  return line;
}

std::string peer_line(const RunReport& report, const PeerRecord& peer) {
  return format("%-9s %-5s %-28s %-8s %8.0f %7.2f s %8s %5.0f s  ok\n", short_name(peer.peer).c_str(),
                std::to_string(peer.stage.value).c_str(), printable(one_of(peer.addresses), 64).c_str(),
                state_of(report, peer), peer.rate, peer.queue_seconds,
                ("v" + std::to_string(peer.version.value)).c_str(), std::max(0.0, age_of(peer.expires, report.taken)));
}

std::string since_text(const RunReport& report) {
  if (!report.record || !report.record->parked_since) return "";
  return format(" since %.0f s", std::max(0.0, seconds_of(report.taken - *report.record->parked_since)));
}

std::string serving_names(const RunReport& report, std::size_t stage) {
  std::string names;
  if (stage < report.stages.size())
    for (const PeerRecord& peer : report.stages[stage].peers)
      if (is_serving(report, peer)) names += (names.empty() ? "" : ", ") + short_name(peer.peer);
  return names;
}

// All that serve there are stranded, so that names of both stages are names of both sides.
std::string stranded_line(const RunReport& report) {
  const std::size_t stage = report.record->stranded->value;
  return "health: stage " + std::to_string(stage) + " (" + serving_names(report, stage) + ") cannot reach stage " +
         std::to_string(stage + 1) + " (" + serving_names(report, stage + 1) + ")" + since_text(report) +
         ": the run is parked\n";
}

std::string health_line(const RunReport& report) {
  if (report.record && report.record->ended)
    return "health: the run has ended: " + printable(*report.record->ended, 256) + "\n";
  if (!report.weakest) return "health: nothing is known of this run\n";
  if (report.record && is_late(report.record->expires, report.taken))
    return format("health: the launching process has been silent for %.0f s: nothing is decided until it is back\n",
                  age_of(report.record->expires, report.taken));
  const auto stage = std::find_if(report.stages.begin(), report.stages.end(),
                                  [&](const StageReport& s) { return s.stage == *report.weakest; });
  const std::string name = std::to_string(report.weakest->value);
  if (stage->serving == 0)
    return "health: stage " + name + " has no serving peer" + since_text(report) + ": the run is parked\n";
  if (report.record && report.record->stranded) return stranded_line(report);
  if (stage->serving == 1) return "health: weakest stage " + name + ": 1 serving peer, losing it parks the run\n";
  return "health: ok (weakest stage " + name + ": " + std::to_string(stage->serving) + " serving peers)\n";
}

Json json_of_peer(const RunReport& report, const PeerRecord& peer) {
  Json json;
  json["peer"] = hex_of(peer.peer);
  json["incarnation"] = hex_of_word(peer.session.incarnation);  // a text: many readers of JSON keep 53 bits
  json["stage"] = peer.stage.value;
  json["addresses"] = peer.addresses;
  json["rate"] = peer.rate;
  json["queue_s"] = peer.queue_seconds;
  json["version"] = peer.version.value;
  json["serving"] = peer.serving;
  json["state"] = state_of(report, peer);
  json["sequence"] = peer.sequence;
  json["expires"] = std::chrono::floor<std::chrono::seconds>(peer.expires.time_since_epoch()).count();
  json["age_s"] = age_of(peer.expires, report.taken);
  json["signature"] = "ok";
  return json;
}

}  // namespace

void inspect_run(PeerDirectory& directory, EventLoop& loop, InspectOptions options,
                 std::function<void(RunReport)> done) {
  auto inspection =
      std::make_shared<Inspection>(Inspection{directory, loop, std::move(options), std::move(done), {}, 0});
  inspection->report.run = inspection->options.run;
  inspection->report.network = inspection->options.network;
  directory.look_up_run(inspection->options.budget, [inspection](Result<RunRecord> record) {
    if (record.ok()) inspection->report.record = std::move(*record);
    ask_stages(inspection);
  });
}

std::string table_of(const RunReport& report) {
  std::string out = "run " + short_name(report.run);
  if (report.record) {
    out += "  " + printable(report.record->name, 256) + "  " + std::to_string(report.record->stages) +
           " stages  authority " + printable(one_of(report.record->addresses), 128);
    out += is_live(report.record->expires, report.taken) ? "  sig ok" : "  sig ok, record expired";
  } else {
    out += "  no run record";
  }
  if (report.network != 0) out += "  DHT network " + std::to_string(report.network);
  out += "\nkey " + stage_key(report.run, StageId(0)) + " and so on; a DHT tool reads the same records: g KEY\n";
  out += format("%-9s %-5s %-28s %-8s %8s %9s %8s %7s  %s\n", "PEER", "STAGE", "ADDRESS", "STATE", "TOK/S", "QUEUE",
                "WEIGHTS", "AGE", "SIG");
  for (const StageReport& stage : report.stages) {
    for (const PeerRecord& peer : stage.peers) out += peer_line(report, peer);
    if (stage.peers.empty()) out += format("%-9s %-5u nobody\n", "-", static_cast<unsigned>(stage.stage.value));
  }
  out += health_line(report);
  if (report.counters.refused() != 0)
    out +=
        "refused: " + std::to_string(report.counters.refused()) + " records that did not pass (signature, form, age)\n";
  return out;
}

std::string json_of(const RunReport& report) {
  Json json;
  json["schema"] = "shoal.inspect/1";
  json["run"] = hex_of(report.run);
  json["network"] = report.network;
  json["key"] = run_key_name(report.run);
  json["record"] = nullptr;
  if (report.record) {
    const RunRecord& record = *report.record;
    json["record"] = {{"name", record.name},
                      {"stages", record.stages},
                      {"manifest", hex_of(record.manifest)},
                      {"addresses", record.addresses},
                      {"sequence", record.sequence},
                      {"expires", std::chrono::floor<std::chrono::seconds>(record.expires.time_since_epoch()).count()},
                      {"age_s", age_of(record.expires, report.taken)},
                      {"live", is_live(record.expires, report.taken)},
                      {"late", is_late(record.expires, report.taken)},
                      {"signature", "ok"},
                      {"ended", record.ended ? Json(*record.ended) : Json(nullptr)},
                      {"parked_since", nullptr},
                      {"stranded_stage", record.stranded ? Json(record.stranded->value) : Json(nullptr)}};
    if (record.parked_since)
      json["record"]["parked_since"] =
          std::chrono::floor<std::chrono::seconds>(record.parked_since->time_since_epoch()).count();
  }
  json["stages"] = Json::array();
  for (const StageReport& stage : report.stages) {
    Json entry;
    entry["stage"] = stage.stage.value;
    entry["key"] = stage_key(report.run, stage.stage);
    entry["serving"] = stage.serving;
    entry["rate"] = stage.rate;
    entry["peers"] = Json::array();
    for (const PeerRecord& peer : stage.peers) entry["peers"].push_back(json_of_peer(report, peer));
    json["stages"].push_back(std::move(entry));
  }
  json["weakest_stage"] = report.weakest ? Json(report.weakest->value) : Json(nullptr);
  const RecordCounters& counters = report.counters;
  json["refused"] = {{"malformed", counters.malformed},
                     {"too_large", counters.too_large},
                     {"corrupt", counters.corrupt},
                     {"foreign", counters.foreign},
                     {"stale", counters.stale}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shoal
