// A peer's own books, and what the trainer's say of them.
#include "tests/audit/audit_story.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const EntryName kEntry = Story::winner(0, 0);

std::vector<std::string> judged_with(EventKind event, const EntryName& entry = kEntry, const char* cause = "") {
  Story story;
  story.open();
  for (std::uint64_t serial = 0; serial < 2; ++serial) story.train(serial);
  story.say_of(event, entry, 0, 0, cause);
  return story.judge().violations;
}

TEST(AuditPeersTest, FindsPeersThatBreakTheirOwnBooks) {
  EXPECT_THAT(judged_with(EventKind::kForward), Contains(HasSubstr("went forward a second time")));
  EXPECT_THAT(judged_with(EventKind::kCounted), Contains(HasSubstr("counted a second time")));
  EXPECT_THAT(judged_with(EventKind::kSettled), Contains(HasSubstr("was settled twice")));
  EXPECT_THAT(judged_with(EventKind::kUndo, kEntry, "lost"), Contains(HasSubstr("undone after it was settled")));
  EXPECT_THAT(judged_with(EventKind::kUndone), Contains(HasSubstr("undone after it was settled")));
  EXPECT_THAT(judged_with(EventKind::kDrop, kEntry, "lost"), Contains(HasSubstr("dropped after it was counted")));
  EXPECT_THAT(judged_with(EventKind::kEntry), Contains(HasSubstr("was made twice")));
  EXPECT_THAT(judged_with(EventKind::kMerged), Contains(HasSubstr("no committed round names it")));
  EXPECT_THAT(judged_with(EventKind::kCommitGone), Contains(HasSubstr("answered gone after it was settled")));
  const EntryName never{kEntry.session, 9};
  EXPECT_THAT(judged_with(EventKind::kCounted, never), Contains(HasSubstr("which was never made")));
  EXPECT_THAT(judged_with(EventKind::kEntry, never), Contains(HasSubstr("in front of it was not")));
}

// A peer names who sent it an entry: at stage 0 the trainer, behind it a session that joined.
TEST(AuditPeersTest, FindsAnEntryOfASessionThatMayNotSendIt) {
  const auto told_of = [](const Session& sender, int stage) {
    Story story;
    story.open();
    const EntryName entry{Story::peer(stage, 0), 1};
    story.say_of(EventKind::kEntry, entry, 0, stage);
    story.lines.back().second.about = sender;
    return story.judge().violations;
  };
  EXPECT_THAT(told_of(Story::peer(1, 1), 0), Contains(HasSubstr("which is no trainer's")));
  EXPECT_THAT(told_of(Session{77, 1}, 1), Contains(HasSubstr("which never joined")));
  EXPECT_THAT(told_of(Story::trainer(), 0), Not(Contains(HasSubstr("which is no trainer's"))));
}

TEST(AuditPeersTest, FindsWhatWasCommittedAndNeverCountedOrToldByItsPeer) {
  Story story = Story::whole();
  story.go();
  story.remove(EventKind::kCounted, kEntry);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("its peer never counted it")));
  for (const EventKind event : {EventKind::kEntry, EventKind::kForward, EventKind::kSettled, EventKind::kMerged})
    story.remove(event, kEntry);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("its peer never wrote of it")));
}

TEST(AuditPeersTest, FindsEachStepOfAnEntryThatIsNotThere) {
  const auto without = [](EventKind event) {
    Story story = Story::whole();
    story.go();
    EXPECT_EQ(story.remove(event, kEntry), 1u);
    return story.judge().violations;
  };
  EXPECT_THAT(without(EventKind::kForward), Contains(HasSubstr("was counted and never went forward")));
  EXPECT_THAT(without(EventKind::kSettled), Contains(HasSubstr("its peer never settled it")));
  EXPECT_THAT(without(EventKind::kMerged), Contains(HasSubstr("which marked 0 as merged")));
  Story story = Story::whole();
  story.remove_all(kEntry.session, EventKind::kStepped);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was marked merged and in no inner step")));
}

TEST(AuditPeersTest, FindsAnEntryOfAnotherMicrobatch) {
  Story story = Story::whole();
  story.find(Story::of(EventKind::kEntry, Story::winner(2, 1))).microbatch = Story::microbatch(3);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("at its peer and of")));
}

TEST(AuditPeersTest, FindsAnEntryOfAMicrobatchThatWasNeverIssued) {
  Story story;
  story.open();
  story.issue(0);
  story.count({Story::peer(0, 1), 1}, 1, 0);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("which was never issued")));
}

