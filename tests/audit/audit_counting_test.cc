// What the trainer and the authority wrote, against each other: every contribution once, or lost by name.
#include "events/lost_causes.h"
#include "tests/audit/audit_story.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(AuditCountingTest, AWholeRunIsClean) {
  const AuditReport report = Story::whole().judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_TRUE(report.ended);
  EXPECT_EQ(report.issued, 4u);
  EXPECT_EQ(report.committed, 4u);
  EXPECT_EQ(report.unfinished, 0u);
  EXPECT_EQ(report.secured, 8u);
  EXPECT_EQ(report.rounds, 4u);
  EXPECT_EQ(report.stages.at(1).version, 2u);
  EXPECT_EQ(report.stages.at(1).anchors, 4u);
}

TEST(AuditCountingTest, FindsAnEntrySecuredByTwoRounds) {
  Story story = Story::whole();
  story.find(Story::of(EventKind::kRoundCommit, 0, 2)).secured->front().serials.push_back(Story::winner(0, 0).serial);
  const AuditReport report = story.judge();
  EXPECT_EQ(report.verdict(), AuditVerdict::kViolated);
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_EQ(report.stages.at(0).counted_twice, 1u);
  EXPECT_THAT(report.violations, Contains(HasSubstr("secured 2 times")));
  EXPECT_THAT(report.violations, Contains(HasSubstr("is not the sum over what it secured")));
}

TEST(AuditCountingTest, FindsALoserSecuredBesideTheWinner) {
  Story story = Story::whole();
  const EntryName loser{Story::peer(1, 1), 3};
  story.count(loser, 0, 1);
  story.find(Story::of(EventKind::kRoundCommit, 1, 1)).secured->at(1).serials.push_back(3);
  const AuditReport report = story.judge();
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_EQ(report.branches, 1u);
  EXPECT_THAT(report.violations, Contains(HasSubstr("which the trainer did not commit")));
}

TEST(AuditCountingTest, FindsASecuredMicrobatchThatIsAlsoLost) {
  Story story = Story::whole();
  story.insert_before([](const Session&, const EventRecord& r) { return r.event == EventKind::kEnd; }, Story::trainer(),
                      {.event = EventKind::kLost,
                       .microbatch = Story::microbatch(1),
                       .stage = StageId{0},
                       .entry_name = Story::winner(1, 0),
                       .cause = "gone"});
  const AuditReport report = story.judge();
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_EQ(report.lost, 1u);
  EXPECT_FALSE(report.stages.at(0).tag_fits);
  EXPECT_THAT(report.violations, Contains(HasSubstr("secured and also lost")));
  EXPECT_THAT(report.violations, Contains(HasSubstr("anchor + lost differs")));
}

TEST(AuditCountingTest, ANamedLossIsHonest) {
  Story story = story_with_a_loss(true);
  story.end();
  const AuditReport report = story.judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_EQ(report.lost, 1u);
  EXPECT_EQ(report.stages.at(1).lost, 1u);
}

TEST(AuditCountingTest, ASilentLossIsNot) {
  Story story = story_with_a_loss(false);
  const AuditReport open = story.judge();
  EXPECT_TRUE(open.clean()) << audit_table(open);
  EXPECT_EQ(open.undecided, 1u);
  story.end();
  const AuditReport ended = story.judge();
  EXPECT_EQ(ended.silent, 1u);
  EXPECT_THAT(ended.violations, Contains(HasSubstr("neither secured nor lost")));
  EXPECT_THAT(ended.violations, Contains(HasSubstr("anchor + lost differs")));
}

TEST(AuditCountingTest, FindsALossOfASessionThatWasNotOver) {
  Story story = story_with_a_loss(true);
  story.end();
  story.find([](const Session&, const EventRecord& r) { return r.event == EventKind::kLost; }).cause = "another cause";
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("its session was not over by that")));
}

