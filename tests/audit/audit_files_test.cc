// Lines, files and folders: what may be torn, what is known to be missing, and what cannot be read.
#include <nlohmann/json.hpp>

#include "common/packed/pack_file.h"
#include "events/event_lines.h"
#include "events/read_event.h"
#include "tests/audit/audit_story.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;

const EntryName kEntry = Story::winner(0, 0);
const std::string kPeerFile = Story::file_of(Story::peer(0, 0));

TEST(AuditFilesTest, ToleratesATornEndAndNothingElse) {
  const std::map<std::string, std::string> whole = Story::whole().files();
  for (const auto& [name, text] : whole) {
    std::map<std::string, std::string> files = whole;
    const std::size_t last_line = text.rfind('\n', text.size() - 2) + 1;
    for (std::size_t cut = last_line + 1; cut < text.size(); ++cut) {
      files[name] = text.substr(0, cut);
      const AuditReport report = audit_texts(files);
      EXPECT_EQ(report.torn, 1u);
      EXPECT_THAT(report.violations, Not(Contains(HasSubstr("cannot be read"))));
    }
    files[name] = text + "{\"ev\n" + text.substr(last_line);
    EXPECT_THAT(audit_texts(files).violations, Contains(HasSubstr("cannot be read")));
  }
}

TEST(AuditFilesTest, AProcessThatGoesOnClosesATornLine) {
  std::map<std::string, std::string> files = Story::whole().files();
  Session next = Story::peer(0, 0);
  ++next.incarnation;
  files[kPeerFile] += "{\"ev\n";
  files[kPeerFile] += event_line({.role = "peer", .run = {}, .peer = Story::key_of(next), .session = {}}, {},
                                 {.event = EventKind::kReopened, .cause = "the line before is torn"});
  files[kPeerFile] += Story::line_of(next, {.event = EventKind::kStart});
  const AuditReport report = audit_texts(files);
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_EQ(report.torn, 1u);
}

// A disk that refused lines may have taken the first of them in part; the next line that gets through counts them.
TEST(AuditFilesTest, TakesABadLineInFrontOfMissingForARefusedWriteAndTellsHowManyAreMissing) {
  std::map<std::string, std::string> files = Story::whole().files();
  const std::string whole = files[kPeerFile];
  const std::string after = Story::line_of(
      Story::peer(0, 0), {.event = EventKind::kBytes, .sent = 1, .received = 1, .fp32 = 1, .payload = 1, .missing = 3});
  files[kPeerFile] = whole + "{\"ev\n" + after;
  const AuditReport report = audit_texts(files);
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
  EXPECT_EQ(report.torn, 1u);
  EXPECT_EQ(report.missing, 3u);
  EXPECT_EQ(nlohmann::json::parse(audit_json(report))["missing"], 3);
  files[kPeerFile] = whole + "{\"ev\n{\"ev\n" + after;
  EXPECT_THAT(audit_texts(files).violations, Contains(HasSubstr("cannot be read"))) << "one write is cut at most";
}

TEST(AuditFilesTest, WhatIsAbsentWhereLinesAreMissingLeavesTheRunIncomplete) {
  Story story = Story::whole();
  story.remove(EventKind::kCounted, kEntry);
  story.lose_before(Story::of(EventKind::kSettled, kEntry));
  const AuditReport report = story.judge();
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
  EXPECT_THAT(report.incomplete, Contains(HasSubstr("its peer never counted it")));
  EXPECT_THAT(audit_table(report), HasSubstr("verdict: incomplete"));
  EXPECT_EQ(nlohmann::json::parse(audit_json(report))["verdict"], "incomplete");
}

TEST(AuditFilesTest, AContradictionIsAViolationWhateverIsMissing) {
  Story story = Story::whole();
  story.lose_before(Story::of(EventKind::kSettled, kEntry));
  story.repeat(Story::of(EventKind::kSettled, kEntry));
  story.lines.back().second.missing = 5;  // also of the trainer
  EXPECT_EQ(story.judge().verdict(), AuditVerdict::kViolated);
}

TEST(AuditFilesTest, AMissingFileOfAMemberLeavesTheRunIncomplete) {
  std::map<std::string, std::string> files = Story::whole().files();
  files.erase(kPeerFile);
  const AuditReport report = audit_texts(files);
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
  EXPECT_THAT(report.incomplete, Contains(HasSubstr("took part, and no file holds a line of it")));
}

TEST(AuditFilesTest, AFileCutBehindALineLeavesTheRunIncomplete) {
  Story story = Story::whole();
  bool behind = false;
  story.remove([&](const Session& who, const EventRecord& r) {
    if (who != Story::peer(0, 0)) return false;
    behind = behind || (r.event == EventKind::kCounted && r.entry_name == Story::winner(2, 0));
    return behind;
  });
  const AuditReport report = story.judge();
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
}

