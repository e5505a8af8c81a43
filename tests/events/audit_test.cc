// Logs of a small run are told by hand, as its processes would have written them; then one thing is planted that must
// not be.
#include "events/audit.h"

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "events/event_log.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using testing::Contains;
using testing::HasSubstr;

const Session kTrainer{0x77, 1};

// Two stages, two replicas each, four microbatches, two rounds a stage.
class Story {
 public:
  static Session peer(int stage, int replica) { return {static_cast<std::uint64_t>(0x10 * (stage + 1) + replica), 5}; }
  static MicrobatchId microbatch(std::uint64_t serial) { return {0x77, serial}; }
  // The entry that wins microbatch `serial` at `stage`; replicas take turns.
  static EntryName winner(std::uint64_t serial, int stage) {
    return {peer(stage, static_cast<int>(serial % 2)), serial + 1};
  }
  static CountTag tag_up_to(std::uint64_t end) {
    CountTag sum = 0;
    for (std::uint64_t serial = 0; serial < end; ++serial) sum += count_tag(microbatch(serial));
    return sum;
  }

  std::vector<std::pair<Session, EventRecord>> lines;
  std::string run_of_peers = std::string(64, '0');

  void say(const Session& who, EventRecord record) { lines.emplace_back(who, std::move(record)); }
  void open() {
    say(kTrainer, {.event = EventKind::kStart});
    for (int stage = 0; stage < 2; ++stage) {
      for (int replica = 0; replica < 2; ++replica) say(peer(stage, replica), {.event = EventKind::kStart});
    }
  }
  void train(std::uint64_t serial) {
    say(kTrainer, {.event = EventKind::kIssue, .microbatch = microbatch(serial)});
    for (int stage = 0; stage < 2; ++stage) count(winner(serial, stage), serial, stage);
    say(kTrainer, commit_event(microbatch(serial), {winner(serial, 0), winner(serial, 1)}, 2.0, 64));
    for (int stage = 0; stage < 2; ++stage) {
      const EntryName entry_name = winner(serial, stage);
      say(entry_name.session, {.event = EventKind::kSettled, .entry_name = entry_name});
    }
  }
  void count(const EntryName& entry_name, std::uint64_t serial, int stage) {
    say(entry_name.session, {.event = EventKind::kEntry,
                             .microbatch = microbatch(serial),
                             .stage = StageId{static_cast<std::uint16_t>(stage)},
                             .entry_name = entry_name});
    say(entry_name.session, {.event = EventKind::kCounted, .entry_name = entry_name});
  }
  // Secures [begin, end) of a stage and lets both replicas tell of the anchor.
  void round(int stage, std::uint64_t round, std::uint64_t begin, std::uint64_t end) {
    const StageId id{static_cast<std::uint16_t>(stage)};
    std::vector<Secured> secured = {{peer(stage, 0), {}}, {peer(stage, 1), {}}};
    for (std::uint64_t serial = begin; serial < end; ++serial)
      secured[serial % 2].serials.push_back(winner(serial, stage).serial);
    say(kTrainer, {.event = EventKind::kRoundCommit,
                   .stage = id,
                   .round = RoundId{round},
                   .version = Version{round},
                   .secured = secured});
    for (int replica = 0; replica < 2; ++replica)
      say(peer(stage, replica), anchor_event(id, Version{round}, tag_up_to(end), {}));
  }
  void end() { say(kTrainer, {.event = EventKind::kEnd}); }

  static Story whole() {
    Story story;
    story.open();
    for (std::uint64_t serial = 0; serial < 4; ++serial) story.train(serial);
    for (int stage = 0; stage < 2; ++stage) {
      story.round(stage, 1, 0, 2);
      story.round(stage, 2, 2, 4);
    }
    story.end();
    return story;
  }

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> texts;
    for (const auto& [who, record] : lines) {
      const EventIdentity identity{.role = who == kTrainer ? "trainer" : "peer", .run = {}, .peer = {}, .session = who};
      std::ostringstream name;
      name << who;
      texts[name.str()] += event_line(identity, {}, record);
    }
    return texts;
  }
  AuditReport judge() const {
    EventFiles read;
    for (const auto& [name, text] : files()) read_event_text(text, name, read);
    return audit(read);
  }
  // The first line that fits.
  std::pair<Session, EventRecord>& find(const std::function<bool(const Session&, const EventRecord&)>& fits) {
    for (auto& line : lines) {
      if (fits(line.first, line.second)) return line;
    }
    ADD_FAILURE() << "no such line";
    return lines.front();
  }
  EventRecord& event(EventKind name) {
    return find([&](const Session&, const EventRecord& r) { return r.event == name; }).second;
  }
  void remove(EventKind name, const std::optional<EntryName>& entry_name = {}) {
    std::erase_if(lines, [&](const auto& line) {
      return line.second.event == name && (!entry_name || line.second.entry_name == entry_name);
    });
  }
};

