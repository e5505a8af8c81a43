// Restores: a stage whose newest version nobody has goes back to an earlier one, and what that takes back is named.
#include "tests/audit/audit_story.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;

const Session kFresh = Story::peer(0, 2);

CountTag tag_of(std::initializer_list<std::uint64_t> serials) {
  CountTag sum = 0;
  for (const std::uint64_t serial : serials) sum += count_tag(Story::microbatch(serial));
  return sum;
}

Digest digest_at(std::uint64_t version) { return Story::digest_of(0, version); }

// Of stage 0, by hand: a session alone opens, fills and ends a round that secures one microbatch.
struct Alone {
  Session who;
  std::uint64_t round = 0, version = 0, microbatch = 0;
  EntryName entry;
  CountTag anchor = 0;
};

EventRecord round_line(EventKind event, const Alone& a) {
  return {.event = event,
          .stage = StageId{0},
          .round = RoundId{a.round},
          .version = Version{a.version - 1},
          .step = StepId{0}};
}

void say_merged(Story& story, const EntryName& entry, std::uint64_t microbatch) {
  story.say(Story::trainer(), {.event = EventKind::kMerged,
                               .microbatch = Story::microbatch(microbatch),
                               .stage = StageId{0},
                               .entry_name = entry});
  story.say_of(EventKind::kMerged, entry, microbatch, 0);
}

// As far as its report.
void enter_alone(Story& story, const Alone& a) {
  EventRecord open = round_line(EventKind::kRoundOpen, a);
  open.members = 1;
  story.say(Story::trainer(), open);
  story.say(a.who, round_line(EventKind::kRoundEnter, a));
  story.say(a.who, {.event = EventKind::kRoundReport,
                    .stage = StageId{0},
                    .round = RoundId{a.round},
                    .tag = tag_of({a.microbatch}),
                    .secured = std::vector<Secured>{{a.who, {a.entry.serial}}}});
}

void commit_alone(Story& story, const Alone& a) {
  RoundCommit commit;
  commit.stage = StageId{0};
  commit.round = RoundId{a.round};
  commit.version = Version{a.version};
  commit.digest = digest_at(a.version);
  commit.tag = tag_of({a.microbatch});
  commit.secured = {{a.who, {a.entry.serial}}};
  story.say(Story::trainer(), event_of(commit));
}

void round_alone(Story& story, const Alone& a) {
  enter_alone(story, a);
  commit_alone(story, a);
  say_merged(story, a.entry, a.microbatch);
  story.say(a.who, anchor_event(StageId{0}, Version{a.version}, a.anchor, digest_at(a.version)));
}

void join(Story& story, const Session& who, std::uint64_t version) {
  story.say(who, {.event = EventKind::kStart});
  story.say(Story::trainer(), {.event = EventKind::kMember,
                               .stage = StageId{0},
                               .about = who,
                               .about_peer = Story::key_of(who),
                               .state = "joined",
                               .cause = "fewest members"});
  story.say(who, {.event = EventKind::kServing, .stage = StageId{0}, .version = Version{version}});
}

// Microbatch 4, at stage 0 by the fresh session; `anchor`: the tag of that one's anchor.
void train_fresh(Story& story, CountTag anchor) {
  const EntryName entry{kFresh, 1};
  story.issue(4);
  story.count(entry, 4, 0);
  story.count(Story::winner(4, 1), 4, 1);
  story.say(Story::trainer(), commit_event(Story::microbatch(4), {entry, Story::winner(4, 1)}, 2.0, 64));
  story.say_of(EventKind::kSettled, entry, 4, 0);
  story.settle(4, 1);
  story.say(kFresh, {.event = EventKind::kStepped,
                     .stage = StageId{0},
                     .window = WindowSlot::kA,
                     .tag = anchor + tag_of({4}),
                     .entries = std::vector<EntryName>{entry},
                     .targets = 64,
                     .delay_mean = 0.25,
                     .delays = std::vector<std::uint64_t>{48, 16},
                     .settle_wait_ms = 5});
}

EventRecord restore_to(std::uint64_t version) {
  std::vector<Secured> taken_back = {{Story::peer(0, 0), {2}}, {Story::peer(0, 1), {2}}};
  if (version == 0) taken_back = {{Story::peer(0, 0), {1, 2}}, {Story::peer(0, 1), {1, 2}}};
  return restored_event(StageId{0}, RoundId{3}, Version{3}, Version{version}, digest_at(version),
                        Story::tag_of(2 * version, 4), taken_back, "nobody has version 2");
}

