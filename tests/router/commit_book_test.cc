// The trainer's log: bytes, tails, damage, replay, and what follows a decision.
#include "router/commit_book.h"

#include <gtest/gtest.h>

#include "names.h"

namespace shoal {
namespace {

using namespace naming;
using State = CommitBook::StageState;

Gradient path_of(std::uint64_t serial, std::vector<EntryName> path = {}) {
  Gradient gradient;
  gradient.microbatch = id(serial);
  gradient.path =
      path.empty() ? std::vector{entry_name(1, 100 + serial), entry_name(2, 200 + serial)} : std::move(path);
  gradient.loss_sum = 1.5;
  gradient.targets = 8;
  return gradient;
}

// A book over bytes that are durable as soon as they are written.
struct Kept {
  CommitBook book{kTrainer, 2};
  std::vector<std::uint8_t> log;
  RecordFramer framer{kTrainerLog};

  Kept() { write(book.header_record()); }
  void write(const Bytes& record) {
    const Bytes framed = framer.frame(record);
    log.insert(log.end(), framed.data(), framed.data() + framed.size());
    framer.synced(log.size());
  }
  Bytes decide(std::uint64_t serial, std::vector<EntryName> path = {}) {
    book.issued(id(serial));
    const Bytes record = book.log(id(serial), path_of(serial, std::move(path)));
    write(record);
    EXPECT_TRUE(book.durable(id(serial)).empty());
    return record;
  }
  void secure(std::uint16_t stage, std::uint64_t tag, std::vector<std::uint64_t> serials) {
    RoundCommit commit;
    commit.stage = StageId(stage);
    commit.secured = {{session(tag), std::move(serials)}};
    EXPECT_TRUE(book.on_round_commit(commit, [](const MicrobatchId&, StageId, const EntryName&) {}).empty());
  }
  Bytes write_done() {
    const Bytes record = book.done_record();
    write(record);
    book.done_durable();
    return record;
  }
  Result<CommitBook> reopened() const {
    CommitBook result(kTrainer, 2);
    const auto whole = read_record_log(log, kTrainerLog, [&](ByteView record) { return result.replay(record); });
    if (!whole.ok()) return whole.error();
    EXPECT_EQ(*whole, log.size());
    return result;
  }
};

std::string hex(const Bytes& bytes) { return hex_of(bytes.data(), bytes.size()); }

CommitBook::Life a_life(std::uint64_t cursor) {
  CommitBook::Life life{session(9), cursor, 2, 77, {}};
  for (std::size_t i = 0; i < life.text.bytes.size(); ++i) life.text.bytes[i] = static_cast<std::uint8_t>(i);
  return life;
}

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
            "676f6e65");
}

TEST(CommitBookTest, ATornTailIsCutAtEveryLength) {
  Kept kept;
  kept.decide(0);
  const std::size_t whole = kept.log.size();
  kept.decide(1);
  for (std::size_t size = whole; size < kept.log.size(); ++size) {
    CommitBook book(kTrainer, 2);
    const auto read = read_record_log(ByteView(kept.log).first(size), kTrainerLog,
                                      [&](ByteView record) { return book.replay(record); });
    ASSERT_TRUE(read.ok()) << size << ": " << read.error().message;
    EXPECT_EQ(*read, whole) << size;
    EXPECT_EQ(book.committed(), 1u);
    EXPECT_EQ(book.next(), id(1)) << "what was torn was not committed: it is issued as new";
  }
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
  for (std::size_t size = whole; size < kept.log.size(); ++size) {
    CommitBook book(kTrainer, 2);
    const auto read = read_record_log(ByteView(kept.log).first(size), kTrainerLog,
                                      [&](ByteView record) { return book.replay(record); });
    ASSERT_TRUE(read.ok()) << size << ": " << read.error().message;
    EXPECT_EQ(*read, whole) << size;
    EXPECT_EQ(book.life(), a_life(0)) << size;
  }
}

