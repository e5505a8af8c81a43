#include "events/event_segments.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "common/packed/byte_source.h"
#include "events/event_log.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StandingClock final : public Clock {
 public:
  TimePoint now() const override { return {}; }
  WallTime wall() const override { return {}; }
};

std::string content_of_part(const std::string& path) {
  auto source = ByteSource::open(path);
  EXPECT_TRUE(source.ok()) << source.error().message;
  std::string text;
  std::vector<std::uint8_t> piece(1 << 16);
  for (auto got = (*source)->read(piece); got.ok() && *got > 0; got = (*source)->read(piece))
    text.append(reinterpret_cast<const char*>(piece.data()), *got);
  return text;
}

// All that the log wrote, in its order.
std::string whole_of(const std::string& path) {
  const auto file = event_file_at(path);
  EXPECT_TRUE(file.ok());
  EXPECT_THAT(file->lacks, IsEmpty());
  std::string text;
  for (const std::string& part : file->parts) text += content_of_part(part);
  return text;
}

class EventSegmentsTest : public testing::Test {
 protected:
  // A life of the process, which writes microbatches `begin` to `end`.
  void live(std::uint64_t begin, std::uint64_t end, std::uint64_t segment_bytes = 1000) {
    const auto log = open_event_log(path_, writer_, clock_, {.segment_bytes = segment_bytes});
    ASSERT_TRUE(log.ok()) << log.error().message;
    for (std::uint64_t serial = begin; serial < end; ++serial) {
      const EventRecord record{.event = EventKind::kForward, .version = Version(serial)};
      (*log)->write(record);
      expected_ += event_line(writer_, clock_.wall(), record);
    }
  }
  const ScratchFolder folder_;
  const std::string path_ = folder_ / "a.jsonl";
  const StandingClock clock_;
  const EventIdentity writer_{.role = "peer", .run = {}, .peer = {}, .session = Session{1, 2}};
  std::string expected_;
};

TEST_F(EventSegmentsTest, AFullFileIsCutBetweenLinesAndPackedAndAllOfItIsThere) {
  live(0, 100);
  const auto file = event_file_at(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_GT(newest_segment(*file), 5u);
  EXPECT_EQ(file->parts.front(), path_ + ".0001.zst");
  EXPECT_EQ(file->parts.back(), path_);
  for (const std::string& part : file->parts) EXPECT_TRUE(part == path_ || part.ends_with(".zst")) << part;
  EXPECT_LT(std::filesystem::file_size(path_), 1500u);
  EXPECT_EQ(whole_of(path_), expected_);
}

TEST_F(EventSegmentsTest, ANextLifeGoesOnCountingAndPacksWhatAKilledOneLeft) {
  live(0, 40);
  const std::uint64_t before = newest_segment(*event_file_at(path_));
  const std::string newest = segment_path("a.jsonl", before);
  // As if it had been killed while it packed that one.
  folder_.write(newest, content_of_part(folder_ / (newest + ".zst")));
  std::filesystem::remove(folder_ / (newest + ".zst"));
  folder_.write(newest + ".zst.part", "begun");
  live(40, 80);
  const auto file = event_file_at(path_);
  EXPECT_GT(newest_segment(*file), before);
  EXPECT_THAT(file->lacks, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(segment_path(path_, before)));
  EXPECT_EQ(whole_of(path_), expected_);
}

TEST_F(EventSegmentsTest, WhereNoSegmentCanBeMadeTheFileGrowsAndLosesNothing) {
  std::filesystem::create_directory(segment_path(path_, 1));  // in the way of every rename
  live(0, 100);
  EXPECT_EQ(ScratchFolder::read(path_), expected_);
}

TEST_F(EventSegmentsTest, AFolderIsReadByNamesAndSaysWhatIsNotThere) {
  for (const std::string name :
       {"a.jsonl", "a.jsonl.0002", "a.jsonl.0002.zst", "a.jsonl.0010.zst", "b.jsonl.0001.zst", "a.jsonl.0011.zst.part",
        "a.jsonl.7", "a.jsonl.0000", "c.txt", "a.jsonl.00x1", "d.jsonl"})
    folder_.write(name, "");
  const auto files = event_files_in(folder_.path());
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 3u);
  EXPECT_EQ(files->at(0).path, path_);
  EXPECT_THAT(files->at(0).parts, ElementsAre(path_ + ".0002", path_ + ".0010.zst", path_));
  EXPECT_THAT(files->at(0).lacks, ElementsAre(1, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(files->at(1).parts, ElementsAre(folder_ / "b.jsonl.0001.zst"));
  EXPECT_EQ(newest_segment(files->at(0)), 10u);
  EXPECT_EQ(newest_segment(files->at(1)), 1u);
  EXPECT_EQ(newest_segment(files->at(2)), 0u);
  EXPECT_THAT(segments_behind(files->at(0), 1), ElementsAre(path_ + ".0002", path_ + ".0010.zst"));
  EXPECT_THAT(segments_behind(files->at(0), 2), ElementsAre(path_ + ".0010.zst"));
  EXPECT_THAT(segments_behind(files->at(2), 0), IsEmpty());
  EXPECT_EQ(segment_path("x.jsonl", 12345), "x.jsonl.12345");
}

}  // namespace
}  // namespace shoal