// Both replicas of stage 0 die behind version 2; the stage goes back and goes on with a fresh session, whose round
// makes version 4. The run has not ended.
Story restored(std::uint64_t back_to = 1) {
  Story story;
  story.open();
  for (std::uint64_t half = 0; half < 2; ++half) {
    for (std::uint64_t serial = 2 * half; serial < 2 * half + 2; ++serial) story.train(serial);
    for (int stage = 0; stage < 2; ++stage) story.round(stage, half + 1, 2 * half, 2 * half + 2);
  }
  for (int replica = 0; replica < 2; ++replica)
    story.say(Story::trainer(), session_over_event(Story::peer(0, replica), StageId{0}, "silent"));
  story.say(Story::trainer(), restore_to(back_to));
  join(story, kFresh, 3);
  const CountTag anchor = Story::tag_of(0, 2 * back_to);
  train_fresh(story, anchor);
  round_alone(story, {kFresh, 4, 4, 4, {kFresh, 1}, anchor + tag_of({4})});
  story.round(1, 3, 4, 5);
  return story;
}

// What `edit` does to the restore's line is found.
std::vector<std::string> with(const std::function<void(EventRecord&)>& edit) {
  Story story = restored();
  edit(story.event(EventKind::kRestored));
  story.end();
  EXPECT_EQ(story.judge().verdict(), AuditVerdict::kViolated);
  return story.judge().violations;
}

TEST(AuditRestoresTest, ARestoreThatNamesWhatItTakesBackIsClean) {
  for (const std::uint64_t back_to : {1, 0}) {
    Story story = restored(back_to);
    story.end();
    const AuditReport report = story.judge();
    EXPECT_TRUE(report.clean()) << audit_table(report);
    EXPECT_EQ(report.taken_back, 4 - 2 * back_to);
    EXPECT_EQ(report.secured, 6 + 2 * back_to);
    EXPECT_EQ(report.lost, 0u);
    EXPECT_EQ(report.rounds, 6u);
    EXPECT_EQ(report.restores, 1u);
    EXPECT_EQ(report.stages.at(0).taken_back, 4 - 2 * back_to);
    EXPECT_EQ(report.stages.at(0).rounds, 3u);
    EXPECT_EQ(report.stages.at(0).restores, 1u);
    EXPECT_EQ(report.stages.at(0).version, 4u);
    EXPECT_EQ(report.stages.at(1).restores, 0u);
  }
}

TEST(AuditRestoresTest, TheReportShowsThem) {
  EXPECT_THAT(audit_table(restored().judge()), HasSubstr("stage 0: restored 1 time, taken back 2\n"));
  EXPECT_THAT(audit_table(restored().judge()), HasSubstr("undecided 0, taken back 2)"));
  EXPECT_THAT(audit_json(restored().judge()), HasSubstr("\"taken_back\": 2"));
  EXPECT_THAT(audit_json(restored().judge()), HasSubstr("\"restores\": 1"));
  EXPECT_THAT(audit_table(Story::whole().judge()), Not(HasSubstr("taken back")));
  EXPECT_THAT(audit_json(Story::whole().judge()), HasSubstr("\"taken_back\": 0"));
}

// Nobody wrote an anchor line of it: who served it had it from a checkpoint.
TEST(AuditRestoresTest, ARunMayEndAtAVersionThatARestoreMade) {
  Story story = Story::whole();
  story.remove_all(Story::trainer(), EventKind::kEnd);
  story.say(Story::trainer(), restore_to(1));
  join(story, kFresh, 3);
  story.end();
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  story.say(Story::trainer(), restore_to(1));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("restored behind the end of the run")));
}

TEST(AuditRestoresTest, FindsAnEntryThatIsLeftOut) {
  const auto violations = with([](EventRecord& r) {
    r.secured->at(1).serials.clear();
    r.tag = tag_of({2});
  });
  EXPECT_THAT(violations, Contains(HasSubstr("leaves out 1 entries")));
  EXPECT_THAT(violations, Contains(HasSubstr("anchor + lost + taken back differs")));
}

TEST(AuditRestoresTest, FindsAForeignEntry) {
  const auto secured_before = [](EventRecord& r) {
    r.secured->at(0).serials.push_back(1);
    r.tag = *r.tag + tag_of({0});
  };
  EXPECT_THAT(with(secured_before), Contains(HasSubstr("which no round behind version 1 of stage 0 secured")));
  const auto of_another_stage = [](EventRecord& r) {
    r.secured->push_back({Story::peer(1, 0), {2}});
    r.tag = *r.tag + tag_of({2});
  };
  EXPECT_THAT(with(of_another_stage), Contains(HasSubstr("which no round behind version 1 of stage 0 secured")));
  const auto twice = [](EventRecord& r) {
    r.secured->at(0).serials.push_back(2);
    r.tag = *r.tag + tag_of({2});
  };
  EXPECT_THAT(with(twice), Contains(HasSubstr("which was taken back before")));
}