// A living session's: no round comes any more.
TEST(AuditCountingTest, ALossByTheRunsEndIsHonestAndNeedsThatEnd) {
  for (const std::string_view cause : {kLostAtEnd, kLostWithoutStage}) {
    Story story = story_with_a_loss(true);
    story.event(EventKind::kLost).cause = cause;
    EXPECT_THAT(story.judge().violations, Contains(HasSubstr("nothing says that it did"))) << cause;
    story.end();
    const AuditReport report = story.judge();
    EXPECT_TRUE(report.clean()) << audit_table(report);
  }
}

TEST(AuditCountingTest, FindsALossAsGoneThatThePeerNeverAnswered) {
  Story story = story_with_a_loss(true);
  story.end();
  story.go();
  story.event(EventKind::kLost).cause = "gone";
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("its peer did not answer that")));
  story.insert_before([](const Session&, const EventRecord& r) { return r.event == EventKind::kLost; },
                      Story::peer(1, 1),
                      {.event = EventKind::kCommitGone,
                       .microbatch = Story::microbatch(3),
                       .stage = StageId{1},
                       .entry_name = Story::winner(3, 1)});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("answered gone after it was settled")));
}

TEST(AuditCountingTest, FindsTwoPathsOfOneMicrobatch) {
  Story story = Story::whole();
  story.insert_before(
      [](const Session&, const EventRecord& r) { return r.event == EventKind::kEnd; }, Story::trainer(),
      commit_event(Story::microbatch(0), {Story::winner(0, 0), EntryName{Story::peer(1, 1), 60}}, 2.0, 64));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("along two paths")));
}

TEST(AuditCountingTest, FindsAnEntryThatWinsTwice) {
  Story story = Story::whole();
  story
      .find([](const Session&, const EventRecord& r) {
        return r.event == EventKind::kCommit && r.microbatch == Story::microbatch(2);
      })
      .entries->at(1) = Story::winner(0, 1);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("won for two microbatches or stages")));
}

TEST(AuditCountingTest, FindsACommitThatWasNeverIssued) {
  Story story = Story::whole();
  story.remove_all(Story::trainer(), EventKind::kIssue);
  const AuditReport report = story.judge();
  EXPECT_EQ(report.issued, 0u);
  EXPECT_EQ(std::count_if(report.violations.begin(), report.violations.end(),
                          [](const std::string& v) { return v.ends_with("committed and not issued before"); }),
            4);
}

TEST(AuditCountingTest, FindsAHoleAmongTheIssues) {
  Story story = Story::whole();
  story.remove([](const Session&, const EventRecord& r) {
    return (r.event == EventKind::kIssue) && r.microbatch == Story::microbatch(1);
  });
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("in front of it never was")));
}

TEST(AuditCountingTest, FindsTwoLossesOfOneContributionThatNameDifferentEntries) {
  Story story = story_with_a_loss(true);
  EventRecord again = story.event(EventKind::kLost);
  story.resume(1);
  again.cause = "said again in other words";
  story.say(Story::trainer(1), again);
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  ++again.entry_name->serial;
  story.say(Story::trainer(1), again);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("is lost, another was committed")));
}

TEST(AuditCountingTest, FindsWhatIsSaidTwiceInOneLife) {
  for (const EventKind name : {EventKind::kIssue, EventKind::kCommit, EventKind::kMerged, EventKind::kRoundCommit,
                               EventKind::kRoundOpen, EventKind::kMember, EventKind::kEnd}) {
    Story story = Story::whole();
    story.repeat([&](const Session& who, const EventRecord& r) { return who == Story::trainer() && r.event == name; });
    EXPECT_EQ(story.judge().verdict(), AuditVerdict::kViolated) << name_of(name);
  }
}

TEST(AuditCountingTest, RepeatedLinesAfterAResumeAreOne) {
  Story story = Story::whole();
  story.remove_all(Story::trainer(), EventKind::kEnd);
  story.resume(1);
  story.say(Story::trainer(1), commit_event(Story::microbatch(0), {Story::winner(0, 0), Story::winner(0, 1)}, 2.0, 64));
  story.say(Story::trainer(1), EventRecord(story.event(EventKind::kRoundCommit)));
  story.end(1);
  const AuditReport report = story.judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_EQ(report.committed, 4u);
}