TEST(CommitBookTest, MoreListingsThanOneRecordTakesAllReachTheLog) {
  Kept kept;
  constexpr std::uint64_t kMicrobatches = 2100;  // two stages: 4200 items, a record takes 4096
  for (std::uint64_t serial = 0; serial < kMicrobatches; ++serial) kept.decide(serial);
  EXPECT_EQ(kept.book.list_rest("the run ended").size(), 2 * kMicrobatches);
  int records = 0;
  for (; kept.book.done_left(); ++records) kept.write(kept.book.done_record());
  EXPECT_EQ(records, 2);
  const auto book = kept.reopened();
  ASSERT_TRUE(book.ok()) << book.error().message;
  EXPECT_EQ(book->lost(), 2 * kMicrobatches);
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
  EXPECT_EQ(book->lost(), 1u);
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

TEST(CommitBookTest, LowRisesOverWhatIsMergedOrLostAndOnlyWhenThatIsDurable) {
  Kept kept;
  kept.decide(0);
  kept.decide(1);
  kept.secure(0, 1, {100, 101});
  kept.secure(1, 2, {201});
  EXPECT_EQ(kept.book.low(), 0u);
  EXPECT_TRUE(kept.book.on_ack({id(0), entry_name(2, 200), CommitState::kGone}, session(2)));
  EXPECT_EQ(kept.book.low(), 0u) << "a crash now would lose the listing, and the peer would have forgotten it too";
  ASSERT_TRUE(kept.book.done_dirty());
  kept.write(kept.book.done_record());
  EXPECT_EQ(kept.book.low(), 0u);
  EXPECT_FALSE(kept.book.done_dirty());
  kept.book.done_durable();
  EXPECT_EQ(kept.book.low(), 2u);
  EXPECT_EQ(kept.book.find(id(0)), nullptr);
}

TEST(CommitBookTest, AcknowledgedStopsTheRepeatsAndOnlyARoundMarksMerged) {
  Kept kept;
  kept.decide(0);
  EXPECT_EQ(kept.book.outstanding().size(), 2u);
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kCommitted}, session(1)), std::nullopt);
  EXPECT_EQ(kept.book.outstanding().size(), 1u);
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(2, 200), CommitState::kMerged}, session(2)), std::nullopt);
  EXPECT_TRUE(kept.book.outstanding().empty());
  EXPECT_EQ(kept.book.find(id(0))->stages, (std::vector{State::kCommitted, State::kCommitted}));
  EXPECT_EQ(kept.book.unmerged(), 2u);
  EXPECT_EQ(kept.book.undecided(session(1)), 1u);
  kept.secure(0, 1, {100});
  EXPECT_EQ(kept.book.find(id(0))->stages[0], State::kMerged);
  EXPECT_EQ(kept.book.waiting_for().find("stage 1"), 0u);
}

TEST(CommitBookTest, GoneIsLostOnceAndNobodyElsesAckCounts) {
  Kept kept;
  kept.decide(0);
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(3, 1), CommitState::kGone}, session(3)), std::nullopt);
  EXPECT_EQ(kept.book.on_ack({{kTrainer + 1, 0}, entry_name(1, 100), CommitState::kGone}, session(1)), std::nullopt);
  EXPECT_EQ(kept.book.on_ack({id(7), entry_name(1, 100), CommitState::kGone}, session(1)), std::nullopt);
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kFenced}, session(1)), std::nullopt)
      << "only the authority's word ends a session";
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kGone}, session(2)), std::nullopt)
      << "a session speaks for its own entries only";
  const auto listing = kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kGone}, session(1));
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->stage, StageId(0));
  EXPECT_EQ(listing->cause, "gone");
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kGone}, session(1)), std::nullopt);
  EXPECT_EQ(kept.book.lost(), 1u);
}

TEST(CommitBookTest, WhoAsksIsToldTheDecisionOnceItIsDurableAndOnlyThen) {
  Kept kept;
  const std::vector<EntryName> path{entry_name(1, 5), entry_name(2, 6)};
  EXPECT_FALSE(kept.book.ask(id(0), StageId(1), session(9))) << "never issued";
  kept.book.issued(id(0));
  EXPECT_FALSE(kept.book.ask(id(0), StageId(1), session(9)));
  (void)kept.book.log(id(0), path_of(0, path));
  EXPECT_FALSE(kept.book.ask(id(0), StageId(0), session(8))) << "appended is not durable";
  EXPECT_TRUE(kept.book.durable(id(0)).empty());
  auto told = kept.book.answers(id(0));
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told.at(session(8)).at(0).path, path);
  EXPECT_EQ(told.at(session(9)).at(0).path, std::vector{path[1]});
  EXPECT_TRUE(kept.book.answers(id(0)).empty()) << "once";
  const auto item = kept.book.ask(id(0), StageId(1), session(7));
  ASSERT_TRUE(item);
  EXPECT_EQ(item->path, std::vector{path[1]});
  EXPECT_FALSE(kept.book.ask(id(0), StageId(2), session(7))) << "there are two stages";
  EXPECT_FALSE(kept.book.ask({kTrainer + 1, 0}, StageId(1), session(7)));
}

TEST(CommitBookTest, AtMostAFewAskersOfAMicrobatchAreRemembered) {
  Kept kept;
  kept.book.issued(id(0));
  for (std::uint64_t tag = 10; tag < 10 + 2 * CommitBook::kAskersMax; ++tag)
    (void)kept.book.ask(id(0), StageId(1), session(tag));
  (void)kept.book.log(id(0), path_of(0));
  EXPECT_TRUE(kept.book.durable(id(0)).empty());
  EXPECT_EQ(kept.book.answers(id(0)).size(), CommitBook::kAskersMax);
}

TEST(CommitBookTest, TheEndOfASessionListsWhatNoRoundNamed) {
  Kept kept;
  kept.decide(0);
  kept.decide(1);
  kept.secure(0, 1, {100});
  const auto lost = kept.book.on_session_over(session(1), "fenced");
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].entry_name, entry_name(1, 101));
  EXPECT_TRUE(kept.book.on_session_over(session(1), "fenced").empty());
  EXPECT_TRUE(kept.book.commits_for(id(1)).at(session(2)).size() == 1 &&
              !kept.book.commits_for(id(1)).contains(session(1)));
}

