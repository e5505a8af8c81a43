// What an inspection found, for people.
#include <algorithm>
#include <cstdio>
#include <set>

#include "common/log.h"
#include "dht/inspect.h"
#include "dht/record.h"

namespace shoal {
namespace {

constexpr std::size_t kClaimsShown = 5;
constexpr std::string_view kNotKnown = "-";

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char line[256];
  std::snprintf(line, sizeof line, pattern, values...);
  return line;
}

// Three significant digits in at most five characters: "0", "512", "1.31M", "25.1k".
std::string figure(double value) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return format("%.0f", std::min(value, 999.0));
  const char* pattern = value < 9.995 ? "%.2f%s" : value < 99.95 ? "%.1f%s" : "%.0f%s";
  return format(pattern, std::min(value, 999.0), kUnits[unit]);
}

// Three digits: "0.42", "16.0".
std::string gibibytes(std::uint64_t bytes) {
  const double value = static_cast<double>(bytes) / static_cast<double>(1u << 30);
  return format(value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f", std::min(value, 999'999.0));
}

// "0:01:15"; days are hours too.
std::string clock(double seconds) {
  const auto whole = static_cast<long long>(std::clamp(seconds, 0.0, 1e9));
  return format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
}

// Breaks at spaces; what is longer than a line without one is cut. Later lines are indented.
std::string wrapped(const std::string& text) {
  std::string out, line;
  std::size_t at = 0;
  const auto put = [&] {
    out += line.substr(0, kTableColumns) + "\n";
    line = "  ";
  };
  while (at < text.size()) {
    std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (line.size() > 2 && line.size() + 1 + word.size() > kTableColumns) put();
    if (!line.empty() && line.back() != ' ') line += ' ';
    line += word;
    at = end + 1;
  }
  if (!line.empty()) put();
  return out;
}

std::string names_of(const RunReport& report, std::size_t stage) {
  std::string names;
  if (stage < report.stages.size())
    for (const PeerRow& row : report.stages[stage].peers)
      if (state_of(report, row) == MemberStanding::kServing) names += (names.empty() ? "" : ", ") + row.name;
  return names;
}

std::string parked_because(const RunReport& report) {
  const StandingRecord& standing = *report.standing;
  if (!standing.stage) return "";
  const std::size_t stage = standing.stage->value;
  const std::string name = "stage " + std::to_string(stage);
  if (standing.stranded)  // all that serve there are, so that names of both stages are names of both sides
    return ": " + name + " (" + names_of(report, stage) + ") cannot reach stage " + std::to_string(stage + 1) + " (" +
           names_of(report, stage + 1) + ")";
  std::string last;
  for (const std::string& one : standing.last) last += (last.empty() ? "" : ", ") + printable(one, 32);
  return ": " + name + " has no serving peer" + (last.empty() ? "" : " (its last members: " + last + ")");
}

std::string waiting_because(const RunReport& report) {
  std::string stages;
  for (const StageReport& stage : report.stages)
    if (stage.serving == 0) stages += (stages.empty() ? "" : ", ") + std::to_string(stage.stage.value);
  return stages.empty() ? "" : ": no peer serves stage " + stages + " yet";
}

std::string state_text(const RunReport& report) {
  if (report.record && report.record->ended) return "ended: " + printable(*report.record->ended, 256);
  if (report.ended()) return "ended";
  if (const auto silent = report.silent())
    return "unknown: the launching process has been silent for " + format("%.0f", seconds_of(*silent)) +
           " s, and nothing is decided until it is back";
  if (!report.found()) return "unknown: nothing is known of this run";
  if (!report.standing) return "unknown: nobody who holds the run's key tells how it stands";
  const StandingRecord& standing = *report.standing;
  std::string text(name_of(standing.state));
  if (standing.since) text += " for " + clock(seconds_of(report.taken - *standing.since));
  if (standing.state == RunState::kParked) text += parked_because(report);
  if (standing.state == RunState::kWaiting) text += waiting_because(report);
  return text + " (told " + format("%.0f", age_of(standing.expires, report.taken)) + " s ago)";
}

// A run that is over has no rate, and what it left undone takes no time.
std::string figures_text(const LaunchFigures& f, bool over) {
  if (f.step == 0 && f.run_targets == 0) return "";
  std::string text = "  step " + (f.step > 0 ? std::to_string(f.step) : std::string(kNotKnown)) + " | loss " +
                     (f.loss ? format("%.4f", *f.loss) : std::string(kNotKnown));
  if (!over) text += " | " + (f.rate ? figure(*f.rate) : std::string(kNotKnown)) + " tok/s";
  text += "\n  ";
  const auto done = static_cast<double>(f.run_targets), end = static_cast<double>(f.end_targets);
  text += figure(done);
  if (end == 0) return text + " tokens, no end is set\n";
  const double left = std::max(0.0, end - done);
  text += " of " + figure(end) + " tokens (" + format("%.0f", 100 * std::min(1.0, done / end)) + " %)";
  if (over) return text + "\n";
  text += ", " + figure(left) + " to go";
  if (left > 0 && f.rate.value_or(0) > 0) text += ", about " + clock(left / *f.rate);
  return text + "\n";
}

std::string weakest_text(const RunReport& report) {
  if (!report.weakest || report.ended() || report.silent()) return "";
  const auto stage = std::find_if(report.stages.begin(), report.stages.end(),
                                  [&](const StageReport& s) { return s.stage == *report.weakest; });
  if (stage->serving == 0) return "";
  const std::string name = "weakest stage " + std::to_string(report.weakest->value) + ": ";
  return stage->serving == 1 ? name + "1 serving peer, losing it parks the run\n"
                             : name + std::to_string(stage->serving) + " serving peers\n";
}

// "serving", "silent 12 s", "gone 40 s".
std::string state_cell(const RunReport& report, const PeerRow& row) {
  const MemberStanding state = state_of(report, row);
  std::string text(name_of(state));
  if (state == MemberStanding::kSilent || state == MemberStanding::kGone)
    text += " " + std::to_string(quiet_seconds(report, row)) + " s";
  return text;
}

std::string row_of(const RunReport& report, const PeerRow& row) {
  const PeerRecord none{}, &own = row.record ? *row.record : none;
  const PeerFigures& figures = own.figures;
  const auto told = [](bool there, const std::string& text) { return there ? text : std::string(kNotKnown); };
  const std::string age =
      row.record ? format("%.0f s", std::min(age_of(own.expires, report.taken), 9999.0)) : std::string("none");
  return format("%3u %-8s %-11s %6s %6s %-6s %6s %6s %6s %6s %6s\n", static_cast<unsigned>(row.member.stage.value),
                row.name.c_str(), state_cell(report, row).substr(0, 11).c_str(),
                told(figures.rate > 0, figure(figures.rate)).c_str(),
                told(has_version(own), "v" + figure(static_cast<double>(own.version.value))).c_str(),
                told(!figures.device.empty(), printable(figures.device, 32).substr(0, 6)).c_str(),
                told(figures.memory_bytes > 0, gibibytes(figures.memory_bytes)).c_str(),
                told(figures.rtt_ms > 0, figure(std::max(1.0, figures.rtt_ms))).c_str(),
                told(figures.sent_rate > 0, figure(static_cast<double>(figures.sent_rate))).c_str(),
                told(figures.got_rate > 0, figure(static_cast<double>(figures.got_rate))).c_str(), age.c_str());
}

std::string claims_text(const RunReport& report) {
  std::vector<const PeerRecord*> claims;
  for (const StageReport& stage : report.stages)
    for (const PeerRecord& record : stage.claims) claims.push_back(&record);
  if (claims.empty()) return "";
  const std::string count = std::to_string(claims.size());
  std::string out =
      wrapped(!report.standing ? count + " claims, and no signed list was found that names who takes part; not counted:"
              : report.list_whole
                  ? count + " claims of keys that are not on the signed list; anybody can make one; not counted:"
                  : count +
                        " claims of keys that the part of the signed list that was found does not name; "
                        "not counted:");
  for (std::size_t i = 0; i < std::min(claims.size(), kClaimsShown); ++i)
    out += format("%3u %-8s says %s, %s tok/s\n", static_cast<unsigned>(claims[i]->stage.value),
                  short_name(claims[i]->peer).c_str(), claims[i]->serving ? "serving" : "joining",
                  figure(claims[i]->figures.rate).c_str());
  if (claims.size() > kClaimsShown) out += "    and " + std::to_string(claims.size() - kClaimsShown) + " more\n";
  return out;
}

// Strangers can end OpenDHT with a datagram: whose records are old or missing for that is said.
std::string falls_text(const RunReport& report) {
  std::string who;
  const auto add = [&](const std::string& name, std::uint64_t falls) {
    if (falls > 0) who += (who.empty() ? "" : ", ") + name + " " + std::to_string(falls);
  };
  if (report.standing) add("of the launching process", report.standing->figures.falls);
  for (const StageReport& stage : report.stages)
    for (const PeerRow& row : stage.peers)
      if (row.record) add("of " + row.name, row.record->figures.falls);
  add("our own", report.falls);
  if (who.empty()) return "";
  return wrapped("DHT nodes that ended in the last 10 min, and how often: " + who +
                 ". A stranger may be ending them with datagrams; training does not need them, and records are "
                 "older meanwhile");
}

// What a stage goes back to when all its peers die at once.
std::string disks_text(const RunReport& report) {
  std::string text;
  for (const StageReport& stage : report.stages) {
    if (stage.peers.empty()) continue;
    const DiskRecord* disk = newest_on_disk(stage);
    text += (text.empty() ? "" : ", ") + std::to_string(stage.stage.value) + ": " +
            (disk == nullptr
                 ? "none"
                 : "v" + std::to_string(disk->version.value) + " " + clock(disk_age(*disk, report.taken)) + " ago");
  }
  return text.empty() || report.ended() ? "" : wrapped("newest checkpoint on a disk, by stage: " + text);
}

// "int8" or, where its peers send it in two ways, "int8/raw"; "-": nobody sends any.
std::string codecs_of(const StageReport& stage, std::string PeerFigures::*codec) {
  std::set<std::string> names;
  for (const PeerRow& row : stage.peers)
    if (row.record && !(row.record->figures.*codec).empty()) names.insert(printable(row.record->figures.*codec, 16));
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "/") + name;
  return text.empty() ? std::string(kNotKnown) : text;
}

