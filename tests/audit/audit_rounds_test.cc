// Rounds, anchors and sessions: what the authority wrote, and what replicas hold by it.
#include "tests/audit/audit_story.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(AuditRoundsTest, FindsAnAnchorThatHoldsMoreThanItsRounds) {
  Story story = Story::whole();
  EventRecord& anchor = story.find(Story::of(EventKind::kAnchor, 0, 2));
  anchor.tag = *anchor.tag + count_tag(Story::microbatch(3));
  const AuditReport report = story.judge();
  EXPECT_FALSE(report.stages.at(0).tag_fits);
  EXPECT_TRUE(report.stages.at(1).tag_fits);
  EXPECT_EQ(report.violation_count, 1u);
}

TEST(AuditRoundsTest, FindsReplicasThatDiffer) {
  Story story = Story::whole();
  Digest other;
  other.bytes[0] = 99;
  story.event(EventKind::kAnchor).digest = other;
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("differs from that in")));
}

TEST(AuditRoundsTest, FindsAMissingLastAnchor) {
  Story story = Story::whole();
  story.go();
  EXPECT_EQ(story.remove(Story::of(EventKind::kAnchor, 0, 2)), 2u);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("no replica of stage 0")));
}

TEST(AuditRoundsTest, FindsAnAnchorThatSkipsAVersion) {
  Story story = Story::whole();
  EXPECT_EQ(story.remove(Story::of(EventKind::kAnchor, 1, 1)), 2u);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("its anchor goes from version 0 to 2")));
}

TEST(AuditRoundsTest, FindsAnAnchorByARoundWithoutTheSession) {
  Story story = Story::whole();
  story.remove(Story::of(EventKind::kRoundEnter, 1, 2));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("by a round in which it took no part")));
}

TEST(AuditRoundsTest, FindsARoundCommittedTwiceWithDifferentContent) {
  Story story = Story::whole();
  EventRecord again = story.event(EventKind::kRoundCommit);
  again.secured->at(0).serials.clear();
  story.say(Story::trainer(), again);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("twice with different content")));
}

TEST(AuditRoundsTest, FindsTwoRoundsOfOneVersion) {
  Story story = Story::whole();
  EventRecord fork = story.event(EventKind::kRoundCommit);
  fork.round = RoundId{9};
  fork.secured->clear();
  story.say(Story::trainer(), fork);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was made by rounds 1 and 9")));
}

TEST(AuditRoundsTest, FindsARoundThatNobodyOpened) {
  Story story = Story::whole();
  story.remove(Story::of(EventKind::kRoundOpen, 0, 2));
  const AuditReport report = story.judge();
  EXPECT_THAT(report.violations, Contains(HasSubstr("was committed and not opened before")));
  EXPECT_THAT(report.violations, Contains(HasSubstr("which nobody opened")));
}

TEST(AuditRoundsTest, FindsARoundUnlikeItsOpening) {
  Story story = Story::whole();
  story.find(Story::of(EventKind::kRoundOpen, 0, 2)).version = Version{0};
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("another version or step than it was opened with")));
  story = Story::whole();
  story.find(Story::of(EventKind::kRoundOpen, 0, 2)).members = 3;
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("names 2 members, it was opened with 3")));
}

TEST(AuditRoundsTest, FindsARoundAbandonedAndCommitted) {
  Story story = Story::whole();
  story.insert_before(Story::of(EventKind::kRoundCommit, 1, 2), Story::trainer(),
                      {.event = EventKind::kRoundAbandon, .stage = StageId{1}, .round = RoundId{2}, .cause = "late"});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was abandoned and committed")));
}

TEST(AuditRoundsTest, AnAbandonedRoundIsFollowedByAnother) {
  Story story;
  story.open();
  story.train(0);
  story.train(1);
  story.say(Story::trainer(), {.event = EventKind::kRoundOpen,
                               .stage = StageId{0},
                               .round = RoundId{1},
                               .version = Version{0},
                               .step = StepId{0},
                               .members = 2});
  const EventRecord enter{.event = EventKind::kRoundEnter,
                          .stage = StageId{0},
                          .round = RoundId{1},
                          .version = Version{0},
                          .step = StepId{0}};
  story.say(Story::peer(0, 0), enter);
  story.say(Story::trainer(),
            {.event = EventKind::kRoundAbandon, .stage = StageId{0}, .round = RoundId{1}, .cause = "no agreement"});
  story.say(Story::peer(0, 0), {.event = EventKind::kRoundDrop, .stage = StageId{0}, .round = RoundId{1}});
  story.round(0, 2, 0, 2, 1);
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  story.remove_all(Story::peer(0, 0), EventKind::kRoundDrop);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("neither made an anchor nor was abandoned")));
}

