#include "transport/inbox.h"

#include <gtest/gtest.h>

#include "common/bulk_bytes.h"
#include "common/large_memory.h"
#include "common/rng.h"
#include "tests/transport/request_probe.h"
#include "tests/transport/wire_lab.h"
#include "transport/limits.h"

namespace shoal {
namespace {

class InboxTest : public testing::Test {
 protected:
  InboundBudget budget{limits::kInboundBytesMax, 0};
  Inbox inbox{budget, true};

  static TransferHead head(std::uint64_t id, const Bytes& frame) { return {id, {{frame.size(), crc32c(frame)}}}; }
  static Bytes chunk(std::uint64_t id, std::uint64_t offset, const Bytes& frame, std::size_t size) {
    return pack_chunk({id, offset}, {frame.view().subspan(offset, size)});
  }
};

TEST_F(InboxTest, ChunksMayComeBeforeTheirHeader) {
  const Bytes frame = numbered_bytes(1000, 1);
  for (const std::size_t offset : {0, 500}) {
    const auto finished = inbox.on_chunk(chunk(1, offset, frame, 500));
    ASSERT_TRUE(finished.ok());
    EXPECT_TRUE(finished->empty());
  }
  EXPECT_TRUE(inbox.waiting());
  ASSERT_TRUE(inbox.on_header(head(1, frame)).ok());
  const auto finished = inbox.replay();
  ASSERT_EQ(finished.size(), 1u);
  ASSERT_TRUE(finished[0].frames.ok());
  EXPECT_TRUE(same_bytes((*finished[0].frames)[0], frame));
  EXPECT_FALSE(inbox.waiting());
  EXPECT_EQ(budget.used, 0u);
}

TEST_F(InboxTest, WhatIsHereOfATransferIsKnownUntilItIsWhole) {
  const Bytes frame = numbered_bytes(1000, 1);
  EXPECT_EQ(inbox.received_of(1), 0u);
  ASSERT_TRUE(inbox.on_header(head(1, frame)).ok());
  ASSERT_TRUE(inbox.on_chunk(chunk(1, 0, frame, 300)).ok());
  EXPECT_EQ(inbox.received_of(1), 300u);
  EXPECT_EQ(inbox.received_of(3), 0u);
  ASSERT_TRUE(inbox.on_chunk(chunk(1, 300, frame, 700)).ok());
  EXPECT_EQ(inbox.received_of(1), 0u);
}

TEST_F(InboxTest, EarlyChunksAreHeldOnlyWithinTheCredit) {
  const Bytes frame = numbered_bytes(limits::kChunkBytes, 1);
  std::uint64_t held = 0;
  for (std::uint64_t id = 1;; id += 2) {
    const auto taken = inbox.on_chunk(chunk(id, 0, frame, frame.size()));
    if (!taken.ok()) {
      EXPECT_EQ(taken.code(), ErrorCode::kMalformed);
      break;
    }
    held += frame.size();
    EXPECT_EQ(inbox.take_grant(TimePoint(1s), 10ms), std::nullopt) << "nothing was consumed";
    ASSERT_LE(held, limits::kByteCreditsInitial);
  }
  EXPECT_EQ(held, limits::kByteCreditsInitial);
}

TEST_F(InboxTest, EarlyChunksOfARefusedHeaderGiveTheirCreditBackWithTheNext) {
  const Bytes frame = numbered_bytes(limits::kChunkBytes, 1);
  for (std::uint64_t id = 1; id < 33; id += 2) ASSERT_TRUE(inbox.on_chunk(chunk(id, 0, frame, frame.size())).ok());
  EXPECT_FALSE(inbox.on_chunk(chunk(33, 0, frame, frame.size())).ok());
  const Bytes small = numbered_bytes(10, 1);
  ASSERT_TRUE(inbox.on_header(head(35, small)).ok());
  EXPECT_EQ(inbox.take_grant(TimePoint(1s), 10ms), limits::kByteCreditsInitial);
}

TEST_F(InboxTest, DuplicatesAndWrongParityAreRefused) {
  const Bytes frame = numbered_bytes(10, 1);
  ASSERT_TRUE(inbox.on_header(head(5, frame)).ok());
  EXPECT_EQ(inbox.on_header(head(5, frame)).code(), ErrorCode::kStale);
  EXPECT_EQ(inbox.on_header(head(3, frame)).code(), ErrorCode::kStale);
  EXPECT_EQ(inbox.on_header(head(8, frame)).code(), ErrorCode::kMalformed);
  EXPECT_EQ(inbox.on_chunk(chunk(8, 0, frame, 10)).code(), ErrorCode::kMalformed);
  EXPECT_EQ(inbox.on_chunk(chunk(5, 0, frame, 10))->size(), 1u);
  EXPECT_TRUE(inbox.on_chunk(chunk(5, 0, frame, 10))->empty()) << "the same frames again are discarded";
}

TEST_F(InboxTest, ChunksOutOfOrderOrBeyondTheEndBreakTheLink) {
  const Bytes frame = numbered_bytes(100, 1);
  ASSERT_TRUE(inbox.on_header(head(1, frame)).ok());
  ASSERT_TRUE(inbox.on_chunk(chunk(1, 0, frame, 50)).ok());
  EXPECT_EQ(inbox.on_chunk(chunk(1, 0, frame, 50)).code(), ErrorCode::kMalformed);
  EXPECT_EQ(inbox.on_chunk(chunk(1, 60, frame, 40)).code(), ErrorCode::kMalformed);
  EXPECT_EQ(inbox.on_chunk(pack_chunk({1, 50}, {numbered_bytes(51, 2).view()})).code(), ErrorCode::kMalformed);
}

TEST_F(InboxTest, ADamagedFrameIsNamedAndNotHandedOver) {
  const Bytes frame = numbered_bytes(100, 1);
  TransferHead damaged = head(1, frame);
  damaged.frames[0].crc ^= 1;
  ASSERT_TRUE(inbox.on_header(damaged).ok());
  const auto finished = inbox.on_chunk(chunk(1, 0, frame, 100));
  ASSERT_EQ(finished->size(), 1u);
  ASSERT_FALSE((*finished)[0].frames.ok());
  EXPECT_EQ((*finished)[0].frames.code(), ErrorCode::kCorrupt);
}

TEST_F(InboxTest, AnnouncedBytesCostNothingUntilTheyComeAndAreBounded) {
  const RequestProbe probe;
  const TransferHead huge{1, {{limits::kTransferBytesMax, 0}}};
  ASSERT_TRUE(inbox.on_header(huge).ok());
  ASSERT_TRUE(inbox.on_header({3, huge.frames}).ok());
  EXPECT_EQ(inbox.on_header({5, huge.frames}).code(), ErrorCode::kTooLarge) << "limit of one link";
  EXPECT_LT(probe.total(), 4096u);
  EXPECT_EQ(budget.used, limits::kInboundBytesPerPeerMax);
  std::vector<std::unique_ptr<Inbox>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::make_unique<Inbox>(budget, true));
    ASSERT_TRUE(others.back()->on_header(huge).ok());
    ASSERT_TRUE(others.back()->on_header({3, huge.frames}).ok());
  }
  Inbox last(budget, true);
  EXPECT_EQ(last.on_header(huge).code(), ErrorCode::kTooLarge) << "limit of the process";
  others.clear();
  EXPECT_TRUE(last.on_header({3, huge.frames}).ok());
  EXPECT_EQ(inbox.abandon().size(), 2u);
  EXPECT_EQ(budget.used, limits::kTransferBytesMax);
}

