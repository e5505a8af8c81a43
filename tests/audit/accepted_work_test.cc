// What each peer's receipt names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/audit/audit_story.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

// The story's files, of lines a second apart.
void write_story(const Story& story, const ScratchFolder& folder, double time = 1.7e9) {
  std::map<std::string, std::string> texts;
  for (const auto& [who, record] : story.lines) {
    const std::string line = Story::line_of(who, record);
    texts[Story::file_of(who)] += "{\"time\":" + std::to_string(++time) + line.substr(line.find(','));
  }
  for (const auto& [name, text] : texts) folder.write(name + ".jsonl", text);
}

std::string named(const AcceptedWork& work, const Session& session, std::uint16_t stage) {
  const auto peer = work.peers.find(session.peer_tag);
  if (peer == work.peers.end() || !peer->second.contains(stage)) return "";
  return ranges_text(peer->second.at(stage));
}

std::uint64_t pairs_of(const AcceptedWork& work) {
  std::uint64_t pairs = 0;
  for (const auto& [peer, stages] : work.peers)
    for (const auto& [stage, here] : stages) pairs += here.size();
  return pairs;
}

TEST(AcceptedWorkTest, ItIsWhatRoundsSecured) {
  const ScratchFolder folder;
  write_story(Story::whole(), folder);
  const auto work = accepted_work(folder.path());
  ASSERT_TRUE(work.ok());
  for (int stage : {0, 1}) {
    EXPECT_EQ(named(*work, Story::peer(stage, 0), static_cast<std::uint16_t>(stage)), "0,2");
    EXPECT_EQ(named(*work, Story::peer(stage, 1), static_cast<std::uint16_t>(stage)), "1,3");
  }
  EXPECT_TRUE(work->audit.clean());
  EXPECT_EQ(pairs_of(*work), work->audit.secured);
}

TEST(AcceptedWorkTest, ANameIsWhatTheJoinerGave) {
  const ScratchFolder folder;
  Story story = Story::whole();
  for (auto& [who, record] : story.lines) {
    if (record.state == "joined" && record.about == Story::peer(0, 1)) record.peer_name = "rack 3";
    if (record.state == "joined" && record.about == Story::peer(1, 1))
      record.peer_name = "\x1b[2J";  // a file's, not ours
  }
  write_story(story, folder);
  const auto work = accepted_work(folder.path());
  ASSERT_TRUE(work.ok());
  EXPECT_THAT(work->names, testing::ElementsAre(testing::Pair(Story::peer(0, 1).peer_tag, "rack 3")));
}

TEST(AcceptedWorkTest, WhatIsLostIsNotInIt) {
  const ScratchFolder folder;
  write_story(story_with_a_loss(true), folder);
  const auto work = accepted_work(folder.path());
  ASSERT_TRUE(work.ok());
  EXPECT_GT(work->audit.lost, 0u);
  EXPECT_EQ(pairs_of(*work), work->audit.secured);
}

TEST(AcceptedWorkTest, WhatAStageWentBackFromIsTakenOut) {
  const ScratchFolder folder;
  Story story = Story::whole();
  const auto line = std::find_if(story.lines.begin(), story.lines.end(),
                                 [](const auto& one) { return one.second.event == EventKind::kRoundCommit; });
  ASSERT_NE(line, story.lines.end());
  const EventRecord round = line->second;
  story.say(Story::trainer(), restored_event(*round.stage, RoundId{9}, Version{9}, Version{0}, Digest{}, CountTag{},
                                             *round.secured, "nobody held it"));
  write_story(story, folder);
  const auto work = accepted_work(folder.path());
  ASSERT_TRUE(work.ok());
  for (const Secured& member : *round.secured)
    for (const std::uint64_t serial : member.serials)
      EXPECT_FALSE(work->peers.at(member.session.peer_tag)
                       .at(round.stage->value)
                       .contains(Story::microbatch_of(member.session, serial)));
}

// The one that goes on with the run is on another machine, whose clock is a minute behind.
TEST(AcceptedWorkTest, ARoundOfAProcessWhoseClockIsBehindCountsAsWell) {
  const ScratchFolder folder;
  Story first = Story::whole(), second;
  const auto of_second = [](const auto& line) {
    return line.first.peer_tag == Story::trainer().peer_tag && line.second.event == EventKind::kRoundCommit;
  };
  std::copy_if(first.lines.begin(), first.lines.end(), std::back_inserter(second.lines), of_second);
  std::erase_if(first.lines, of_second);
  ASSERT_FALSE(second.lines.empty());
  write_story(first, folder);
  const std::string file = Story::file_of(Story::trainer()) + ".jsonl";
  std::filesystem::rename(folder / file, folder / "launch-first.jsonl");
  write_story(second, folder, 1.7e9 - 60);
  const auto work = accepted_work(folder.path());
  ASSERT_TRUE(work.ok());
  EXPECT_EQ(named(*work, Story::peer(1, 0), 1), "0,2");
  EXPECT_EQ(named(*work, Story::peer(1, 1), 1), "1,3");
}

TEST(AcceptedWorkTest, FilesOfPeersAloneAreRefused) {
  const ScratchFolder folder;
  write_story(Story::whole(), folder);
  std::filesystem::remove(folder / (Story::file_of(Story::trainer()) + ".jsonl"));
  EXPECT_EQ(accepted_work(folder.path()).code(), ErrorCode::kInput);
}

TEST(AcceptedWorkTest, RangesAreWhole) {
  const auto text = [](std::initializer_list<std::uint64_t> serials) {
    AcceptedWork::OfStage map;
    for (const std::uint64_t serial : serials) map[serial];
    return ranges_text(map);
  };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({7}), "7");
  EXPECT_EQ(text({0, 1, 2, 4, 6, 7, UINT64_MAX}), "0-2,4,6-7,18446744073709551615");
}

}  // namespace
}  // namespace shoal