TEST(AuditRoundsTest, FindsARoundOfASessionThatWasOverOrNeverJoined) {
  Story story = Story::whole();
  story.insert_before(Story::of(EventKind::kRoundCommit, 1, 2), Story::trainer(),
                      session_over_event(Story::peer(1, 1), StageId{1}, "silent"));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr(", which was over")));
  story = Story::whole();
  story.remove([](const Session&, const EventRecord& r) {
    return r.event == EventKind::kMember && r.about == Story::peer(1, 1);
  });
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr(", which never joined")));
}

TEST(AuditRoundsTest, FindsASessionThatJoinedForAnotherStageOrKey) {
  Story story = Story::whole();
  story.event(EventKind::kMember).stage = StageId{1};
  EXPECT_EQ(story.judge().verdict(), AuditVerdict::kViolated);
  story = Story::whole();
  story.event(EventKind::kMember).about_peer = Story::key_of(Story::peer(1, 1));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("is no session of peer")));
}

TEST(AuditRoundsTest, FindsASessionThatIsOverForTwoCauses) {
  Story story = story_with_a_loss(true);
  story.resume(1);
  story.say(Story::trainer(1), session_over_event(Story::peer(1, 1), StageId{1}, "silent"));
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  story.resume(2);
  story.say(Story::trainer(2), session_over_event(Story::peer(1, 1), StageId{1}, "left"));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was over before, for another cause")));
}

TEST(AuditRoundsTest, FindsAReportThatItsRoundDoesNotName) {
  Story story = Story::whole();
  EventRecord& report = story.find(Story::of(EventKind::kRoundReport, 0, 1));
  report.tag = *report.tag + 1;
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("the tag of its report is not the sum")));
  story = Story::whole();
  EXPECT_GT(story.remove(Story::of(EventKind::kRoundReport, 0, 1)), 0u);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("which did not report them")));
}

TEST(AuditRoundsTest, FindsAShiftFromTheWrongState) {
  // The second replica of stage 0 misses round 2, which names its work.
  const auto told = [](const std::string& cause) {
    Story story = Story::whole();
    const Session late = Story::peer(0, 1);
    for (const EventKind name : {EventKind::kRoundEnter})
      story.remove([&](const Session& who, const EventRecord& r) {
        return who == late && r.event == name && r.round == RoundId{2};
      });
    const auto anchor = [&](const Session& who, const EventRecord& r) {
      return who == late && r.event == EventKind::kAnchor && r.version == Version{2};
    };
    story.remove([&](const Session& who, const EventRecord& r) {
      return who == late && r.event == EventKind::kRoundReport && r.round == RoundId{2};
    });
    EventRecord enter{.event = EventKind::kRoundEnter,
                      .stage = StageId{0},
                      .round = RoundId{2},
                      .version = Version{1},
                      .step = StepId{0}};
    EventRecord report{.event = EventKind::kRoundReport,
                       .stage = StageId{0},
                       .round = RoundId{2},
                       .tag = count_tag(Story::microbatch(3)),
                       .secured = std::vector<Secured>{{late, {Story::winner(3, 0).serial}}}};
    const auto merged = Story::of(EventKind::kMerged, Story::winner(3, 0));
    story.insert_before(merged, late, enter);
    story.insert_before(merged, late, report);
    story.insert_before(
        merged, late,
        {.event = EventKind::kBehind, .stage = StageId{0}, .version = Version{2}, .cause = "a link broke"});
    story.insert_before(anchor, late,
                        {.event = EventKind::kShifted, .stage = StageId{0}, .version = Version{2}, .cause = cause});
    return story.judge();
  };
  EXPECT_TRUE(told("snapshot").clean()) << audit_table(told("snapshot"));
  EXPECT_THAT(told("anchor").violations, Contains(HasSubstr("shifts from its anchor")));
}

TEST(AuditRoundsTest, FindsARoundThatWasAbandonedAndNeverOpened) {
  Story story = Story::whole();
  story.say(Story::trainer(),
            {.event = EventKind::kRoundAbandon, .stage = StageId{0}, .round = RoundId{9}, .cause = "a member left"});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("round 9 of stage 0 was abandoned and never opened")));
}

}  // namespace
}  // namespace shoal
