// Curves as TensorBoard reads them. The golden bytes are those of its own record writer (tensorboard 2.21).
#include "events/scalar_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "events/session_end.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

WallTime at(double seconds) { return WallTime(from_seconds(seconds)); }

class StillClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  WallTime wall() const override { return at(1.7e9) + now_.time_since_epoch(); }
  void pass(Duration time) { now_ += time; }

 private:
  TimePoint now_{};
};

std::string digits_of(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<std::uint8_t>(byte) >> 4];
    text += kDigits[static_cast<std::uint8_t>(byte) & 15];
  }
  return text;
}

TEST(ScalarRecordTest, ItsBytesAreThoseOfTensorBoardsOwnWriter) {
  EXPECT_EQ(digits_of(scalar_file_begin(at(1.5))),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  EXPECT_EQ(digits_of(scalar_record(at(2.25), 300, {{"loss", 2.5}, {"tokens", 1e6}})),
            "2a00000000000000ae8d91f509000000000000024010ac022a1c0a0b0a046c6f737315000020400a0d0a06746f6b656e7315002474"
            "4931d0417e");
}

// Passes on to nobody, and counts.
class CountingLog final : public EventLog {
 public:
  explicit CountingLog(int& written) : written_(written) {}
  void write(const EventRecord&) override { ++written_; }
  void set_session(const Session&) override {}
  void set_stage(StageId) override {}

 private:
  int& written_;
};

TEST(ScalarLogTest, WhatHappensStandsByTheNewestStep) {
  const ScratchFolder folder;
  StillClock clock;
  int written = 0;
  std::string wanted = scalar_file_begin(clock.wall());
  {
    auto log = open_scalar_log(folder / "curves/of/a run", clock, std::make_unique<CountingLog>(written));
    ASSERT_TRUE(log.ok());
    const auto train = [&](std::uint64_t step, double loss, std::uint64_t tokens) {
      (*log)->write({.event = EventKind::kTrain, .step = StepId{step}, .loss = loss, .targets = tokens});
    };
    train(1, 4.5, 1000);
    wanted += scalar_record(clock.wall(), 1, {{"loss", 4.5}, {"tokens", 1000}});
    clock.pass(2s);
    train(2, 4.25, 3000);
    wanted += scalar_record(clock.wall(), 2, {{"loss", 4.25}, {"tokens", 3000}, {"tokens_per_second", 1000}});
    (*log)->write({.event = EventKind::kEstimate, .step = StepId{2}, .loss = 4.0, .targets = 64});
    wanted += scalar_record(clock.wall(), 2, {{"validation_loss", 4}});
    (*log)->write({.event = EventKind::kRoundCommit, .stage = StageId{1}, .version = Version{7}});
    wanted += scalar_record(clock.wall(), 2, {{"version/stage_1", 7}});
    for (const char* cause : {"left", "no sign of life within the membership time"})
      (*log)->write(session_over_event({1, 1}, StageId{0}, cause));
    wanted += scalar_record(clock.wall(), 2, {{"faults", 1}});
    (*log)->write({.event = EventKind::kCommit});
  }
  EXPECT_EQ(written, 7) << "each goes on";
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder / "curves/of/a run"))
    files.push_back(file.path().string());
  ASSERT_THAT(files, ElementsAre(HasSubstr("/events.out.tfevents.1700000000.shoal.")));
  EXPECT_EQ(digits_of(ScratchFolder::read(files[0])), digits_of(wanted));
}

TEST(ScalarLogTest, AResumedProcessSaysNothingOfAStepZero) {
  const ScratchFolder folder;
  StillClock clock;
  int written = 0;
  std::string wanted = scalar_file_begin(clock.wall());
  {
    auto log = open_scalar_log(folder / "curves", clock, std::make_unique<CountingLog>(written));
    ASSERT_TRUE(log.ok());
    for (const std::uint64_t version : {6, 7})  // repeated of its log
      (*log)->write({.event = EventKind::kRoundCommit, .stage = StageId{1}, .version = Version{version}});
    (*log)->write({.event = EventKind::kTrain, .step = StepId{500}, .loss = 2.5, .targets = 1000});
    wanted += scalar_record(clock.wall(), 500, {{"loss", 2.5}, {"tokens", 1000}, {"version/stage_1", 7}});
  }
  EXPECT_EQ(written, 3);
  for (const auto& file : std::filesystem::directory_iterator(folder / "curves"))
    EXPECT_EQ(digits_of(ScratchFolder::read(file.path().string())), digits_of(wanted));
}

TEST(ScalarLogTest, AFolderThatCannotBeMadeIsRefused) {
  const ScratchFolder folder;
  StillClock clock;
  folder.write("file", "");
  EXPECT_FALSE(open_scalar_log(folder / "file/curves", clock, make_silent_event_log()).ok());
}

}  // namespace
}  // namespace shoal