TEST(AuditTest, AWholeRunIsClean) {
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

TEST(AuditTest, FindsATokenSecuredByTwoRounds) {
  Story story = Story::whole();
  auto& second = story
                     .find([](const Session&, const EventRecord& r) {
                       return r.event == EventKind::kRoundCommit && r.round == RoundId{2};
                     })
                     .second;
  second.secured->front().serials.push_back(Story::winner(0, 0).serial);
  const AuditReport report = story.judge();
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_EQ(report.stages.at(0).counted_twice, 1u);
  EXPECT_FALSE(report.stages.at(0).tag_fits);
  EXPECT_THAT(report.violations, Contains(HasSubstr("secured 2 times")));
}

TEST(AuditTest, FindsALoserSecuredBesideTheWinner) {
  Story story = Story::whole();
  const EntryName loser{Story::peer(1, 1), 50};
  story.count(loser, 0, 1);
  auto& first = story
                    .find([](const Session&, const EventRecord& r) {
                      return r.event == EventKind::kRoundCommit && r.stage == StageId{1};
                    })
                    .second;
  first.secured->at(1).serials.push_back(50);
  const AuditReport report = story.judge();
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_EQ(report.branches, 1u);
  EXPECT_THAT(report.violations, Contains(HasSubstr("which the trainer did not commit")));
}

TEST(AuditTest, FindsASecuredMicrobatchThatIsAlsoLost) {
  Story story = Story::whole();
  story.say(kTrainer, {.event = EventKind::kLost,
                       .microbatch = Story::microbatch(1),
                       .stage = StageId{0},
                       .entry_name = Story::winner(1, 0),
                       .cause = "session over"});
  const AuditReport report = story.judge();
  EXPECT_EQ(report.counted_twice, 1u);
  EXPECT_EQ(report.lost, 1u);
  EXPECT_THAT(report.violations, Contains(HasSubstr("secured and also lost")));
  EXPECT_THAT(report.violations, Contains(HasSubstr("anchor + lost differs")));
}

// A replica dies before its second round: lost, and the tags say so.
Story with_a_loss(bool lost) {
  Story story;
  story.open();
  for (std::uint64_t serial = 0; serial < 4; ++serial) story.train(serial);
  story.round(0, 1, 0, 4);
  story.round(1, 1, 0, 3);
  if (lost) {
    story.say(kTrainer, {.event = EventKind::kLost,
                         .microbatch = Story::microbatch(3),
                         .stage = StageId{1},
                         .entry_name = Story::winner(3, 1),
                         .cause = "session over"});
  }
  return story;
}

TEST(AuditTest, ANamedLossIsHonest) {
  Story story = with_a_loss(true);
  story.end();
  const AuditReport report = story.judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_EQ(report.lost, 1u);
  EXPECT_EQ(report.stages.at(1).lost, 1u);
}

TEST(AuditTest, ASilentLossIsNot) {
  Story story = with_a_loss(false);
  const AuditReport open = story.judge();
  EXPECT_TRUE(open.clean()) << audit_table(open);
  EXPECT_EQ(open.undecided, 1u);
  story.end();
  const AuditReport ended = story.judge();
  EXPECT_EQ(ended.silent, 1u);
  EXPECT_THAT(ended.violations, Contains(HasSubstr("neither secured nor lost")));
  EXPECT_THAT(ended.violations, Contains(HasSubstr("anchor + lost differs")));
}

TEST(AuditTest, FindsAnAnchorThatHoldsMoreThanItsRounds) {
  Story story = Story::whole();
  story.event(EventKind::kAnchor).tag = *story.event(EventKind::kAnchor).tag + count_tag(Story::microbatch(3));
  const AuditReport report = story.judge();
  EXPECT_FALSE(report.stages.at(0).tag_fits);
  EXPECT_TRUE(report.stages.at(1).tag_fits);
  EXPECT_EQ(report.violation_count, 1u);
}

TEST(AuditTest, FindsReplicasThatDiffer) {
  Story story = Story::whole();
  Digest other;
  other.bytes[0] = 1;
  story.event(EventKind::kAnchor).digest = other;
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("differs from that in")));
}

TEST(AuditTest, FindsAMissingLastAnchor) {
  Story story = Story::whole();
  std::erase_if(story.lines, [](const auto& line) {
    return line.second.event == EventKind::kAnchor && line.second.stage == StageId{0} &&
           line.second.version == Version{2};
  });
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("no replica of stage 0")));
}