TEST(AuditRestoresTest, FindsAWrongTag) {
  EXPECT_THAT(with([](EventRecord& r) { r.tag = *r.tag + 1; }),
              Contains(HasSubstr("is not the sum over what it takes back")));
}

TEST(AuditRestoresTest, FindsAWrongDigest) {
  EXPECT_THAT(with([](EventRecord& r) { r.digest = digest_at(2); }),
              Contains(HasSubstr("the digest of version 3 of stage 0 is not that of version 1")));
}

TEST(AuditRestoresTest, FindsAVersionThatIsNotBelowTheNewest) {
  for (const std::uint64_t back_to : {2, 3, 9})
    EXPECT_THAT(with([&](EventRecord& r) { r.back_to = Version{back_to}; }),
                Contains(HasSubstr("where it is not below the newest")));
  EXPECT_THAT(with([](EventRecord& r) { r.version = Version{0}; }), Contains(HasSubstr("makes version 0")));
}

TEST(AuditRestoresTest, FindsAnAnchorThatStillHoldsWhatWasTakenBack) {
  Story story = restored();
  EventRecord& anchor = story.find(Story::of(EventKind::kAnchor, 0, 4));
  anchor.tag = *anchor.tag + tag_of({2});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("does not hold what the rounds secured")));
}

// A second restore goes back from version 4.
TEST(AuditRestoresTest, GoesBackAlongTheCurrentLineAlone) {
  const auto judged = [](std::uint64_t back_to, std::uint64_t digest_of) {
    Story story = restored();
    story.say(Story::trainer(), restored_event(StageId{0}, RoundId{5}, Version{5}, Version{back_to},
                                               digest_at(digest_of), tag_of({4}), {{kFresh, {1}}}, "nobody has it"));
    story.end();
    return story.judge();
  };
  for (const std::uint64_t back_to : {1, 3}) {
    const AuditReport report = judged(back_to, 1);
    EXPECT_TRUE(report.clean()) << audit_table(report);
    EXPECT_EQ(report.taken_back, 3u);
    EXPECT_EQ(report.restores, 2u);
  }
  EXPECT_THAT(judged(2, 2).violations, Contains(HasSubstr("left behind by the restore that made version 3")));
}

TEST(AuditRestoresTest, FindsAnEntryThatIsSecuredAgain) {
  Story story = restored();
  EventRecord& round = story.find(Story::of(EventKind::kRoundCommit, 0, 4));
  round.secured->push_back({Story::peer(0, 0), {2}});
  round.tag = *round.tag + tag_of({2});
  const AuditReport report = story.judge();
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_THAT(report.violations, Contains(HasSubstr("#2, which was taken back")));
}

TEST(AuditRestoresTest, FindsWhatIsTakenBackAndLost) {
  Story story = restored();
  story.say(Story::trainer(), {.event = EventKind::kLost,
                               .microbatch = Story::microbatch(2),
                               .stage = StageId{0},
                               .entry_name = Story::winner(2, 0),
                               .cause = "silent"});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was taken back and also lost")));
}

TEST(AuditRestoresTest, FindsALaterRoundFromTheVersionThatIsGone) {
  Story story = restored();
  story.find(Story::of(EventKind::kRoundOpen, 0, 4)).version = Version{2};
  story.find(Story::of(EventKind::kRoundCommit, 0, 4)).version = Version{3};
  const AuditReport report = story.judge();
  EXPECT_THAT(report.violations, Contains(HasSubstr("starts from version 2, the newest is 3")));
  EXPECT_THAT(report.violations, Contains(HasSubstr("version 3 of stage 0 was made by rounds 3 and 4")));
}

TEST(AuditRestoresTest, ItsNumberRisesWithThoseOfTheRounds) {
  EXPECT_THAT(with([](EventRecord& r) { r.round = RoundId{2}; }), Contains(HasSubstr("twice with different content")));
  EXPECT_THAT(with([](EventRecord& r) { r.round = RoundId{5}; }),
              Contains(HasSubstr("round 4 of stage 0 is opened behind round 5")));
  Story story = restored();
  story.insert_before([](const Session&, const EventRecord& r) { return r.event == EventKind::kRestored; },
                      Story::trainer(),
                      {.event = EventKind::kRoundAbandon, .stage = StageId{0}, .round = RoundId{3}, .cause = "late"});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("is restored by round 3, behind round 3")));
}