// A gradient that was on its way when the session of a lower stage ended: its entry can enter no round, and nobody
// would say so later.
TEST(CommitBookTest, APathThatNamesAnEndedSessionIsLostWhenItIsDurable) {
  Kept kept;
  EXPECT_TRUE(kept.book.on_session_over(session(2), "fenced").empty());
  kept.book.issued(id(0));
  kept.write(kept.book.log(id(0), path_of(0)));
  const auto lost = kept.book.durable(id(0));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].stage, StageId(1));
  kept.secure(0, 1, {100});
  kept.write_done();
  EXPECT_EQ(kept.book.low(), 1u);
}

// Found by a seed: the listing was told, the record was torn off with its trainer, and the microbatch was issued and
// counted again.
TEST(CommitBookTest, APathThatIsNotDurableIsNotLost) {
  Kept kept;
  kept.book.issued(id(0));
  kept.write(kept.book.log(id(0), path_of(0)));
  EXPECT_TRUE(kept.book.on_session_over(session(1), "fenced").empty());
  EXPECT_EQ(kept.book.lost(), 0u);
  EXPECT_EQ(kept.book.durable(id(0)).size(), 1u);
}

TEST(CommitBookTest, LostAndInARoundIsCountedAndReportedNotFatal) {
  Kept kept;
  kept.decide(0);
  EXPECT_EQ(kept.book.on_session_over(session(1), "fenced").size(), 1u);
  RoundCommit commit;
  commit.secured = {{session(1), {100, 999}}};
  int merged = 0;
  const auto contradictions =
      kept.book.on_round_commit(commit, [&](const MicrobatchId&, StageId, const EntryName&) { ++merged; });
  ASSERT_EQ(contradictions.size(), 1u);
  EXPECT_EQ(contradictions[0].entry_name, entry_name(1, 100));
  EXPECT_EQ(contradictions[0].cause, "fenced");
  EXPECT_EQ(kept.book.contradictions(), 1u);
  EXPECT_EQ(merged, 0);
  EXPECT_EQ(kept.book.find(id(0))->stages[0], State::kLost);
}

TEST(CommitBookTest, ARoundMarksEachTokenOnce) {
  Kept kept;
  kept.decide(0);
  int merged = 0;
  RoundCommit commit;
  commit.secured = {{session(1), {100}}, {session(5), {100}}};
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(
        kept.book.on_round_commit(commit, [&](const MicrobatchId&, StageId, const EntryName&) { ++merged; }).empty());
  EXPECT_EQ(merged, 1);
}

TEST(CommitBookTest, IdsStopAtTheWindowUntilLowRises) {
  Kept kept;
  for (std::uint64_t serial = 0; serial < CommitBook::kWindow; ++serial) {
    ASSERT_EQ(kept.book.next(), id(serial));
    kept.book.issued(id(serial));
  }
  EXPECT_EQ(kept.book.next(), std::nullopt);
  EXPECT_NE(kept.book.waiting_for().find("microbatch 0"), std::string::npos);
  kept.write(kept.book.log(id(0), path_of(0)));
  EXPECT_TRUE(kept.book.durable(id(0)).empty());
  kept.secure(0, 1, {100});
  kept.secure(1, 2, {200});
  kept.write_done();
  EXPECT_EQ(kept.book.next(), id(CommitBook::kWindow));
}

TEST(CommitBookTest, TheWindowIsAsWideAsTheRunNeeds) {
  CommitBook narrow(1, 2, 3), wide(1, 2, 2 * CommitBook::kWindow);
  for (CommitBook* book : {&narrow, &wide})
    while (const auto next = book->next()) book->issued(*next);
  EXPECT_EQ(narrow.open(), 3u);
  EXPECT_EQ(wide.open(), 2 * CommitBook::kWindow);
}

TEST(CommitBookTest, NoCommitBeforeTheRecordIsDurable) {
  Kept kept;
  kept.book.issued(id(0));
  (void)kept.book.log(id(0), path_of(0));
  EXPECT_TRUE(kept.book.commits_for(id(0)).empty());
  EXPECT_TRUE(kept.book.outstanding().empty());
  EXPECT_EQ(kept.book.committed(), 0u);
  EXPECT_TRUE(kept.book.durable(id(0)).empty());
  const auto commits = kept.book.commits_for(id(0));
  EXPECT_EQ(commits.at(session(1)).at(0).path.size(), 2u);
  EXPECT_EQ(commits.at(session(2)).at(0).path.size(), 1u);
  EXPECT_FALSE(kept.book.is_open(id(0)));
}

TEST(CommitBookTest, KnowsTheTokensOfItsPaths) {
  Kept kept;
  kept.decide(0);
  EXPECT_TRUE(kept.book.names_any({entry_name(5, 5), entry_name(2, 200)}));
  EXPECT_FALSE(kept.book.names_any({entry_name(5, 5)}));
  EXPECT_EQ(kept.book.paths({id(0), id(3)}).size(), 1u);
}

}  // namespace
}  // namespace shoal
