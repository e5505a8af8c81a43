#include "runtime/stage_peer/text_desk.h"

#include <gmock/gmock.h>

#include <cstring>

#include "sim/sim_loop.h"
#include "stages/integer_executor.h"

namespace shoal {
namespace {

using testing::HasSubstr;

// The desk of one stage over a device that takes 10 ms a job.
class TextDeskTest : public testing::Test, private Links {
 protected:
  TextDeskTest() {
    ModelSpec model{.layers = 1, .dim = 4, .heads = 1, .positions = 4, .vocabulary = 50};
    model.context = 100;
    make_desk(model);
  }

  void make_desk(const ModelSpec& model) {
    executor_ = std::make_unique<IntegerExecutor>(split_model(model, 1)->front());
    desk_ = std::make_unique<TextDesk>(TextDesk::Environment{.loop = loop_,
                                                             .links = *this,
                                                             .spec = executor_->spec(),
                                                             .on_device =
                                                                 [this](auto job, auto after) {
                                                                   loop_.after(10ms, [this, job, after] {
                                                                     job(*executor_);
                                                                     jobs_.push_back(loop_.now());
                                                                     after(10ms);
                                                                   });
                                                                 },
                                                             .serving = [this] { return serving_; },
                                                             .version = [] { return Version(3); }});
  }

  static PeerId reader(std::uint8_t number) {
    PeerId id{};
    id.bytes[0] = number;
    return id;
  }
  // One request, and the answer to it once it is there.
  Extended extend(std::uint8_t from, std::uint64_t text, std::uint32_t first, std::vector<std::uint32_t> ids,
                  std::uint32_t likeliest = 5) {
    const std::size_t before = answers_.size();
    const Extend message{text, StageId(0), first, static_cast<std::uint32_t>(ids.size()), likeliest};
    request(from, message, std::move(ids));
    for (int i = 0; i < 1000 && answers_.size() == before; ++i) loop_.run_for(10ms);
    EXPECT_EQ(answers_.size(), before + 1) << answers_.back().reason;
    return answers_.back();
  }
  void request(std::uint8_t from, const Extend& message, std::vector<std::uint32_t> ids) {
    const Remote remote{reader(from), Session::of(reader(from), 1), PeerRole::kObserver};
    const Bytes frame = Bytes::copy_of(bytes_of(std::span<const std::uint32_t>(ids)));
    desk_->on_extend(remote, message, ++transfer_, frame.size());
    Result<std::vector<Bytes>> frames(std::vector<Bytes>{frame});
    (void)desk_->on_frames(remote, transfer_, frames);
  }

  SimLoop loop_;
  std::unique_ptr<IntegerExecutor> executor_;
  std::unique_ptr<TextDesk> desk_;
  std::vector<Extended> answers_;
  std::vector<std::vector<Bytes>> frames_;
  std::vector<TimePoint> jobs_;
  std::size_t refused_ = 0;
  bool serving_ = true;
  TransferId transfer_ = 0;

