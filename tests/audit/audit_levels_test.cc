// What the audit makes of sessions whose level leaves lines out.
#include "tests/audit/audit_story.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// As its processes would have written it at `level`; those that `keep` says write all.
Story at(EventLevel level, Story story, const std::function<bool(const Session&)>& keep = {}) {
  Story kept;
  for (const auto& [who, record] : story.lines) {
    if (keep && keep(who)) {
      kept.lines.emplace_back(who, record);
    } else if (const auto written = at_level(record, level)) {
      kept.lines.emplace_back(who, *written);
    }
  }
  return kept;
}

TEST(AuditLevelsTest, WithoutHoldersLinesAllIsJudgedAsBefore) {
  Story story = Story::whole();
  const Session holder = Story::peer(0, 0);
  const auto end = std::ranges::find_if(
      story.lines, [&](const auto& line) { return line.first == holder && line.second.event == EventKind::kEnd; });
  story.lines.insert(
      end, {holder, claim_event(EventKind::kForwardSent, Story::microbatch(0), Story::peer(1, 0), Lease{holder, 1})});
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  const Story without = at(EventLevel::kEntries, story);
  EXPECT_EQ(without.lines.size() + 1, story.lines.size());
  const AuditReport report = without.judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  Story edited = at(EventLevel::kEntries, Story::whole());
  edited.remove_all(Story::peer(0, 0), EventKind::kSettled);
  EXPECT_EQ(edited.judge().verdict(), AuditVerdict::kViolated);
}

TEST(AuditLevelsTest, WithoutEntriesOneLineSaysWhatIsNotWrittenAndCountsAreWhole) {
  const AuditReport whole = Story::whole().judge(), report = at(EventLevel::kRounds, Story::whole()).judge();
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
  EXPECT_THAT(report.incomplete, ElementsAre(HasSubstr("5 sessions tell nothing of single entries: that is not written "
                                                       "at level \"rounds\"")));
  EXPECT_EQ(report.committed, whole.committed);
  EXPECT_EQ(report.secured, whole.secured);
  EXPECT_EQ(report.counted_twice, 0u);
  EXPECT_EQ(report.silent, 0u);
  EXPECT_EQ(report.stages.at(0).anchors, whole.stages.at(0).anchors);
}

TEST(AuditLevelsTest, LevelsMayDifferBetweenProcesses) {
  const AuditReport report =
      at(EventLevel::kRounds, Story::whole(), [](const Session& who) { return who == Story::peer(1, 0); }).judge();
  EXPECT_EQ(report.verdict(), AuditVerdict::kIncomplete) << audit_table(report);
  Story edited = at(EventLevel::kRounds, Story::whole(), [](const Session& who) { return who == Story::peer(1, 0); });
  edited.remove_all(Story::peer(1, 0), EventKind::kSettled);
  EXPECT_EQ(edited.judge().verdict(), AuditVerdict::kViolated) << "its own level has these lines";
}

// What is left is held to what was decided.
TEST(AuditLevelsTest, WithoutEntriesRoundsStepsAndAnchorsAreStillJudged) {
  Story anchor = at(EventLevel::kRounds, Story::whole());
  ++*anchor.event(EventKind::kAnchor).tag;
  EXPECT_THAT(anchor.judge().violations, Contains(HasSubstr("does not hold what the rounds secured")));
  Story report = at(EventLevel::kRounds, Story::whole());
  ++*report.event(EventKind::kRoundReport).tag;
  EXPECT_THAT(report.judge().violations, Contains(HasSubstr("the tag of its report")));
  Story foreign = at(EventLevel::kRounds, Story::whole());
  foreign.event(EventKind::kRoundReport).secured->front().serials.front() = 77;
  EXPECT_THAT(foreign.judge().violations, Contains(HasSubstr("reports entry 77, which the trainer did not commit")));
  Story step = at(EventLevel::kRounds, Story::whole());
  step.event(EventKind::kStepped).entries->front().serial = 77;
  EXPECT_THAT(step.judge().violations, Contains(HasSubstr("is in an inner step, the trainer did not commit it")));
  Story unreported = at(EventLevel::kRounds, Story::whole());
  unreported.remove_all(Story::peer(0, 0), EventKind::kRoundReport);
  EXPECT_THAT(unreported.judge().violations, Contains(HasSubstr("which did not report them")));
}

TEST(AuditLevelsTest, ALineThatTheLevelLeavesOutContradictsIt) {
  Story story = at(EventLevel::kRounds, Story::whole());
  story.say_of(EventKind::kEntry, Story::winner(0, 0), 0, 0);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("which the session's level \"rounds\" leaves out")));
  Story unknown = Story::whole();
  unknown.lines.front().second.level = "some";
  EXPECT_THAT(unknown.judge().violations, Contains(HasSubstr("\"some\" is no level of events")));
}

}  // namespace
}  // namespace shoal