TEST(AuditCountingTest, FindsARepeatWithAnotherLoss) {
  Story story = Story::whole();
  story.remove_all(Story::trainer(), EventKind::kEnd);
  story.resume(1);
  story.say(Story::trainer(1), commit_event(Story::microbatch(0), {Story::winner(0, 0), Story::winner(0, 1)}, 2.5, 64));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("another loss or targets")));
}

TEST(AuditCountingTest, FindsADecisionBehindTheEnd) {
  Story story = Story::whole();
  story.issue(4);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("issue behind the end of the run")));
}

TEST(AuditCountingTest, FindsWhatTheTrainerMarkedMergedWithoutARound) {
  Story story = story_with_a_loss(true);
  story.say(Story::trainer(), {.event = EventKind::kMerged,
                               .microbatch = Story::microbatch(3),
                               .stage = StageId{1},
                               .entry_name = Story::winner(3, 1)});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("no committed round names it")));
}

TEST(AuditCountingTest, FindsASecuredEntryThatTheTrainerNeverMarkedMerged) {
  Story story = Story::whole();
  story.remove([](const Session& who, const EventRecord& r) {
    return who == Story::trainer() && r.event == EventKind::kMerged && r.entry_name == Story::winner(2, 1);
  });
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was secured and never marked merged")));
}

TEST(AuditCountingTest, AContradictionIsAViolation) {
  Story story = story_with_a_loss(true);
  story.say(Story::trainer(), {.event = EventKind::kContradiction,
                               .microbatch = Story::microbatch(3),
                               .stage = StageId{1},
                               .entry_name = Story::winner(3, 1),
                               .cause = "silent"});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("the trainer itself says")));
}

TEST(AuditCountingTest, FindsATrainLineThatSaysOtherTargetsOrAnotherLoss) {
  const auto judged = [](double loss, std::uint64_t targets) {
    Story story = Story::whole();
    story.insert_before([](const Session&, const EventRecord& r) { return r.event == EventKind::kEnd; },
                        Story::trainer(),
                        {.event = EventKind::kTrain, .step = StepId{1}, .loss = loss, .targets = targets});
    return story.judge();
  };
  EXPECT_TRUE(judged(2.0, 256).clean()) << audit_table(judged(2.0, 256));
  EXPECT_THAT(judged(2.0, 255).violations, Contains(HasSubstr("says 255 targets, committed were 256")));
  EXPECT_THAT(judged(2.1, 256).violations, Contains(HasSubstr("says loss 2.1")));
}

TEST(AuditCountingTest, WithoutATrainersFileNothingIsClean) {
  Story story = Story::whole();
  std::erase_if(story.lines, [](const auto& line) { return line.first == Story::trainer(); });
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("nothing to judge by")));
}

// What was evaluated: the newest version of every stage, and nothing of another.
TEST(AuditCountingTest, FindsAValidationOfAnchorsThatAreNotTheLastOnes) {
  const auto verdict = [](std::vector<Version> versions) {
    Story story = Story::whole();
    story.insert_before([](const Session&, const EventRecord& r) { return r.event == EventKind::kEnd; },
                        Story::trainer(),
                        {.event = EventKind::kValidation, .versions = std::move(versions), .loss = 2.0, .targets = 64});
    return story.judge();
  };
  EXPECT_TRUE(verdict({Version{2}, Version{2}}).clean());
  EXPECT_THAT(verdict({Version{2}, Version{1}}).violations,
              Contains(HasSubstr("validated version 1 of stage 1, its last round made 2")));
  EXPECT_THAT(verdict({Version{2}}).violations, Contains(HasSubstr("validated anchors of 1 stages, the run has 2")));
}

}  // namespace
}  // namespace shoal