 private:
  void learn(const PeerId&, Whereabouts) override {}
  Result<TransferId> send(const PeerId&, Message message, std::vector<Bytes> frames) override {
    answers_.push_back(std::get<Extended>(message));
    frames_.push_back(std::move(frames));
    return TransferId{0};
  }
  void drop(const PeerId&, TransferId) override {}
  void refuse(const PeerId&, TransferId) override { ++refused_; }
  std::optional<Remote> remote(const PeerId&) const override { return std::nullopt; }
  std::uint64_t ahead_of(const PeerId&, TransferId) const override { return 0; }
  LinkStats stats(const PeerId&) const override { return {}; }
};

TEST_F(TextDeskTest, SaysTheLikeliestIdsOfATextThatGoesOn) {
  EXPECT_EQ(extend(1, 7, 0, {1, 2, 3}).answer, TextAnswer::kDone) << answers_.back().reason;
  const Extended more = extend(1, 7, 3, {4});
  EXPECT_EQ(more.answer, TextAnswer::kDone);
  EXPECT_EQ(more.version, Version(3));
  ASSERT_EQ(frames_.back().size(), 2u);
  ASSERT_EQ(frames_.back()[1].size(), 5 * sizeof(float));
  float logits[5];
  std::memcpy(logits, frames_.back()[1].data(), sizeof logits);
  EXPECT_TRUE(std::is_sorted(std::rbegin(logits), std::rend(logits)));
  EXPECT_EQ(desk_->texts(), 1u);
}

TEST_F(TextDeskTest, PlacesThatAreNotHereAreAskedForAnew) {
  EXPECT_EQ(extend(1, 7, 4, {1}).answer, TextAnswer::kUnknown);
  EXPECT_EQ(extend(1, 7, 0, {1, 2}).answer, TextAnswer::kDone);
  EXPECT_EQ(extend(1, 7, 3, {1}).answer, TextAnswer::kUnknown) << "a hole";
  EXPECT_EQ(extend(2, 7, 2, {1}).answer, TextAnswer::kUnknown) << "another reader's name for its text";
  EXPECT_EQ(extend(1, 7, 0, {9}).answer, TextAnswer::kDone) << "place 0 begins anew";
  EXPECT_EQ(desk_->texts(), 1u);
}

TEST_F(TextDeskTest, WhatIsNoRequestIsRefused) {
  EXPECT_EQ(extend(1, 1, 0, {}).answer, TextAnswer::kRefused);
  EXPECT_EQ(extend(1, 1, 0, {50}).answer, TextAnswer::kRefused) << "an id beyond the vocabulary";
  EXPECT_THAT(extend(1, 1, 99, {1, 2}).reason, HasSubstr("context is 100"));
  EXPECT_THAT(extend(1, 1, 0, std::vector<std::uint32_t>(600)).reason, HasSubstr("1 to 128"));
  request(1, {1, StageId(0), 0, 3, 5}, {1, 2});
  EXPECT_THAT(answers_.back().reason, HasSubstr("another size"));
  request(1, {1, StageId(2), 0, 1, 5}, {1});
  EXPECT_THAT(answers_.back().reason, HasSubstr("another stage"));
  serving_ = false;
  EXPECT_EQ(extend(1, 1, 0, {1}).answer, TextAnswer::kBusy);
  EXPECT_EQ(desk_->texts(), 0u);
}

TEST_F(TextDeskTest, TheTextThatWasContinuedLongestAgoMakesRoom) {
  for (std::uint64_t text = 0; text < TextDesk::kTextsMax + 2; ++text)
    EXPECT_EQ(extend(1, text, 0, {1}).answer, TextAnswer::kDone);
  EXPECT_EQ(desk_->texts(), TextDesk::kTextsMax);
  EXPECT_EQ(extend(1, 0, 1, {1}).answer, TextAnswer::kUnknown);
  EXPECT_EQ(extend(1, 5, 1, {1}).answer, TextAnswer::kDone);
}

TEST_F(TextDeskTest, TrainingHasTheDeviceBetweenTwoRequests) {
  for (std::uint8_t reader = 0; reader < 4; ++reader) request(reader, {7, StageId(0), 0, 1, 5}, {1});
  loop_.run_for(1s);
  ASSERT_EQ(jobs_.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GE(jobs_[i] - jobs_[i - 1], (TextDesk::kRest + 1) * 10ms);
}

TEST_F(TextDeskTest, MoreRequestsThanWaitAreTurnedAway) {
  for (std::uint8_t reader = 0; reader < TextDesk::kQueuedMax + 5; ++reader)
    request(reader, {7, StageId(0), 0, 1, 5}, {1});
  std::size_t busy = 0;
  for (const Extended& answer : answers_) busy += answer.answer == TextAnswer::kBusy ? 1 : 0;
  EXPECT_GE(busy, 4u);
  EXPECT_GE(refused_, 4u) << "their frames are not wanted";
}

TEST_F(TextDeskTest, AReaderHasOneRequestAndTheNewerOneCounts) {
  request(9, {1, StageId(0), 0, 1, 5}, {1});  // at work
  for (std::uint64_t text = 0; text < 40; ++text) request(1, {text, StageId(0), 0, 1, 5}, {1});
  loop_.run_for(10s);
  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_EQ(answers_.back().text, 39u);
}

TEST_F(TextDeskTest, ATextThatWouldBeLargerThanAllMayBeIsRefused) {
  ModelSpec model{.layers = 64, .dim = 4096, .heads = 32, .positions = 4, .vocabulary = 50};
  model.context = 1'000'000;
  make_desk(model);
  const std::uint64_t of_place = 64 * 2 * 4096 * sizeof(float);
  const auto first = static_cast<std::uint32_t>(TextDesk::kTextBytesMax / of_place);
  request(1, {1, StageId(0), first, 1, 5}, {1});
  EXPECT_THAT(answers_.back().reason, HasSubstr("more than 256 MiB"));
}

TEST_F(TextDeskTest, ATextGoesWithItsReaderOrWhenNobodyContinuesIt) {
  (void)extend(1, 1, 0, {1});
  (void)extend(2, 1, 0, {1});
  desk_->on_link_down(reader(1));
  EXPECT_EQ(desk_->texts(), 1u);
  loop_.run_for(TextDesk::kIdle + 1s);
  desk_->tick(loop_.now());
  EXPECT_EQ(desk_->texts(), 0u);
}

}  // namespace
}  // namespace shoal
