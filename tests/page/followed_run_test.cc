// A run read while its processes still write: what grew, what was cut, who came.
#include "events/books/followed_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/packed/pack_file.h"
#include "page/glance_text.h"
#include "page/run_json.h"
#include "tests/audit/audit_story.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr double kFirst = 1.7e9;

// The lines of a story as its processes write them, one a second.
class Writers {
 public:
  Writers(const Story& story, const ScratchFolder& folder) : story_(story), folder_(folder) {}
  std::size_t left() const { return story_.lines.size() - next_; }
  double now() const { return kFirst + static_cast<double>(next_); }
  std::string file() const { return folder_ / (Story::file_of(story_.lines[next_].first) + ".jsonl"); }
  // Half of the next line, whose other half comes with write().
  void begin_line() { add(text().substr(0, begun_ = text().size() / 2)); }
  void write() {
    add(text().substr(std::exchange(begun_, 0)));
    ++next_;
  }
  void write_rest() {
    while (left() > 0) write();
  }

 private:
  std::string text() const {
    const auto& [who, record] = story_.lines[next_];
    const std::string line = Story::line_of(who, record);
    return "{\"time\":" + std::to_string(kFirst + static_cast<double>(next_)) + line.substr(line.find(','));
  }
  void add(const std::string& part) { std::ofstream(file(), std::ios::app | std::ios::binary) << part; }

  const Story& story_;
  const ScratchFolder& folder_;
  std::size_t next_ = 0, begun_ = 0;
};

RunView whole_view(const Story& story) {
  RunView view;
  double time = kFirst;
  for (const auto& [who, record] : story.lines)
    view.take({record, time++, who.peer_tag == Story::trainer().peer_tag, who});
  return view;
}

TEST(FollowedRunTest, LineAfterLineItIsTheRunAsItIs) {
  const Story story = story_with_a_loss(true);
  const ScratchFolder folder;
  Writers writers(story, folder);
  writers.write();
  FollowedRun run(folder.path(), {});
  for (std::uint64_t lines = 1;; ++lines) {
    ASSERT_TRUE(run.read_on(writers.now()).ok());
    ASSERT_EQ(run.view().lines(), lines);
    if (writers.left() == 0) break;
    writers.begin_line();  // it is not there before its end is
    ASSERT_TRUE(run.read_on(writers.now()).ok());
    ASSERT_EQ(run.view().lines(), lines);
    writers.write();
  }
  const RunView whole = whole_view(story);
  EXPECT_EQ(run.view().tally().committed(), whole.tally().committed());
  EXPECT_EQ(run.view().tally().of_stage(1).lost, whole.tally().of_stage(1).lost);
  EXPECT_EQ(run.view().story().faults(), whole.story().faults());
  EXPECT_GT(run.view().story().faults(), 0u);
}

TEST(FollowedRunTest, AFileThatIsCutGoesOn) {
  const Story story = Story::whole();
  const ScratchFolder folder;
  Writers writers(story, folder);
  for (int i = 0; i < 3; ++i) writers.write();
  FollowedRun run(folder.path(), {});
  ASSERT_TRUE(run.read_on(writers.now()).ok());
  const std::string cut = writers.file();
  writers.write();  // read by nobody yet when the file loses its name
  std::filesystem::rename(cut, cut + ".0001");
  writers.write_rest();
  ASSERT_TRUE(run.read_on(writers.now()).ok());
  EXPECT_EQ(run.view().lines(), story.lines.size());
  EXPECT_TRUE(run.view().ended());
  FollowedRun later(folder.path(), {});
  ASSERT_TRUE(later.read_on(writers.now()).ok());
  EXPECT_EQ(later.view().lines(), story.lines.size()) << "its segments, too";
}

TEST(FollowedRunTest, AFileThatIsCutMoreThanOnceMeanwhileLacksNothing) {
  const Story story = Story::whole();
  const ScratchFolder folder;
  Writers writers(story, folder);
  for (int i = 0; i < 3; ++i) writers.write();
  FollowedRun run(folder.path(), {});
  ASSERT_TRUE(run.read_on(writers.now()).ok());
  const std::string cut = writers.file();
  for (const char* number : {".0001", ".0002", ".0003"}) {
    const std::uint64_t before = writers.left();
    while (writers.left() == before || writers.file() != cut) writers.write();
    std::filesystem::rename(cut, cut + number);
  }
  ASSERT_TRUE(pack_file(cut + ".0002").ok());
  ASSERT_TRUE(run.read_on(writers.now()).ok()) << "and nothing has the file's name";
  writers.write_rest();
  ASSERT_TRUE(run.read_on(writers.now()).ok());
  EXPECT_EQ(run.view().lines(), story.lines.size());
}

TEST(FollowedRunTest, ALongFileIsReadAsFarAsItIsWanted) {
  Story story;
  for (std::uint64_t serial = 0; serial < FollowedRun::kProgressLines + 10; ++serial)
    story.say(Story::trainer(), {.event = EventKind::kIssue, .microbatch = Story::microbatch(serial)});
  const ScratchFolder folder;
  Writers writers(story, folder);
  writers.write_rest();
  FollowedRun run(folder.path(), {});
  ASSERT_TRUE(run.read_on(writers.now(), [](std::uint64_t) { return false; }).ok());
  EXPECT_EQ(run.view().lines(), FollowedRun::kProgressLines);
  ASSERT_TRUE(run.read_on(writers.now(), [](std::uint64_t) { return true; }).ok());
  EXPECT_EQ(run.view().lines(), story.lines.size());
}