// Behind the end of a run, or before the trainer comes to it: the receiver cannot know, and wrote what it was sent.
TEST(AuditPeersTest, AMicrobatchThatAMemberSentOnAndNobodyIssuedIsAGapThatNamesTheMember) {
  Story story = Story::whole();
  story.count({Story::peer(1, 0), 3}, 40, 1);
  std::ostringstream name;
  name << Story::peer(0, 0);
  const AuditReport report = story.judge();
  EXPECT_THAT(report.incomplete, Contains(HasSubstr("session " + name.str() + " sent microbatch")));
  EXPECT_THAT(report.violations, IsEmpty());
  story.find(Story::of(EventKind::kEntry, {Story::peer(1, 0), 3})).stage = StageId{0};
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("which was never issued")))
      << "the trainer alone sends there";
}

TEST(AuditPeersTest, FindsAnEntryThatAnotherStageThanTheOneBeforeSent) {
  Story story = Story::whole();
  story.find(Story::of(EventKind::kEntry, Story::winner(2, 1))).about = Story::peer(1, 1);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was sent by session")));
}

// A member may send on microbatches of its own making; its file is nobody's.
TEST(AuditPeersTest, EntriesOfATrainerWithoutAFileAreAGap) {
  Story story;
  story.open();
  story.issue(0);
  const Session taker = Story::peer(0, 1);
  const EventRecord made{.event = EventKind::kEntry,
                         .microbatch = MicrobatchId{Story::microbatch(0).trainer + 1, 7},
                         .stage = StageId{0},
                         .about = Story::trainer(),
                         .entry_name = EntryName{taker, 1}};
  story.say(taker, made);
  const AuditReport report = story.judge();
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_THAT(report.incomplete, ElementsAre(HasSubstr("1 entries of trainer 0000000000000078 were made, and no")));
}

TEST(AuditPeersTest, FindsTwoLivingEntriesOfOneMicrobatch) {
  Story story;
  story.open();
  story.issue(0);
  story.count({Story::peer(0, 1), 1}, 0, 0);
  story.count({Story::peer(0, 1), 2}, 0, 0);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("of it had not ended")));
}

TEST(AuditPeersTest, FindsAGoneAnswerForWhatARoundSecured) {
  Story story = Story::whole();
  story.say_of(EventKind::kCommitGone, kEntry, 0, 0);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("answered gone, yet a round secured it")));
}

// A second entry of microbatch 0 at stage 0, which is undone; then microbatch 0 is trained, and 1 is only issued.
Story story_with_a_branch() {
  const EntryName loser{Story::peer(0, 1), 1};
  Story story;
  story.open();
  story.train(0);
  const auto settled = Story::of(EventKind::kSettled, Story::winner(0, 0));
  for (const EventKind event :
       {EventKind::kEntry, EventKind::kForward, EventKind::kCounted, EventKind::kUndo, EventKind::kUndone})
    story.insert_before(settled, loser.session,
                        {.event = event,
                         .microbatch = Story::microbatch(0),
                         .stage = StageId{0},
                         .about = Story::trainer(),
                         .entry_name = loser,
                         .cause = event == EventKind::kUndo ? "its microbatch is committed along another path" : ""});
  story.round(0, 1, 0, 1);
  story.round(1, 1, 0, 1);
  story.issue(1);
  return story;
}

TEST(AuditPeersTest, AnUndoneBranchIsNoViolation) {
  Story story = story_with_a_branch();
  story.end();
  const AuditReport report = story.judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_EQ(report.branches, 1u);
  EXPECT_EQ(report.undone, 1u);
  EXPECT_EQ(report.unfinished, 1u);
}

TEST(AuditPeersTest, FindsAnUndoThatTheDeviceNeverTookOut) {
  Story story = story_with_a_branch();
  story.remove_all(Story::peer(0, 1), EventKind::kUndone);
  for (std::uint64_t serial = 2; serial < 5; ++serial) {
    story.issue(serial);
    story.count({Story::peer(0, 1), serial}, serial, 0);
  }
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was not taken out")));
}

TEST(AuditPeersTest, FindsARoundThatSecuredWhatWasUndone) {
  Story story = story_with_a_branch();
  story.find(Story::of(EventKind::kRoundCommit, 0, 1)).secured->at(1).serials.push_back(1);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was secured although its peer had undone it")));
}

