// The object of `shoal inspect --json`: docs/dht.md has its keys, what each is and when it is null.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "dht/inspect.h"
#include "tests/dht/records.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr WallTime kNow = kTestWall + 10s;

const KeyPair& run_key() {
  static const KeyPair key = key_of_number(1);
  return key;
}

PeerRecord bare_record(const KeyPair& peer, std::uint16_t stage) {
  PeerRecord record;
  record.run = run_of(run_key());
  record.peer = peer.id();
  record.session = Session::of(peer.id(), 7);
  record.stage = StageId(stage);
  record.whereabouts.addresses = {"198.51.100.7:7741"};
  record.sequence = 77;
  record.expires = kTestWall + kRecordTtl;
  return record;
}

PeerRecord whole_record(const KeyPair& peer, std::uint16_t stage) {
  PeerRecord record = bare_record(peer, stage);
  record.figures.rate = 5120;
  record.figures.queue_seconds = 0.3;
  record.version = Version(18);
  record.serving = true;
  record.figures.device = "cuda:0";
  record.figures.memory_bytes = 3ull << 30;
  record.figures.activation_codec = record.figures.gradient_codec = "int8";
  record.figures.rtt_ms = 35;
  record.figures.sent_rate = record.figures.got_rate = 1e6;
  record.on_disk = {Version(17), kTestWall};
  return record;
}

PeerRow row_of(const KeyPair& peer, std::uint16_t stage, MemberRow::Place place, std::optional<PeerRecord> record) {
  const MemberRow member{Session::of(peer.id(), 7).peer_tag, StageId(stage), place, 1};
  return {.member = member, .name = short_name(peer.id()), .record = std::move(record)};
}

RunReport of_nothing() {
  RunReport report;
  report.run = run_of(run_key());
  report.taken = kNow;
  return report;
}

// One stage, one peer that has just come, no step yet, no end set.
RunReport of_beginning() {
  RunReport report = of_nothing();
  report.network = 1397;
  report.record = run_record(run_key(), 1, kTestWall);
  report.standing = StandingRecord{.run = report.run, .expires = kTestWall + kRecordTtl};
  const KeyPair peer = key_of_number(2);
  report.stages = {{.stage = StageId(0),
                    .peers = {row_of(peer, 0, MemberRow::Place::kJoining, bare_record(peer, 0))},
                    .claims = {bare_record(key_of_number(3), 0)}}};
  return report;
}

RunReport of_all() {
  RunReport report = of_beginning();
  report.standing->state = RunState::kParked;
  report.standing->since = kTestWall - 75s;
  report.standing->stage = StageId(1);
  report.standing->last = {"01234567"};
  report.standing->figures.step = 120;
  report.standing->figures.loss = 3.4561;
  report.standing->figures.rate = 0.0;
  report.standing->figures.run_targets = 1'310'000;
  report.standing->figures.end_targets = 5'000'000;
  const KeyPair peer = key_of_number(2), other = key_of_number(4);
  report.stages[0].peers = {row_of(peer, 0, MemberRow::Place::kServing, whole_record(peer, 0)),
                            row_of(other, 0, MemberRow::Place::kGone, std::nullopt)};
  report.stages[0].claims = {whole_record(key_of_number(3), 0)};
  report.stages[0].serving = 1;
  report.stages[0].rate = 5120;
  report.weakest = StageId(0);
  return report;
}

RunReport of_end() {
  RunReport report = of_all();
  report.record->ended = "all tokens are committed";
  report.standing->state = RunState::kEnded;
  return report;
}

RunReport of_silence() {
  RunReport report = of_all();
  report.taken = kTestWall + 100s;
  return report;
}

Json parsed(const RunReport& report) { return Json::parse(json_of(report)); }

// ---- the page ----

struct PageRow {
  std::string kind;
  bool may_be_null = false;
};

std::map<std::string, PageRow> page_rows() {
  std::ifstream page(SHOAL_SOURCE_DIR "/docs/dht.md");
  std::map<std::string, PageRow> rows;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line.starts_with("## What `inspect --json` says");
    if (!inside || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream rest(line.substr(2));
    for (std::string cell; std::getline(rest, cell, '|');)
      cells.push_back(
          cell.substr(cell.find_first_not_of(' '), cell.find_last_not_of(' ') + 1 - cell.find_first_not_of(' ')));
    EXPECT_EQ(cells.size(), 4u) << line;
    if (cells.size() == 4) rows[cells[0].substr(1, cells[0].size() - 2)] = {cells[1], cells[3] != "never"};
  }
  return rows;
}