TEST(AuditFilesTest, FindsFilesOfTwoRuns) {
  std::map<std::string, std::string> files = Story::whole().files();
  RunId other;
  other.bytes[3] = 1;
  const Session stranger = Story::session(0x55);
  files["stranger"] = event_line({.role = "peer", .run = other, .peer = Story::key_of(stranger), .session = stranger},
                                 {}, {.event = EventKind::kStart});
  EXPECT_THAT(audit_texts(files).violations, Contains(HasSubstr("2 different runs")));
}

TEST(AuditFilesTest, FindsLinesOfAnotherProcessOrSession) {
  std::map<std::string, std::string> files = Story::whole().files();
  const std::string foreign = Story::line_of(Story::peer(1, 1), {.event = EventKind::kFenced, .cause = "silent"});
  files[kPeerFile] += foreign;
  EXPECT_THAT(audit_texts(files).violations, Contains(HasSubstr("is of another process")));
  Story story = Story::whole();
  Session other = Story::peer(0, 0);
  ++other.incarnation;
  story.say(other, {.event = EventKind::kFenced, .cause = "silent"});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("wrote no start")));
  story = Story::whole();
  story.say(Story::peer(0, 0), {.event = EventKind::kStart});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("starts a second time")));
}

TEST(AuditFilesTest, FindsALineWithoutAFieldOrOfNoEvent) {
  std::map<std::string, std::string> files = Story::whole().files();
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::map<std::string, std::string> copy = files;
    std::string& text = copy[kPeerFile];
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return audit_texts(copy).violations;
  };
  EXPECT_THAT(edited(",\"version\":0", ""), Contains(HasSubstr("serving lacks \"version\"")));
  EXPECT_THAT(edited("\"counted\"", "\"mounted\""), Contains(HasSubstr("is no event of a peer")));
  EXPECT_THAT(edited("\"targets\":64", "\"targets\":\"64\""), Contains(HasSubstr("cannot be read")));
  EXPECT_THAT(edited("\"targets\":64", "\"targets\":64,\"targets\":64"), Contains(HasSubstr("cannot be read")));
  EXPECT_EQ(edited("\"targets\":64", "\"targets\":64,\"of_later\":{\"a\":[1]}"), std::vector<std::string>{})
      << "a field that the page does not name is passed over";
}

// All fields, byte for byte, and back.
TEST(AuditFilesTest, ALineIsReadAsItWasWritten) {
  const std::string line =
      R"({"time":1700000000.123000,"event":"drop","role":"peer",)"
      R"("run":"0000000000000000000000000000000000000000000000000000000000000000",)"
      R"("peer":"0000000000000000000000000000000000000000000000000000000000000000",)"
      R"("session":"1122334455667788.0000000000abcdef","microbatch":"0000000000000005:6","stage":2,)"
      R"("about":"0000000000000007.0000000000000008",)"
      R"("about_peer":"0000000000000000000000000000000000000000000000000000000000000000",)"
      R"("entry":"0000000000000001.0000000000000002#3","lease":"0000000000000001.0000000000000002~9","window":1,)"
      R"("round":11,"version":12,"back_to":29,"versions":[24,25],)"
      R"("digest":"0000000000000000000000000000000000000000000000000000000000000000","tag":"fedcba9876543210",)"
      R"("step":13,"sample":14,"epoch":15,"entries":["0000000000000001.0000000000000002#3",)"
      R"("0000000000000001.0000000000000002#3"],"secured":{"0000000000000001.0000000000000002":[3,4],)"
      R"("0000000000000003.0000000000000004":[]},"members":16,"silent":"0000000000000011.0000000000000012",)"
      R"("state":"leaving","cause":"late","peer_name":"rack 3","loss":2.5,"targets":99,"delay_mean":1.3333333333333333,"delays":[33,0,66],)"
      R"("settle_wait_ms":25,"sent":18446744073709551615,"received":20,"relayed":30,"fp32":21,"payload":22,"deltas":27,"keys":28,"round_sent":31,"round_device_us":32,)"
      R"("waited_for":"0000000000000013.0000000000000014","waited_ms":33,)"
      R"("longest_callback_ms":24,"callback":"Chunk","computed_ms":26,"missing":23,"level":"rounds"})"
      "\n";
  ReadEvent event{};
  ASSERT_TRUE(read_event(line, event));
  EXPECT_EQ(lacking_field(event), "");
  for (const EventField& field : event_fields()) {
    std::string text;
    field.write(text, field.name, event);
    EXPECT_FALSE(text.empty()) << field.name << " stands in no line here";
  }
  const EventIdentity who{.role = event.role, .run = event.run, .peer = event.peer, .session = event.session};
  EXPECT_EQ(event_line(who, WallTime(std::chrono::milliseconds(1700000000123)), event), line);
}