TEST(FollowedRunTest, WhatIsOverStandsStill) {
  const Story story = Story::whole();
  const ScratchFolder folder;
  Writers writers(story, folder);
  writers.write_rest();
  FollowedRun run(folder.path(), {});
  ASSERT_TRUE(run.read_on(writers.now() + 1e6).ok());
  EXPECT_EQ(run.view().now(), run.told());
}

TEST(FollowedRunTest, AFolderWithoutFilesIsRefused) {
  const ScratchFolder folder;
  EXPECT_EQ(FollowedRun(folder.path(), {}).read_on(kFirst).code(), ErrorCode::kMissing);
  EXPECT_EQ(FollowedRun(folder / "none", {}).read_on(kFirst).code(), ErrorCode::kMissing);
}

// Four peers, one of which is lost with a contribution.
RunView troubled_view() {
  RunView view;
  view.set_facts({.name = "two\x1b[31m",
                  .key = "0123456789abcdef",
                  .stages = 2,
                  .end_targets = 4096,
                  .unigram = 3.0,
                  .bigram = 2.5});
  view.take({{.event = EventKind::kStart}, kFirst, true, {9, 9}});
  for (std::uint64_t i = 0; i < 4; ++i)
    for (const char* state : {"joined", "serving"})
      view.take({{.event = EventKind::kMember,
                  .stage = StageId{static_cast<std::uint16_t>(i % 2)},
                  .about = Session{0xa0 + i, 1},
                  .state = state},
                 kFirst + 1,
                 true,
                 {9, 9}});
  for (std::uint64_t serial = 0; serial < 20; ++serial) {
    view.take({commit_event({9, serial}, {{{0xa0, 1}, serial}, {{0xa1, 1}, serial}}, 2.0, 64),
               kFirst + 2 + static_cast<double>(serial),
               true,
               {9, 9}});
    view.take({{.event = EventKind::kTrain, .step = StepId{serial + 1}, .loss = 2.25, .targets = 64 * (serial + 1)},
               kFirst + 2 + static_cast<double>(serial),
               true,
               {9, 9}});
  }
  view.take({session_over_event({0xa1, 1}, StageId{1}, "no sign of life"), kFirst + 22, true, {9, 9}});
  view.take({{.event = EventKind::kLost,
              .microbatch = MicrobatchId{9, 19},
              .stage = StageId{1},
              .entry_name = EntryName{{0xa1, 1}, 19},
              .cause = "no sign of life"},
             kFirst + 22,
             true,
             {9, 9}});
  view.advance(kFirst + 23);
  return view;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

TEST(GlanceTextTest, AllThatMattersStandsInAFewLines) {
  const RunView view = troubled_view();
  EXPECT_THAT(lines_of(glance_text(view, view.now(), {})),
              ElementsAre("run 01234567 two\\x1b[31m | 2 stages | training for 0:00:23",
                          StartsWith("  step 20 | loss 2.250 (text 3.000, 2.500) | "),
                          StartsWith("  1.28k of 4.10k tokens (31%)"),
                          "counted twice 0 | 0 secured, 1 lost by name, 39 undecided",
                          "3 of 3 peers serve, weakest is stage 1 with 1 | 1 fault", StartsWith(" ST PEER     STATE "),
                          StartsWith("  0 00000000 serving "), StartsWith("  0 00000000 serving "),
                          StartsWith("  1 00000000 serving "),
                          StartsWith("  1 00000000 lost              -    1.28k        20      1"),
                          StartsWith("0:00:22 stage 1: peer 00000000 was lost; 1 lost by name, the rate still feels")));
  EXPECT_THAT(glance_line(view, view.now()), AllOf(StartsWith("0:00:23 step 20 loss 2.250 tok 1.28k "),
                                                   HasSubstr(" peers 2 1 twice 0 lost 1 faults 1")));
}

TEST(GlanceTextTest, ItIsNoLargerThanItsTerminal) {
  RunView view = troubled_view();
  for (std::uint64_t i = 0; i < 200; ++i)
    view.take({{.event = EventKind::kMember, .stage = StageId{0}, .about = Session{1000 + i, 1}, .state = "serving"},
               view.now(),
               true,
               {9, 9}});
  for (const GlanceSize size : {GlanceSize{}, GlanceSize{40, 16}, GlanceSize{200, 60}}) {
    const std::vector<std::string> lines = lines_of(glance_text(view, view.now(), size));
    EXPECT_LE(lines.size(), size.lines);
    EXPECT_GE(lines.size() + 1, size.lines) << "and no smaller";
    for (const std::string& line : lines) EXPECT_LE(line.size(), size.columns) << line;
    EXPECT_THAT(glance_text(view, view.now(), size), HasSubstr(" more\n"));
  }
  EXPECT_EQ(lines_of(glance_text(view, view.now(), {80, 8})).size(), 8u);
}

TEST(GlanceTextTest, SilenceIsSaid) {
  RunView view = troubled_view();
  const double told = view.now();
  view.advance(told + 300);
  EXPECT_THAT(glance_text(view, told, {}), HasSubstr("nothing was written for 0:05:00"));
  EXPECT_THAT(glance_line(view, told), HasSubstr("nothing was written for 0:05:00"));
  EXPECT_THAT(glance_line(view, view.now()), Not(HasSubstr("nothing was written")));
}

}  // namespace
}  // namespace shoal