TEST_F(InboxTest, MemoryIsTakenForWhatCameAndNotForWhatWasAnnounced) {
  ASSERT_TRUE(inbox.on_header({1, {{limits::kTransferBytesMax, 0}}}).ok());
  const Bytes one = numbered_bytes(1, 1), many = numbered_bytes(limits::kChunkBytes, 1);
  RequestProbe probe;
  ASSERT_TRUE(inbox.on_chunk(chunk(1, 0, one, 1)).ok());
  EXPECT_LT(probe.total(), 4096u);
  std::uint64_t offset = 1;
  for (int i = 0; i < 10; ++i, offset += many.size())
    ASSERT_TRUE(inbox.on_chunk(pack_chunk({1, offset}, {many.view()})).ok());
  EXPECT_LE(probe.largest(), 4 * offset) << "of one piece: a few times what came";
}

TEST_F(InboxTest, AFrameThatGrewIsWhole) {
  const Bytes frame = numbered_bytes(3 * limits::kChunkBytes + 77, 5);
  ASSERT_TRUE(inbox.on_header(head(1, frame)).ok());
  std::vector<Inbox::Finished> finished;
  Rng rng(3);
  for (std::size_t offset = 0; offset < frame.size();) {
    const std::size_t size = std::min<std::size_t>(frame.size() - offset, 1 + rng.below(limits::kChunkBytes));
    auto taken = inbox.on_chunk(chunk(1, offset, frame, size));
    ASSERT_TRUE(taken.ok());
    for (Inbox::Finished& one : *taken) finished.push_back(std::move(one));
    offset += size;
  }
  ASSERT_EQ(finished.size(), 1u);
  ASSERT_TRUE(finished[0].frames.ok());
  const Bytes& whole = (*finished[0].frames)[0];
  EXPECT_TRUE(same_bytes(whole, frame));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(whole.data()) % kBufferAlignment, 0u);
}

