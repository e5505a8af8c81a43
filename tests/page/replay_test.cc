// A run read back from its files: the same sums as the audit, at any moment in it.
#include "page/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "events/audit/audit.h"
#include "tests/audit/audit_story.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr double kBegin = 1.7e9;

// Files whose lines are `apart` seconds from each other.
void write_files(const Story& story, const ScratchFolder& folder, double apart) {
  std::map<std::string, std::string> texts;
  double time = kBegin;
  for (const auto& [who, record] : story.lines) {
    const std::string line = Story::line_of(who, record);
    texts[Story::file_of(who)] += "{\"time\":" + std::to_string(time += apart) + line.substr(line.find(','));
  }
  for (const auto& [name, text] : texts) folder.write(name + ".jsonl", text);
}

TEST(ReplayTest, ItsEndHasTheAuditsSums) {
  for (const Story& story : {Story::whole(), story_with_a_loss(true)}) {
    const ScratchFolder folder;
    write_files(story, folder, 0.3);
    const auto replay = Replay::read(folder.path(), {});
    ASSERT_TRUE(replay.ok());
    const auto audit = audit_folder(folder.path());
    ASSERT_TRUE(audit.ok());
    const Json count = Json::parse(replay->snapshot())["moment"]["count"];
    EXPECT_EQ(count["issued"], audit->issued);
    EXPECT_EQ(count["committed"], audit->committed);
    EXPECT_EQ(count["committed_tokens"], audit->committed_targets);
    EXPECT_EQ(count["secured"], audit->secured);
    EXPECT_EQ(count["lost"], audit->lost);
    EXPECT_EQ(count["twice"], audit->counted_twice);
    EXPECT_EQ(count["undecided"], audit->undecided + audit->silent);
    EXPECT_EQ(replay->lines(), audit->lines);
  }
}

TEST(ReplayTest, AMomentHasWhatWasByThen) {
  const ScratchFolder folder;
  write_files(Story::whole(), folder, 1);
  const auto replay = Replay::read(folder.path(), {});
  ASSERT_TRUE(replay.ok());
  std::uint64_t before = 0;
  for (double time = replay->from(); time <= replay->to(); time += 1) {
    const Json moment = Json::parse(replay->moment_at(time));
    EXPECT_LE(moment["time"].get<double>(), time + 1e-3);
    const auto committed = moment["count"]["committed"].get<std::uint64_t>();
    EXPECT_GE(committed, before);
    before = committed;
  }
  EXPECT_EQ(Json::parse(replay->moment_at(replay->from()))["count"]["committed"], 0);
  EXPECT_EQ(before, 4u);
}

TEST(ReplayTest, ALongRunHasABoundedNumberOfMoments) {
  Story story;
  story.say(Story::trainer(), {.event = EventKind::kStart});
  for (std::uint64_t i = 0; i < 5000; ++i)
    story.say(Story::trainer(), {.event = EventKind::kTrain, .step = StepId{i + 1}, .loss = 2.0, .targets = i});
  const ScratchFolder folder;
  write_files(story, folder, 10);
  const auto replay = Replay::read(folder.path(), {});
  ASSERT_TRUE(replay.ok());
  EXPECT_LE(replay->moments(), Replay::kFramesMax + 1);
  EXPECT_GE(replay->moments(), Replay::kFramesMax / 3);
  EXPECT_NEAR(replay->to() - replay->from(), 50000, 20);
}

TEST(ReplayTest, LinesThatCannotBeReadArePassedOver) {
  const ScratchFolder folder;
  write_files(Story::whole(), folder, 1);
  folder.write("torn.jsonl", "{\"time\":1,\"eve\n\xff\xfe\n[]\n{\"time\":17e300,\"event\":\"bytes\"");
  const auto replay = Replay::read(folder.path(), {});
  ASSERT_TRUE(replay.ok());
  EXPECT_EQ(replay->lines(), Story::whole().lines.size());
}

TEST(ReplayTest, AFolderWithoutFilesIsRefused) {
  const ScratchFolder folder;
  EXPECT_EQ(Replay::read(folder.path(), {}).code(), ErrorCode::kMissing);
  EXPECT_EQ(Replay::read(folder / "none", {}).code(), ErrorCode::kMissing);
}

}  // namespace
}  // namespace shoal