TEST(AuditTest, FindsTwoPathsOfOneMicrobatch) {
  Story story = Story::whole();
  story.say(kTrainer,
            commit_event(Story::microbatch(0), {Story::winner(0, 0), EntryName{Story::peer(1, 1), 60}}, 2.0, 64));
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("along two paths")));
}

TEST(AuditTest, ARepeatedLineAfterAResumeIsOne) {
  Story story = Story::whole();
  story.say(kTrainer, {.event = EventKind::kStart});
  story.say(kTrainer, commit_event(Story::microbatch(0), {Story::winner(0, 0), Story::winner(0, 1)}, 2.0, 64));
  story.say(kTrainer, EventRecord(story.event(EventKind::kRoundCommit)));
  const AuditReport report = story.judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_EQ(report.committed, 4u);
}

TEST(AuditTest, FindsARoundCommittedTwiceWithDifferentContent) {
  Story story = Story::whole();
  EventRecord again = story.event(EventKind::kRoundCommit);
  again.secured->at(0).serials.clear();
  story.say(kTrainer, again);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("twice with different content")));
}

TEST(AuditTest, FindsTwoRoundsOfOneVersion) {
  Story story = Story::whole();
  EventRecord fork = story.event(EventKind::kRoundCommit);
  fork.round = RoundId{9};
  fork.secured->clear();
  story.say(kTrainer, fork);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("was made by rounds 1 and 9")));
}

TEST(AuditTest, FindsPeersThatBreakTheirOwnBooks) {
  const EntryName entry_name = Story::winner(0, 0);
  const auto judged = [&](EventRecord record) {
    Story story = Story::whole();
    record.entry_name = entry_name;
    story.say(entry_name.session, record);
    return story.judge().violations;
  };
  EXPECT_THAT(judged({.event = EventKind::kCounted}), Contains(HasSubstr("counted a second time")));
  EXPECT_THAT(judged({.event = EventKind::kUndone}), Contains(HasSubstr("undone after it was settled")));
  EXPECT_THAT(judged({.event = EventKind::kEntry, .microbatch = Story::microbatch(0), .stage = StageId{0}}),
              Contains(HasSubstr("was made twice")));
  Story story = Story::whole();
  story.remove(EventKind::kCounted, entry_name);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("its peer never counted it")));
  story.remove(EventKind::kEntry, entry_name);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("its peer never wrote of it")));
}

TEST(AuditTest, FindsATokenOfAnotherMicrobatch) {
  Story story = Story::whole();
  story
      .find([](const Session&, const EventRecord& r) {
        return r.event == EventKind::kEntry && r.entry_name == Story::winner(2, 1);
      })
      .second.microbatch = Story::microbatch(3);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("at its peer and of")));
}

TEST(AuditTest, FindsAnswersThatContradictTheRounds) {
  Story story = Story::whole();
  story.say(Story::peer(0, 0), {.event = EventKind::kCommitGone, .entry_name = Story::winner(0, 0)});
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("answered gone, yet a round secured it")));
  Story merged = with_a_loss(true);
  merged.say(kTrainer, {.event = EventKind::kMerged, .entry_name = Story::winner(3, 1)});
  EXPECT_THAT(merged.judge().violations, Contains(HasSubstr("no committed round names it")));
}

TEST(AuditTest, FindsACommitThatWasNeverIssued) {
  Story story = Story::whole();
  story.remove(EventKind::kIssue);
  EXPECT_EQ(story.judge().violation_count, 4u);
}

TEST(AuditTest, AnUndoneBranchIsNoViolation) {
  Story story;
  story.open();
  const EntryName loser{Story::peer(0, 1), 40};
  story.count(loser, 0, 0);
  story.say(loser.session, {.event = EventKind::kUndone, .entry_name = loser, .cause = "lost"});
  story.train(0);
  story.round(0, 1, 0, 1);
  story.round(1, 1, 0, 1);
  story.say(kTrainer, {.event = EventKind::kIssue, .microbatch = Story::microbatch(1)});
  story.end();
  const AuditReport report = story.judge();
  EXPECT_TRUE(report.clean()) << audit_table(report);
  EXPECT_EQ(report.branches, 1u);
  EXPECT_EQ(report.undone, 1u);
  EXPECT_EQ(report.unfinished, 1u);
}