TEST_F(InboxTest, ALargeFrameIsCopiedOnceAndItsMemoryIsWhatCame) {
  constexpr std::uint64_t kFrame = 3 * kLargeBytes;
  ASSERT_TRUE(inbox.on_header({1, {{kFrame, 0}}}).ok());
  const Bytes many = numbered_bytes(limits::kChunkBytes, 1);
  std::uint64_t most = 0, in_use = 0;
  RequestProbe probe;
  for (std::uint64_t offset = 0; offset < kFrame; offset += many.size()) {
    bulk_bytes() = 0;
    const Bytes chunk = pack_chunk({1, offset}, {many.view()});
    bulk_bytes() = 0;
    ASSERT_TRUE(inbox.on_chunk(chunk).ok());
    most = std::max(most, bulk_bytes());
    (void)inbox.take_grant(TimePoint(1s), 10ms);
    in_use = std::max<std::uint64_t>(in_use, probe.largest());
  }
  EXPECT_LE(most, 2 * kBulkBytesMax) << "also while it grows";
  EXPECT_LE(in_use, kBulkBytesMax) << "what is larger is taken page by page";
}

TEST_F(InboxTest, EachChunkThatWasTakenIsToldOnceAlsoWhereNothingIsGranted) {
  const Bytes frame = numbered_bytes(1u << 20, 1);
  ASSERT_TRUE(inbox.on_header(head(1, frame)).ok());
  for (std::uint64_t offset = 0; offset < 4096; offset += 1024) {
    ASSERT_TRUE(inbox.on_chunk(chunk(1, offset, frame, 1024)).ok());
    EXPECT_EQ(inbox.take_grant(TimePoint(1s), 10ms), 1024u) << "in the middle of a frame, and for few bytes";
    EXPECT_EQ(inbox.take_grant(TimePoint(1s), 10ms), std::nullopt);
  }
  // Heads of chunks that wait for their header take of the window what a small chunk would give back.
  for (std::uint64_t id = 3; id < 13; id += 2) ASSERT_TRUE(inbox.on_chunk(chunk(id, 0, frame, 1024)).ok());
  ASSERT_TRUE(inbox.on_chunk(chunk(1, 4096, frame, 1)).ok());
  EXPECT_EQ(inbox.take_grant(TimePoint(1s), 10ms), 0u) << "the sender's line waits for what was taken";
}

TEST_F(InboxTest, TheWindowGrowsWithRateTimesRoundTrip) {
  const Bytes frame = numbered_bytes(limits::kChunkBytes, 1);
  TimePoint now(1s);
  std::uint64_t credit = limits::kByteCreditsInitial;
  std::uint64_t id = 1;
  // 100 MB/s at a round trip of 200 ms: 20 MB are under way.
  for (int turn = 0; turn < 400; ++turn, id += 2) {
    now += 2500us;
    ASSERT_TRUE(inbox.on_header(head(id, frame)).ok());
    ASSERT_TRUE(inbox.on_chunk(chunk(id, 0, frame, frame.size())).ok());
    credit = credit - frame.size() + inbox.take_grant(now, 200ms).value_or(0);
  }
  EXPECT_GT(credit, 35u << 20);
  EXPECT_LE(credit, limits::kByteCreditsMax);
}

}  // namespace
}  // namespace shoal
