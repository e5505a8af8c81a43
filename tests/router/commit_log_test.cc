// The trainer's log: bytes, tails, damage, replay.
#include <gtest/gtest.h>

#include <functional>

#include "kept_book.h"

namespace shoal {
namespace {

using namespace naming;

TEST(CommitBookTest, RecordsHaveTheseBytes) {
  Kept kept;
  EXPECT_EQ(hex(kept.book.header_record()),
            "01"
            "0900000000000000"
            "0200");
  EXPECT_EQ(hex(kept.book.life_record(a_life(0))),
            "05"
            "0900000000000000"
            "2923000000000000"
            "0000000000000000"
            "02000000"
            "4d00000000000000"
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  kept.book.issued(id(0));
  EXPECT_EQ(hex(kept.book.log(id(0), path_of(0))),
            "02"
            "0000000000000000"
            "000000000000f83f"
            "0800000000000000"
            "0100000000000000"
            "e903000000000000"
            "6400000000000000"
            "0200000000000000"
            "d107000000000000"
            "c800000000000000");
  EXPECT_TRUE(kept.book.durable(id(0)).empty());
  (void)kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kGone}, session(1));
  EXPECT_EQ(hex(kept.book.done_record()),
            "03"
            "01000000"
            "0000000000000000"
            "0000"
            "01"
            "0400"
            "676f6e65"
            "0000000000000000"
            "0000000000000000"
            "01");
}

// The log cut at every length behind `whole` bytes: what is read of it ends there, and becomes the book that `see`
// gets.
void cut_behind(std::size_t whole, const std::vector<std::uint8_t>& log,
                const std::function<void(const CommitBook&)>& see) {
  for (std::size_t size = whole; size < log.size(); ++size) {
    CommitBook book(kTrainer, 2);
    const auto read =
        read_record_log(ByteView(log).first(size), kTrainerLog, [&](ByteView record) { return book.replay(record); });
    ASSERT_TRUE(read.ok()) << size << ": " << read.error().message;
    EXPECT_EQ(*read, whole) << size;
    see(book);
  }
}

TEST(CommitBookTest, ATornTailIsCutAtEveryLength) {
  Kept kept;
  kept.decide(0);
  const std::size_t whole = kept.log.size();
  kept.decide(1);
  cut_behind(whole, kept.log, [](const CommitBook& book) {
    EXPECT_EQ(book.committed(), 1u);
    EXPECT_EQ(book.next(), id(1)) << "what was torn was not committed: it is issued as new";
  });
}

TEST(CommitBookTest, ALogTellsWhereItsNewestLifeBeganAtEveryLengthOfATornTail) {
  Kept kept;
  EXPECT_EQ(kept.reopened()->life(), std::nullopt);
  kept.write(kept.book.life_record(a_life(0)));
  kept.decide(0);
  const std::size_t whole = kept.log.size();
  kept.write(kept.book.life_record(a_life(1)));
  EXPECT_EQ(kept.book.life(), a_life(1));
  EXPECT_EQ(kept.reopened()->life(), a_life(1));
  EXPECT_EQ(kept.reopened()->committed(), 1u);
  cut_behind(whole, kept.log, [](const CommitBook& book) { EXPECT_EQ(book.life(), a_life(0)); });
}

TEST(CommitBookTest, MoreListingsThanOneRecordTakesAllReachTheLog) {
  Kept kept;
  constexpr std::uint64_t kMicrobatches = 2100;  // two stages: 4200 items, a record takes 4096
  for (std::uint64_t serial = 0; serial < kMicrobatches; ++serial) kept.decide(serial);
  EXPECT_EQ(kept.book.list_rest("the run ended").size(), 2 * kMicrobatches);
  int records = 0;
  for (; kept.book.done().left(); ++records) kept.write(kept.book.done_record());
  EXPECT_EQ(records, 2);
  const auto book = kept.reopened();
  ASSERT_TRUE(book.ok()) << book.error().message;
  EXPECT_EQ(book->lost().pairs(), 2 * kMicrobatches);
  EXPECT_EQ(book->unmerged(), 0u);
  kept.book.done_durable();
  EXPECT_EQ(kept.book.low(), kMicrobatches);
}

TEST(CommitBookTest, AFlippedBitInTheLastRecordIsATornTailAndInTheMiddleIsDamage) {
  Kept kept;
  kept.decide(0);
  const std::size_t first = kept.log.size();
  kept.decide(1);
  for (std::size_t at = 0; at < kept.log.size(); ++at) {
    auto log = kept.log;
    log[at] ^= 0x10;
    const auto read = read_record_log(log, kTrainerLog, [](ByteView) { return Status(); });
    if (at >= first) {
      ASSERT_TRUE(read.ok()) << at;
      EXPECT_EQ(*read, first) << at;
    } else {
      ASSERT_FALSE(read.ok()) << at << ": also when the length is what was hit";
      EXPECT_EQ(read.code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(CommitBookTest, AnErrorOfTheReaderStopsReading) {
  const Kept kept;
  const auto read =
      read_record_log(kept.log, kTrainerLog, [](ByteView) { return Status(make_error(ErrorCode::kForeign, "no")); });
  EXPECT_EQ(read.code(), ErrorCode::kForeign);
}

TEST(CommitBookTest, ALogOfAnotherRunOrWithoutHeaderIsRefused) {
  Kept kept;
  CommitBook other(kTrainer + 1, 2), deeper(kTrainer, 3), fresh(kTrainer, 2);
  EXPECT_EQ(other.replay(kept.book.header_record()).code(), ErrorCode::kForeign);
  EXPECT_EQ(deeper.replay(kept.book.header_record()).code(), ErrorCode::kForeign);
  EXPECT_EQ(fresh.replay(kept.decide(0)).code(), ErrorCode::kCorrupt);
}

TEST(CommitBookTest, ALogOfAnOlderProgramIsRefusedByNameAndNotCut) {
  // Version 2: u32 length, u32 CRC-32C, payload, and no head of the file.
  const std::vector<std::uint8_t> older{12, 0, 0, 0, 0x5b, 0x58, 0xd7, 0x9b, 1, 2, 9, 0, 0, 0, 0, 0, 0, 0, 2, 0};
  const auto read = read_record_log(older, kTrainerLog, [](ByteView) { return Status(); });
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.code(), ErrorCode::kVersion);
  EXPECT_NE(read.error().message.find("HINT"), std::string::npos) << read.error().message;
}

TEST(CommitBookTest, RecordsThatDoNotParseAreRefusedAtEveryLength) {
  Kept kept;
  const Bytes path = kept.decide(0);
  (void)kept.book.on_session_over(session(1), "ended");
  const Bytes done = kept.write_done();
  for (const Bytes& record : {path, done})
    for (std::size_t cut = 0; cut < record.size(); ++cut) {
      CommitBook book(kTrainer, 2);
      ASSERT_TRUE(book.replay(kept.book.header_record()).ok());
      EXPECT_EQ(book.replay(record.view().first(cut)).code(), ErrorCode::kCorrupt) << cut;
    }
}

TEST(CommitBookTest, ReplayBringsBackPathsListingsAndTheIdsToIssueAgain) {
  Kept kept;
  for (std::uint64_t serial = 0; serial < 6; ++serial) kept.book.issued(id(serial));
  for (const std::uint64_t serial : {0u, 1u, 4u}) {
    kept.write(kept.book.log(id(serial), path_of(serial)));
    EXPECT_TRUE(kept.book.durable(id(serial)).empty());
  }
  kept.secure(0, 1, {100});
  EXPECT_TRUE(kept.book.on_ack({id(0), entry_name(2, 200), CommitState::kGone}, session(2)));
  kept.write_done();
  EXPECT_EQ(kept.book.low(), 1u);
  const auto book = kept.reopened();
  ASSERT_TRUE(book.ok()) << book.error().message;
  EXPECT_EQ(book->low(), 1u);
  EXPECT_EQ(book->committed(), 3u);
  EXPECT_EQ(book->committed_targets(), 24u);
  EXPECT_EQ(book->lost().pairs(), 1u);
  EXPECT_EQ(book->next_serial(), 5u);
  CommitBook again = *book;
  for (const std::uint64_t serial : {2u, 3u, 5u}) {
    ASSERT_EQ(again.next(), id(serial));
    again.issued(id(serial));
  }
  // Every entry that is not done gets its COMMIT again.
  const auto outstanding = book->outstanding();
  ASSERT_EQ(outstanding.size(), 2u);
  EXPECT_EQ(outstanding.at(session(1)).size(), 2u);
  EXPECT_EQ(outstanding.at(session(2)).at(0).path, (std::vector{entry_name(2, 201)}))
      << "from the receiver's stage down";
}

// Else a log of a few kB would ask for gigabytes.
TEST(CommitBookTest, RecordsThatSkipMoreIdsThanAWindowHoldsAreRefusedAlsoTogether) {
  const Kept kept;
  CommitBook book(kTrainer, 2);
  ASSERT_TRUE(book.replay(kept.book.header_record()).ok());
  const auto record_of = [](std::uint64_t serial) {
    CommitBook writer(kTrainer, 2);
    writer.issued(id(serial));
    return writer.log(id(serial), path_of(serial));
  };
  ASSERT_TRUE(book.replay(record_of(1u << 19)).ok());
  ASSERT_TRUE(book.replay(record_of(2u << 19)).ok());
  EXPECT_EQ(book.replay(record_of(3u << 19)).code(), ErrorCode::kCorrupt);
}

TEST(CommitBookTest, TheSameIdTwiceInALogIsCorrupt) {
  Kept kept;
  const Bytes record = kept.decide(0);
  kept.write(record);
  EXPECT_EQ(kept.reopened().code(), ErrorCode::kCorrupt);
  // Also when the first is merged and forgotten.
  Kept merged;
  merged.decide(0);
  merged.secure(0, 1, {100});
  merged.secure(1, 2, {200});
  merged.write_done();
  ASSERT_EQ(merged.book.low(), 1u);
  merged.write(record);
  EXPECT_EQ(merged.reopened().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace shoal