TEST(AuditFilesTest, SurvivesSeededDamage) {
  std::uint64_t state = 5;
  const auto draw = [&](std::uint64_t bound) { return (state = mix64(state)) % bound; };
  const std::map<std::string, std::string> whole = Story::whole().files();
  for (const auto& [name, text] : whole) {
    std::map<std::string, std::string> files = whole;
    for (int i = 0; i < 100; ++i) {
      std::string& damaged = files[name] = text;
      for (int k = 0; k < 5; ++k) damaged[draw(damaged.size())] = static_cast<char>(draw(256));
      const AuditReport report = audit_texts(files);
      EXPECT_EQ(report.clean(), report.violations.empty() && report.incomplete.empty());
    }
  }
}

TEST(AuditFilesTest, ReadsAFolder) {
  const ScratchFolder folder;
  EXPECT_EQ(audit_folder(folder / "absent").code(), ErrorCode::kMissing);
  EXPECT_EQ(audit_folder(folder.path()).code(), ErrorCode::kMissing);
  for (const auto& [name, text] : Story::whole().files()) folder.write(name + ".jsonl", text);
  folder.write("notes.txt", "not an event file");
  const auto report = audit_folder(folder.path());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->files, 5u);
  EXPECT_TRUE(report->clean()) << audit_table(*report);
  const auto json = nlohmann::json::parse(audit_json(*report));
  EXPECT_EQ(json["verdict"], "clean");
  EXPECT_EQ(json["stages"][1]["secured"], 4);
  EXPECT_THAT(audit_table(*report), HasSubstr("verdict: clean"));
}

TEST(AuditFilesTest, ReadsAFileWithItsSegmentsAsOne) {
  const ScratchFolder folder;
  for (const auto& [name, text] : Story::whole().files()) {
    const std::size_t half = text.find('\n', text.size() / 2) + 1;
    const std::string file = name + ".jsonl";
    ASSERT_TRUE(pack_file(folder.write(file + ".0001", text.substr(0, half))).ok());
    folder.write(file, text.substr(half));
  }
  std::uint64_t last = 0, total = 0;
  const auto report = audit_folder(folder.path(), [&](std::uint64_t bytes, std::uint64_t of) {
    EXPECT_GE(bytes, last);
    last = bytes;
    total = of;
  });
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->files, 5u);
  EXPECT_TRUE(report->clean()) << audit_table(*report);
  EXPECT_EQ(last, total) << "of what stands on the disk";
}

// As the process that still writes it does.
TEST(AuditFilesTest, ASegmentThatIsPackedAfterItWasFoundIsRead) {
  const ScratchFolder folder;
  const std::string text = Story::whole().files().at(kPeerFile);
  const std::string segment = folder.write("a.jsonl.0001", text);
  const auto file = event_file_at(folder / "a.jsonl");
  ASSERT_TRUE(file.ok());
  const EventSource source = file_source(*file);
  ASSERT_TRUE(pack_file(segment).ok());
  EventLines lines(source);
  while (true) {
    const auto line = lines.next();
    ASSERT_TRUE(line.ok()) << line.error().message;
    if (*line == nullptr) break;
  }
  EXPECT_EQ(lines.lines(), static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')));
}

// Somebody without room for the oldest ones takes them away, and the audit says what it cannot know.
TEST(AuditFilesTest, ASegmentThatIsNotThereLeavesTheRunIncompleteByName) {
  const ScratchFolder folder;
  for (const auto& [name, text] : Story::whole().files()) {
    const std::size_t half = name == kPeerFile ? text.find('\n', text.size() / 2) + 1 : 0;
    folder.write(name + ".jsonl", text.substr(half));
    if (half > 0) folder.write(name + ".jsonl.0002", "");
  }
  const auto report = audit_folder(folder.path());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->verdict(), AuditVerdict::kIncomplete) << audit_table(*report);
  EXPECT_THAT(report->incomplete, Contains(HasSubstr("its segment " + kPeerFile + ".jsonl.0001 is not here")));
}

// Longer than the piece that is read at once, so lines stand across its borders.
TEST(AuditFilesTest, ReadsAFileInPieces) {
  std::map<std::string, std::string> files = Story::whole().files();
  const std::string bytes = Story::line_of(
      Story::peer(0, 0), {.event = EventKind::kBytes, .sent = 1, .received = 1, .fp32 = 1, .payload = 1});
  for (int i = 0; i < 4000; ++i) files[kPeerFile] += bytes;
  const ScratchFolder folder;
  for (const auto& [name, text] : files) folder.write(name + ".jsonl", text);
  const auto report = audit_folder(folder.path());
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->clean()) << audit_table(*report);
  EXPECT_EQ(report->lines, audit_texts(files).lines);
}

}  // namespace
}  // namespace shoal