std::string kind_of(const Json& value) {
  if (value.is_number()) return "number";
  if (value.is_string()) return "text";
  if (value.is_boolean()) return "bool";
  return value.is_array() ? "list" : "object";
}

std::string on_page(std::string path) {
  for (const std::string prefix : {"stages[].peers[].record.", "stages[].claims[]."})
    if (path.starts_with(prefix)) return "PEER." + path.substr(prefix.size());
  return path;
}

// Calls `see` with each key, as the page writes it, and its value.
template <class See>
void walk(const Json& json, const std::string& prefix, const See& see) {
  for (const auto& [key, value] : json.items()) {
    const std::string path = prefix + key;
    see(on_page(path), value);
    if (value.is_object()) walk(value, path + ".", see);
    if (!value.is_array()) continue;
    for (const Json& item : value)
      if (item.is_object()) walk(item, path + "[].", see);
  }
}

TEST(InspectJsonTest, ThePageHasEveryKeyWithItsKindAndWhetherItMayBeNull) {
  const auto rows = page_rows();
  std::set<std::string> seen, seen_null;
  for (const RunReport& report : {of_nothing(), of_beginning(), of_all(), of_end(), of_silence()})
    walk(parsed(report), "", [&](const std::string& path, const Json& value) {
      const auto row = rows.find(path);
      ASSERT_NE(row, rows.end()) << "docs/dht.md has no row `" << path << "`";
      if (value.is_null()) {
        seen_null.insert(path);
        EXPECT_TRUE(row->second.may_be_null) << path << " is null, and the page says never";
      } else {
        seen.insert(path);
        EXPECT_EQ(row->second.kind, kind_of(value)) << path;
      }
    });
  for (const auto& [path, row] : rows) {
    EXPECT_TRUE(seen.contains(path)) << "no report has `" << path << "`, which the page names";
    EXPECT_EQ(seen_null.contains(path), row.may_be_null) << path << ": in some report it is null, or in none";
  }
}

TEST(InspectJsonTest, AStateIsOneOfAFewWordsWithItsSecondsBesideIt) {
  std::set<std::string> words;
  for (const MemberStanding state : kMemberStandings) words.emplace(name_of(state));
  EXPECT_EQ(words.size(), std::size(kMemberStandings));
  RunReport report = of_all();
  report.stages[0].peers[0].member.quiet_s = 60;
  const Json peers = parsed(report)["stages"][0]["peers"];
  EXPECT_EQ(peers[0]["state"], "silent");
  EXPECT_EQ(peers[0]["quiet_s"], 70) << "60 s when it was told, 10 s ago";
  EXPECT_TRUE(peers[0]["gone_s"].is_null());
  EXPECT_EQ(peers[1]["state"], "gone");
  EXPECT_EQ(peers[1]["gone_s"], 11);
  EXPECT_TRUE(peers[1]["quiet_s"].is_null());
  for (const RunReport& one : {of_beginning(), of_all(), of_end(), of_silence()}) {
    const Json json = parsed(one);
    for (const Json& peer : json["stages"][0]["peers"]) EXPECT_TRUE(words.contains(peer["state"])) << peer["state"];
  }
}

TEST(InspectJsonTest, OneLineHasTheSameObject) {
  const std::string line = json_of(of_all(), JsonLines::kOne);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(Json::parse(line), parsed(of_all()));
}

// A resumed run has tokens, and no step in this life.
TEST(InspectTableTest, WhatDoesNotExistYetIsADash) {
  RunReport report = of_beginning();
  report.standing->figures.run_targets = 200'000;
  report.standing->figures.end_targets = 1'000'000;
  const std::string table = table_of(report);
  EXPECT_THAT(table, HasSubstr("  step - | loss - | - tok/s\n"));
  EXPECT_THAT(table, Not(HasSubstr("0.0000")));
  EXPECT_THAT(table, testing::ContainsRegex("joining +- +- +- +- +- +- +- +10 s\n"));
}

}  // namespace
}  // namespace shoal