TEST(AuditRestoresTest, AResumedAuthorityMaySayItAgainUnchanged) {
  Story story = restored();
  const EventRecord again = story.event(EventKind::kRestored);
  story.resume(1);
  story.say(Story::trainer(1), again);
  story.end(1);
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  EXPECT_EQ(story.judge().taken_back, 2u);
  EXPECT_EQ(story.judge().restores, 1u);
  story = restored();
  story.say(Story::trainer(), again);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was committed twice in one life")));
}

TEST(AuditRestoresTest, FindsARepeatWithOtherContent) {
  const auto said_again = [](const std::function<void(EventRecord&)>& edit) {
    Story story = restored();
    EventRecord again = story.event(EventKind::kRestored);
    edit(again);
    story.resume(1);
    story.say(Story::trainer(1), again);
    return story.judge().violations;
  };
  const auto differs = Contains(HasSubstr("committed twice with different content"));
  EXPECT_THAT(said_again([](EventRecord& r) { r.secured->pop_back(); }), differs);
  EXPECT_THAT(said_again([](EventRecord& r) { r.back_to = Version{0}; }), differs);
  EXPECT_THAT(said_again([](EventRecord& r) { r.event = EventKind::kRoundCommit, r.step = StepId{0}; }), differs);
}

TEST(AuditRestoresTest, WithoutTheLineOfARoundItLeavesTheRunIncomplete) {
  Story story = restored();
  story.remove(Story::of(EventKind::kRoundCommit, 0, 2));
  story.lose_before([](const Session& who, const EventRecord& r) {
    return who == Story::trainer() && r.event == EventKind::kMerged && r.entry_name == Story::winner(2, 0);
  });
  EXPECT_EQ(story.judge().verdict(), AuditVerdict::kIncomplete) << audit_table(story.judge());
}

// Replica 1 stands at version 1 when replica 0, which alone has version 2, dies; `named`: round 2 names its work.
Story shifted(bool named, const std::string& cause) {
  const Session dead = Story::peer(0, 0), late = Story::peer(0, 1);
  const EntryName entry = Story::winner(3, 0);
  Story story;
  story.open();
  for (std::uint64_t serial = 0; serial < 2; ++serial) story.train(serial);
  story.round(0, 1, 0, 2);
  for (std::uint64_t serial = 2; serial < 4; ++serial) story.train(serial);
  const Alone of_dead{dead, 2, 2, 2, Story::winner(2, 0), Story::tag_of(0, 3)}, of_late{late, 2, 2, 3, entry, {}};
  enter_alone(story, named ? of_late : of_dead);
  commit_alone(story, named ? of_late : of_dead);
  if (named) story.say(late, {.event = EventKind::kBehind, .stage = StageId{0}, .version = Version{2}, .cause = "cut"});
  say_merged(story, named ? entry : of_dead.entry, named ? 3 : 2);
  story.say(Story::trainer(), session_over_event(dead, StageId{0}, "silent"));
  story.say(Story::trainer(),
            restored_event(StageId{0}, RoundId{3}, Version{3}, Version{1}, digest_at(1), tag_of({named ? 3u : 2u}),
                           {{named ? late : dead, {2}}}, "nobody has version 2"));
  story.say(late, {.event = EventKind::kBehind, .stage = StageId{0}, .version = Version{3}, .cause = "restored"});
  story.say(late, {.event = EventKind::kShifted, .stage = StageId{0}, .version = Version{3}, .cause = cause});
  story.say(late, anchor_event(StageId{0}, Version{3}, Story::tag_of(0, 2), digest_at(1)));
  if (!named) round_alone(story, {late, 4, 4, 3, entry, Story::tag_of(0, 2) + tag_of({3})});
  return story;
}

TEST(AuditRestoresTest, ALivingSessionShiftsToIt) {
  for (const bool named : {false, true}) {
    const AuditReport report = shifted(named, named ? "snapshot" : "anchor").judge();
    EXPECT_TRUE(report.clean()) << audit_table(report);
    EXPECT_EQ(report.taken_back, 1u);
    const std::string other = named ? "anchor" : "snapshot";
    EXPECT_THAT(shifted(named, other).judge().violations, Contains(HasSubstr("shifts from its " + other)));
  }
  Story story = shifted(true, "snapshot");
  story.remove(EventKind::kMerged, Story::winner(3, 0));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("which marked 0 as merged")))
      << "what was taken back was named by a round";
}

}  // namespace
}  // namespace shoal
