#include "events/event_log.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "events/event_schema.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

class FixedClock final : public Clock {
 public:
  TimePoint now() const override { return {}; }
  WallTime wall() const override { return WallTime(std::chrono::milliseconds(1700000000123)); }
};

EventIdentity identity() {
  return {.role = "peer", .run = {}, .peer = {}, .session = Session{0x1122334455667788, 0xabcdef}};
}

nlohmann::json line_of(const EventRecord& record) {
  return nlohmann::json::parse(event_line(identity(), FixedClock().wall(), record));
}

template <class Id>
Id id_of(const std::string& text) {
  Id id;
  EXPECT_TRUE(parse_id(text, id)) << text;
  return id;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(ScratchFolder::read(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(EventLogTest, WritesWhatIsSetAndNothingElse) {
  const auto line = line_of({.event = EventKind::kForward});
  EXPECT_EQ(line.size(), 6u);
  EXPECT_EQ(line["event"], "forward");
  EXPECT_EQ(line["role"], "peer");
  EXPECT_EQ(line["time"], 1700000000.123);
  EXPECT_EQ(line["session"], "1122334455667788.0000000000abcdef");
}

TEST(EventLogTest, EveryFieldReadsBack) {
  const EntryName entry_name{Session{1, 2}, 3};
  const auto line = line_of({.event = EventKind::kDrop,
                             .microbatch = MicrobatchId{5, 6},
                             .stage = StageId{2},
                             .about = Session{7, 8},
                             .about_peer = PeerId{},
                             .entry_name = entry_name,
                             .lease = Lease{Session{1, 2}, 9},
                             .window = WindowSlot::kB,
                             .round = RoundId{11},
                             .version = Version{12},
                             .back_to = Version{29},
                             .versions = std::vector<Version>{Version{24}, Version{25}},
                             .digest = Digest{},
                             .tag = 0xfedcba9876543210,
                             .step = StepId{13},
                             .sample = SampleId{14},
                             .epoch = 15,
                             .entries = std::vector<EntryName>{entry_name, entry_name},
                             .secured = std::vector<Secured>{{Session{1, 2}, {3, 4}}},
                             .members = 16,
                             .silent = Session{17, 18},
                             .state = "leaving",
                             .cause = "late",
                             .loss = 2.5,
                             .targets = 99,
                             .delay_mean = 1.5,
                             .delays = std::vector<std::uint64_t>{33, 0, 66},
                             .settle_wait_ms = 25,
                             .sent = std::numeric_limits<std::uint64_t>::max(),
                             .received = 20,
                             .fp32 = 21,
                             .payload = 22,
                             .deltas = 27,
                             .keys = 28,
                             .longest_callback_ms = 24,
                             .callback = "Chunk",
                             .computed_ms = 26,
                             .missing = 23});
  EXPECT_EQ(id_of<MicrobatchId>(line["microbatch"]), (MicrobatchId{5, 6}));
  EXPECT_EQ(id_of<EntryName>(line["entry"]), entry_name);
  EXPECT_EQ(id_of<Session>(line["about"]), (Session{7, 8}));
  EXPECT_EQ(line["entries"].size(), 2u);
  EXPECT_EQ(line["versions"], (std::vector<int>{24, 25}));
  EXPECT_EQ(line["secured"]["0000000000000001.0000000000000002"], (std::vector<int>{3, 4}));
  EXPECT_EQ(line["tag"], "fedcba9876543210");
  EXPECT_EQ(line["window"], 1);
  EXPECT_EQ(line["loss"], 2.5);
  EXPECT_EQ(id_of<Session>(line["silent"]), (Session{17, 18}));
  EXPECT_EQ(line["about_peer"], std::string(64, '0'));
  EXPECT_EQ(line["state"], "leaving");
  const std::pair<const char*, std::uint64_t> integers[] = {
      {"round", 11},       {"version", 12},
      {"step", 13},        {"sample", 14},
      {"epoch", 15},       {"members", 16},
      {"targets", 99},     {"sent", std::numeric_limits<std::uint64_t>::max()},
      {"received", 20},    {"fp32", 21},
      {"payload", 22},     {"longest_callback_ms", 24},
      {"missing", 23},     {"settle_wait_ms", 25},
      {"computed_ms", 26}, {"deltas", 27},
      {"keys", 28},        {"back_to", 29}};
  for (const auto& [key, value] : integers) {
    EXPECT_TRUE(line[key].is_number_unsigned()) << key;
    EXPECT_EQ(line[key], value) << key;
  }
  EXPECT_EQ(line["callback"], "Chunk");
  EXPECT_EQ(line["delays"], (std::vector<int>{33, 0, 66}));
  EXPECT_EQ(line["delay_mean"], 1.5);
  EXPECT_EQ(line.size(), 43u);
}

TEST(EventLogTest, ARestoreSaysWhatItMakesAndWhatItTakesBack) {
  const auto line = line_of(restored_event(StageId{2}, RoundId{11}, Version{12}, Version{9}, Digest{}, 0xabc,
                                           {{Session{1, 2}, {3, 4}}}, "nobody has version 11"));
  EXPECT_EQ(line["event"], "restored");
  EXPECT_EQ(line["stage"], 2);
  EXPECT_EQ(line["round"], 11);
  EXPECT_EQ(line["version"], 12);
  EXPECT_EQ(line["back_to"], 9);
  EXPECT_EQ(line["secured"]["0000000000000001.0000000000000002"], (std::vector<int>{3, 4}));
  EXPECT_EQ(line["tag"], "0000000000000abc");
  EXPECT_EQ(line["digest"], std::string(64, '0'));
  EXPECT_EQ(line["cause"], "nobody has version 11");
  EXPECT_EQ(line.size(), 14u);
}

TEST(EventLogTest, ALineIsOfTheWritersStageUnlessItNamesAnother) {
  EventIdentity writer = identity();
  writer.stage = StageId{3};
  const auto stage_of = [&](const EventRecord& record) {
    return nlohmann::json::parse(event_line(writer, {}, record))["stage"].get<int>();
  };
  EXPECT_EQ(stage_of({.event = EventKind::kForward}), 3);
  EXPECT_EQ(stage_of({.event = EventKind::kForward, .stage = StageId{1}}), 1);
}

TEST(EventLogTest, ANewSessionHasNoStageYet) {
  const ScratchFolder folder;
  const FixedClock clock;
  const auto log = open_event_log(folder / "e.jsonl", identity(), clock);
  ASSERT_TRUE(log.ok()) << log.error().message;
  (*log)->set_stage(StageId{2});
  (*log)->write({.event = EventKind::kFenced});
  (*log)->set_session(Session{9, 9});
  (*log)->write({.event = EventKind::kStart});
  const auto lines = lines_of(folder / "e.jsonl");
  EXPECT_EQ(nlohmann::json::parse(lines.at(0))["stage"], 2);
  EXPECT_FALSE(nlohmann::json::parse(lines.at(1)).contains("stage"));
}

TEST(EventLogTest, StrangersTextCannotBreakALine) {
  const std::string hostile = "a\"b\\c\nd\x01\xff{";
  const std::string text = event_line(identity(), {}, {.event = EventKind::kDrop, .cause = hostile});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_TRUE(text.ends_with("\n"));
  const auto line = nlohmann::json::parse(text);
  EXPECT_TRUE(line["cause"].get<std::string>().starts_with("a\"b\\c\nd\x01"));
}

TEST(EventLogTest, NumbersThatAreNoneAreNull) {
  EXPECT_TRUE(line_of({.event = EventKind::kDrop, .loss = std::numeric_limits<double>::quiet_NaN()})["loss"].is_null());
}

TEST(EventLogTest, EveryLineIsInTheFileAtOnce) {
  const ScratchFolder folder;
  const FixedClock clock;
  const auto log = open_event_log(folder / "e.jsonl", identity(), clock);
  ASSERT_TRUE(log.ok()) << log.error().message;
  for (int i = 1; i <= 3; ++i) {
    (*log)->write({.event = EventKind::kStart});
    EXPECT_EQ(lines_of(folder / "e.jsonl").size(), static_cast<std::size_t>(i));
  }
  (*log)->set_session(Session{9, 9});
  (*log)->write({.event = EventKind::kStart});
  EXPECT_THAT(lines_of(folder / "e.jsonl").back(), testing::HasSubstr("0000000000000009.0000000000000009"));
}

TEST(EventLogTest, GoesOnBehindATornLine) {
  const ScratchFolder folder;
  const FixedClock clock;
  folder.write("e.jsonl", "{\"event\":\"start\"}\n{\"event\":\"to");
  const auto log = open_event_log(folder / "e.jsonl", identity(), clock);
  (*log)->write({.event = EventKind::kStart});
  const auto lines = lines_of(folder / "e.jsonl");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], "{\"event\":\"to");
  EXPECT_EQ(nlohmann::json::parse(lines[2])["event"], "reopened");
  EXPECT_EQ(nlohmann::json::parse(lines[3])["event"], "start");
}

TEST(EventLogTest, CountsWhatAFullDiskSwallowed) {
  const FixedClock clock;
  const auto log = open_event_log("/dev/full", identity(), clock);
  ASSERT_TRUE(log.ok());
  for (int i = 0; i < 3; ++i) (*log)->write({.event = EventKind::kStart});  // must not throw, block or end the process
}

TEST(EventLogTest, NamesTheFileItCannotOpen) {
  const FixedClock clock;
  const auto log = open_event_log("/nonexistent/e.jsonl", identity(), clock);
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.error().message, testing::HasSubstr("/nonexistent/e.jsonl"));
}

TEST(EventLogTest, RefusesIdsOfAnotherForm) {
  for (const char* bad : {"", "1.2", "1122334455667788.0000000000abcdef#", "1122334455667788.0000000000abcdef#x", "#1",
                          "1122334455667788-0000000000abcdef#1", "112233445566778g.0000000000abcdef#1"}) {
    EntryName entry_name;
    EXPECT_FALSE(parse_id(bad, entry_name)) << bad;
  }
  MicrobatchId microbatch;
  EXPECT_FALSE(parse_id("12:3", microbatch));
  EXPECT_FALSE(parse_id("0000000000000001:-3", microbatch));
}

}  // namespace
}  // namespace shoal