TEST(AuditPeersTest, FindsAnInnerStepThatIsNotWhatItsEntriesSay) {
  const auto judged = [](const std::function<void(EventRecord&)>& edit) {
    Story story = Story::whole();
    edit(story.find([](const Session& who, const EventRecord& r) {
      return who == kEntry.session && r.event == EventKind::kStepped;
    }));
    return story.judge().violations;
  };
  EXPECT_THAT(judged([](EventRecord& r) { r.targets = 65; }), Contains(HasSubstr("its entries have 64")));
  EXPECT_THAT(judged([](EventRecord& r) { r.tag = *r.tag + 1; }), Contains(HasSubstr("the tag differs")));
  EXPECT_THAT(judged([](EventRecord& r) { r.delays->back() = 15; }), Contains(HasSubstr("its delays are of 63")));
  EXPECT_THAT(judged([](EventRecord& r) { r.delays->clear(); }), Contains(HasSubstr("holds nothing")));
  EXPECT_THAT(judged([](EventRecord& r) { r.delays->push_back(0); }), Contains(HasSubstr("holds nothing")));
  EXPECT_THAT(judged([](EventRecord& r) { r.delays.reset(); }), Contains(HasSubstr("delay")));
  EXPECT_THAT(judged([](EventRecord& r) { r.settle_wait_ms.reset(); }), Contains(HasSubstr("settle_wait_ms")));
  EXPECT_THAT(judged([](EventRecord& r) { r.entries->clear(); }), Contains(HasSubstr("without an entry")));
  EXPECT_THAT(judged([](EventRecord& r) {
                r.entries->push_back({Story::peer(0, 1), 1});
              }),
              Contains(HasSubstr("it is none of session")));
}

TEST(AuditPeersTest, FindsALineAtAnotherStageOrOfAnotherSession) {
  Story story = Story::whole();
  story.find(Story::of(EventKind::kCounted, kEntry)).stage = StageId{1};
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("serves stage 0")));
  story = Story::whole();
  story.find(Story::of(EventKind::kCounted, kEntry)).entry_name->session = Story::peer(0, 1);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("which is not of session")));
}

TEST(AuditPeersTest, FindsWorkOfASessionThatHadEndedOrDidNotServe) {
  Story story = Story::whole();
  story.say(Story::peer(0, 0), {.event = EventKind::kEnd, .stage = StageId{0}, .cause = "asked to"});
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  story.say_of(EventKind::kEntry, {Story::peer(0, 0), 3}, 3, 0);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr(", which had ended")));
  story = Story::whole();
  story.remove_all(Story::peer(0, 0), EventKind::kServing);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("before the session served")));
}

TEST(AuditPeersTest, AFencedSessionHasNoFurtherLineButThatItsProcessEnds) {
  const Session who = Story::peer(0, 0);
  const auto fenced = [&] {
    Story story = Story::whole();
    story.say(who, {.event = EventKind::kFenced, .stage = StageId{0}, .cause = "fenced: silent"});
    return story;
  };
  Story story = fenced();
  story.say(who, {.event = EventKind::kEnd, .stage = StageId{0}, .cause = "left"});
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  story.say(who, {.event = EventKind::kEnd, .stage = StageId{0}, .cause = "left"});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("ends a second time")));
  story = fenced();
  story.say(who, {.event = EventKind::kFenced, .stage = StageId{0}, .cause = "fenced: silent"});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("ends a second time")));
  story = fenced();
  story.say(who, {.event = EventKind::kForwardSent,
                  .microbatch = Story::microbatch(0),
                  .stage = StageId{0},
                  .about = Story::peer(1, 0),
                  .lease = Lease{who, 1}});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("forward_sent in session")));
}

TEST(AuditPeersTest, ValidationIsNotCounted) {
  const MicrobatchId validation{Story::microbatch(0).trainer | std::uint64_t{1} << 63, 0};
  const EntryName entry{Story::peer(0, 0), 3};
  Story story = Story::whole();
  const auto say = [&](EventKind event) {
    story.say(entry.session, {.event = event,
                              .microbatch = validation,
                              .stage = StageId{0},
                              .about = Story::trainer(),
                              .entry_name = entry});
  };
  say(EventKind::kEntry);
  say(EventKind::kForward);
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  say(EventKind::kCounted);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("of validation is counted")));
}

}  // namespace
}  // namespace shoal
