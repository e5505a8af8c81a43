// A small whole run is clean; then one thing is planted that must not be, or lines are known to be missing.
#include "events/audit.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/common/scratch_folder.h"
#include "tests/events/audit_story.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(AuditTest, AWholeRunIsClean) {
  const AuditReport report = Story::whole().judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_TRUE(report.ended);
  EXPECT_EQ(report.issued, 4u);
  EXPECT_EQ(report.committed, 4u);
  EXPECT_EQ(report.secured, 8u);
  EXPECT_EQ(report.rounds, 4u);
  EXPECT_EQ(report.stages.at(1).anchors, 4u);
  EXPECT_THAT(audit_table(report), HasSubstr("verdict: clean"));
}

TEST(AuditTest, FindsAnEntrySecuredByTwoRounds) {
  Story story = Story::whole();
  story.find([](const Session&, const EventRecord& r) { return r.event == "round_commit" && r.round == RoundId{2}; })
      .secured->front()
      .serials.push_back(Story::winner(0, 0).serial);
  const AuditReport report = story.judge();
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_THAT(report.violations, Contains(HasSubstr("secured 2 times")));
}

TEST(AuditTest, FindsASecuredMicrobatchThatIsAlsoLost) {
  Story story = Story::whole();
  EventRecord lost = story.event("merged");
  lost.event = "lost";
  lost.cause = "the run ended";
  story.lines.insert(story.lines.end() - 1, {Story::trainer(), lost});
  const AuditReport report = story.judge();
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_THAT(report.violations, Contains(HasSubstr("secured and also lost")));
  EXPECT_THAT(report.violations, Contains(HasSubstr("anchor + lost differs")));
}

// The last microbatch of the run is in no round.
Story with_a_loss(bool named) {
  Story story;
  story.open();
  for (std::uint64_t serial = 0; serial < 3; ++serial) story.train(serial);
  for (int stage = 0; stage < 2; ++stage) story.round(stage, 1, 0, 3);
  story.train(3);
  for (int stage = 0; named && stage < 2; ++stage)
    story.say(Story::trainer(), {.event = "lost",
                                 .microbatch = Story::microbatch(3),
                                 .stage = Story::id(stage),
                                 .entry_name = Story::winner(3, stage),
                                 .cause = "the run ended"});
  return story;
}

TEST(AuditTest, ANamedLossIsHonestAndASilentOneIsNot) {
  Story named = with_a_loss(true);
  named.end();
  EXPECT_TRUE(named.judge().clean()) << audit_table(named.judge());
  EXPECT_EQ(named.judge().lost, 2u);
  Story silent = with_a_loss(false);
  EXPECT_TRUE(silent.judge().clean()) << audit_table(silent.judge());
  EXPECT_EQ(silent.judge().undecided, 2u);
  silent.end();
  EXPECT_EQ(silent.judge().silent, 2u);
  EXPECT_THAT(silent.judge().violations, Contains(HasSubstr("neither secured nor lost")));
}

// What a disk refused is counted in the next line: nobody can tell what stood there.
TEST(AuditTest, KnownGapsAreIncompleteAndNamedAndNeitherCleanNorViolated) {
  Story story = Story::whole();
  const EntryName entry = Story::winner(2, 0);
  story.remove("counted", entry);
  EXPECT_EQ(story.judge().verdict(), AuditVerdict::kViolated);
  story.find([&](const Session&, const EventRecord& r) { return r.event == "settled" && r.entry_name == entry; })
      .more.emplace_back("missing", "1");
  const AuditReport report = story.judge();
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
  EXPECT_EQ(report.missing, 1u);
  EXPECT_THAT(report.incomplete, Contains(HasSubstr("1 line is missing in front of this one")));
  EXPECT_THAT(audit_table(report), HasSubstr("verdict: incomplete"));
  EXPECT_EQ(nlohmann::json::parse(audit_json(report))["verdict"], "incomplete");
}

TEST(AuditTest, AGapOfTheTrainerExplainsWhatItDidNotSay) {
  Story story = Story::whole();
  std::size_t removed = 0;
  std::erase_if(story.lines, [&](const auto& line) {
    const bool gone = line.first == Story::trainer() && line.second.event != "start" && removed < 12;
    removed += gone;
    return gone;
  });
  story.find([](const Session& who, const EventRecord& r) { return who == Story::trainer() && r.event != "start"; })
      .more.emplace_back("missing", "12");
  const AuditReport report = story.judge();
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
  EXPECT_EQ(report.counted_twice, 0u);
  EXPECT_EQ(report.silent, 0u);
}

TEST(AuditTest, AContradictionStaysAViolationBesideAGap) {
  Story story = Story::whole();
  story.event("settled").more.emplace_back("missing", "1");
  story.event("anchor").tag = *story.event("anchor").tag + 1;
  EXPECT_EQ(story.judge().verdict(), AuditVerdict::kViolated);
}

TEST(AuditTest, AFileThatIsNotThereMakesTheEvidenceIncomplete) {
  Story story = Story::whole();
  std::erase_if(story.lines, [](const auto& line) { return line.first == Story::peer(1, 0); });
  const AuditReport report = story.judge();
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
  EXPECT_THAT(report.incomplete, Contains(HasSubstr("no file holds a line of it")));
  std::erase_if(story.lines, [](const auto& line) { return line.first == Story::trainer(); });
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("nothing to judge by")));
}

TEST(AuditTest, ToleratesATornEndAndNothingElse) {
  for (const auto& [name, text] : Story::whole().files()) {
    std::map<std::string, std::string> files = Story::whole().files();
    files[name] += "{\"ev";
    EXPECT_TRUE(audit_texts(files).clean());
    EXPECT_EQ(audit_texts(files).torn, 1u);
    files[name] += "\n" + text.substr(0, text.find('\n') + 1);
    EXPECT_THAT(audit_texts(files).violations, Contains(HasSubstr("cannot be read")));
  }
}

TEST(AuditTest, SurvivesSeededDamage) {
  std::uint64_t state = 5;
  const auto draw = [&](std::uint64_t bound) { return (state = mix64(state)) % bound; };
  for (int i = 0; i < 300; ++i) {
    std::map<std::string, std::string> files = Story::whole().files();
    for (auto& [name, text] : files)
      for (int k = 0; k < 2; ++k) text[draw(text.size())] = static_cast<char>(draw(256));
    const AuditReport report = audit_texts(files);
    EXPECT_EQ(report.violation_count > 0, !report.violations.empty());
  }
}

TEST(AuditTest, ReadsAFolder) {
  const ScratchFolder folder;
  EXPECT_EQ(audit_folder(folder / "absent").code(), ErrorCode::kMissing);
  EXPECT_EQ(audit_folder(folder.path()).code(), ErrorCode::kMissing);
  for (const auto& [name, text] : Story::whole().files()) folder.write(name + ".jsonl", text);
  folder.write("notes.txt", "not an event file");
  const auto report = audit_folder(folder.path());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->files, 5u);
  EXPECT_TRUE(report->clean()) << audit_table(*report);
  EXPECT_EQ(nlohmann::json::parse(audit_json(*report))["stages"][1]["secured"], 4);
}

}  // namespace
}  // namespace shoal