std::string codecs_text(const RunReport& report) {
  std::string text;
  bool told = false;
  for (const StageReport& stage : report.stages) {
    const std::string down = codecs_of(stage, &PeerFigures::activation_codec);
    const std::string up = codecs_of(stage, &PeerFigures::gradient_codec);
    told = told || down != kNotKnown || up != kNotKnown;
    text += (text.empty() ? "" : ", ") + std::to_string(stage.stage.value) + ": " + down + " " + up;
  }
  return told && !report.ended() ? wrapped("activations and gradients go out as, by stage: " + text) : "";
}

}  // namespace

std::string table_of(const RunReport& report) {
  std::string head = "run " + short_name(report.run);
  if (report.record)
    head += " " + printable(report.record->name, 128) + " | " + std::to_string(report.record->stages) + " stages";
  if (report.network != 0) head += " | DHT network " + std::to_string(report.network);
  if (report.record && report.record->whereabouts.dialable())
    head += " | at " + printable(report.record->whereabouts.addresses.front(), 128);
  std::string out = wrapped(head) + wrapped("state: " + state_text(report));
  if (report.standing) out += figures_text(report.standing->figures, report.ended());
  out += weakest_text(report);
  if (report.standing) {
    out += format("%3s %-8s %-11s %6s %6s %-6s %6s %6s %6s %6s %6s\n", "ST", "PEER", "STATE", "TOK/S", "ANCHOR",
                  "DEVICE", "GiB", "RTT ms", "UP/s", "DOWN/s", "RECORD");
    for (const StageReport& stage : report.stages) {
      for (const PeerRow& row : stage.peers) out += row_of(report, row);
      if (stage.peers.empty()) out += format("%3u -        nobody\n", static_cast<unsigned>(stage.stage.value));
    }
    if (report.standing->unnamed > 0)
      out += wrapped("and " + std::to_string(report.standing->unnamed) + " members that its records do not name");
  }
  if (report.standing) out += codecs_text(report) + disks_text(report);
  out += claims_text(report) + falls_text(report);
  if (report.counters.refused() != 0)
    out += "refused: " + std::to_string(report.counters.refused()) + " records (signature, form, age)\n";
  return out;
}

}  // namespace shoal
