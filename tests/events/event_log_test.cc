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

TEST(EventLogTest, ALevelsLinesAreThoseOfTheLevelsBeforeItAndItsOwn) {
  const ScratchFolder folder;
  const FixedClock clock;
  std::vector<std::size_t> lines;
  for (const EventLevel level : kEventLevels) {
    const std::string path = folder / std::string(name_of(level)) + ".jsonl";
    const auto log = open_event_log(path, identity(), clock, {.level = level});
    ASSERT_TRUE(log.ok()) << log.error().message;
    for (const EventKind kind :
         {EventKind::kStart, EventKind::kForwardSent, EventKind::kCounted, EventKind::kStepped, EventKind::kAnchor})
      (*log)->write({.event = kind});
    lines.push_back(lines_of(path).size());
    const auto start = nlohmann::json::parse(lines_of(path).at(0));
    EXPECT_EQ(start.value("level", "full"), name_of(level));
    EXPECT_EQ(start.contains("level"), level != EventLevel::kFull) << "files of before have no level and are full";
    EXPECT_EQ(event_level_named(name_of(level)), level);
  }
  EXPECT_EQ(lines, (std::vector<std::size_t>{3, 4, 5}));
  EXPECT_EQ(event_level_named("some"), std::nullopt);
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

TEST(EventLogTest, AnotherKeyBeginsAFileOfItsOwnBesideTheFirst) {
  const ScratchFolder folder;
  const FixedClock clock;
  EventIdentity other = identity();
  other.peer.bytes.fill(0xab);
  for (int life = 0; life < 2; ++life)
    for (const EventIdentity& writer : {identity(), other}) {
      const auto log = open_event_log(folder / "a.jsonl", writer, clock);
      ASSERT_TRUE(log.ok()) << log.error().message;
      (*log)->write({.event = EventKind::kStart});
    }
  for (const std::string name : {"a.jsonl", "a-abababababababab.jsonl"}) {
    const auto lines = lines_of(folder / name);
    ASSERT_EQ(lines.size(), 2u) << name;
    EXPECT_EQ(nlohmann::json::parse(lines[0])["peer"], nlohmann::json::parse(lines[1])["peer"]) << name;
  }
}

}  // namespace
}  // namespace shoal