TEST(AuditTest, ToleratesATornEndAndNothingElse) {
  const Story story = Story::whole();
  for (const auto& [name, text] : story.files()) {
    const std::size_t last_line = text.rfind('\n', text.size() - 2) + 1;
    for (std::size_t cut = last_line + 1; cut < text.size(); ++cut) {
      EventFiles files;
      read_event_text(text.substr(0, cut), name, files);
      EXPECT_EQ(files.torn, 1u);
      EXPECT_TRUE(files.damaged.empty());
    }
    EventFiles files;
    const std::string reopened = text.substr(0, text.find("start")) + "reopened" + text.substr(text.find("start") + 5);
    read_event_text("{\"ev\n" + reopened, name, files);  // the torn end of an earlier life
    EXPECT_EQ(files.torn, 1u);
    EXPECT_TRUE(files.damaged.empty());
    EventFiles damaged;
    read_event_text(text + "{\"ev\n" + text.substr(last_line), name, damaged);
    EXPECT_EQ(damaged.damaged.size(), 1u);
  }
}

TEST(AuditTest, FindsTwoListingsOfOneContributionThatNameDifferentTokens) {
  Story story = with_a_loss(true);
  EventRecord again = story.event(EventKind::kLost);
  again.cause = "said again in other words";
  story.say(kTrainer, again);
  EXPECT_TRUE(story.judge().clean()) << audit_table(story.judge());
  ++again.entry_name->serial;
  story.say(kTrainer, again);
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("lists another entry")));
}

// A disk that refused lines may have taken the first of them in part; the next line that gets through counts them.
TEST(AuditTest, TakesABadLineInFrontOfMissingForARefusedWriteAndTellsHowManyAreLost) {
  const std::string start =
      event_line({.role = "peer", .run = {}, .peer = {}, .session = {}}, {}, {.event = EventKind::kStart});
  EventRecord after;
  after.event = EventKind::kBytes;
  after.missing = 3;
  const std::string line = event_line({.role = "peer", .run = {}, .peer = {}, .session = {}}, {}, after);
  EventFiles files;
  read_event_text(start + "{\"ev\n" + line, "a", files);
  EXPECT_TRUE(files.damaged.empty());
  EXPECT_EQ(files.torn, 1u);
  EXPECT_EQ(files.missing, 3u);
  EXPECT_EQ(nlohmann::json::parse(audit_json(audit(files)))["missing"], 3);
  read_event_text(start + "{\"ev\n{\"ev\n" + line, "b", files);
  EXPECT_EQ(files.damaged.size(), 1u) << "one write is cut at most";
}

TEST(AuditTest, SurvivesSeededDamage) {
  std::uint64_t state = 5;
  const auto draw = [&](std::uint64_t bound) { return (state = mix64(state)) % bound; };
  for (const auto& [name, text] : Story::whole().files()) {
    for (int i = 0; i < 300; ++i) {
      std::string damaged = text;
      for (int k = 0; k < 5; ++k) damaged[draw(damaged.size())] = static_cast<char>(draw(256));
      EventFiles files;
      read_event_text(damaged, name, files);
      const AuditReport report = audit(files);
      EXPECT_EQ(report.lines, files.events.size());
      EXPECT_EQ(report.clean(), report.violations.empty());
    }
  }
}

TEST(AuditTest, WithoutATrainersFileNothingIsClean) {
  Story story = Story::whole();
  std::erase_if(story.lines, [](const auto& line) { return line.first == kTrainer; });
  EXPECT_THAT(story.judge().violations, Contains(HasSubstr("nothing to judge by")));
}

TEST(AuditTest, FindsFilesOfTwoRuns) {
  EventFiles files;
  RunId other;
  other.bytes[3] = 1;
  read_event_text(event_line({.role = "peer", .run = {}, .peer = {}, .session = {}}, {}, {.event = EventKind::kStart}),
                  "a", files);
  read_event_text(
      event_line({.role = "peer", .run = other, .peer = {}, .session = {}}, {}, {.event = EventKind::kStart}), "b",
      files);
  EXPECT_THAT(audit(files).violations, Contains(HasSubstr("2 different runs")));
}

TEST(AuditTest, ReadsAFolder) {
  const ScratchFolder folder;
  EXPECT_EQ(read_events(folder / "absent").code(), ErrorCode::kMissing);
  EXPECT_EQ(read_events(folder.path()).code(), ErrorCode::kMissing);
  for (const auto& [name, text] : Story::whole().files()) folder.write(name + ".jsonl", text);
  folder.write("notes.txt", "not an event file");
  const auto files = read_events(folder.path());
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->files, 5u);
  const AuditReport report = audit(*files);
  EXPECT_TRUE(report.clean());
  const auto json = nlohmann::json::parse(audit_json(report));
  EXPECT_EQ(json["verdict"], "clean");
  EXPECT_EQ(json["stages"][1]["secured"], 4);
  EXPECT_THAT(audit_table(report), HasSubstr("verdict: clean"));
}

}  // namespace
}  // namespace shoal
