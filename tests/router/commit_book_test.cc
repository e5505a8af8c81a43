// What follows a decision: repeats, losses, rounds, the low-water mark.
#include <gtest/gtest.h>

#include "events/lost_causes.h"
#include "kept_book.h"

namespace shoal {
namespace {

using namespace naming;

TEST(CommitBookTest, LowRisesOverWhatIsMergedOrLostAndOnlyWhenThatIsDurable) {
  Kept kept;
  kept.decide(0);
  kept.decide(1);
  kept.secure(0, 1, {100, 101});
  kept.secure(1, 2, {201});
  EXPECT_EQ(kept.book.low(), 0u);
  EXPECT_TRUE(kept.book.on_ack({id(0), entry_name(2, 200), CommitState::kGone}, session(2)));
  EXPECT_EQ(kept.book.low(), 0u) << "a crash now would lose the listing, and the peer would have forgotten it too";
  ASSERT_TRUE(kept.book.done().dirty());
  kept.write(kept.book.done_record());
  EXPECT_EQ(kept.book.low(), 0u);
  EXPECT_FALSE(kept.book.done().dirty());
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
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kGone}, session(2)), std::nullopt)
      << "a session speaks for its own entries only";
  const auto listing = kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kGone}, session(1));
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->stage, StageId(0));
  EXPECT_EQ(listing->cause, "gone");
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kGone}, session(1)), std::nullopt);
  EXPECT_EQ(kept.book.lost().pairs(), 1u);
}

TEST(CommitBookTest, DroppedIsLostOnceAsTooLate) {
  Kept kept;
  kept.decide(0);
  const auto listing = kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kDropped}, session(1));
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->cause, kLostLate);
  EXPECT_EQ(kept.book.on_ack({id(0), entry_name(1, 100), CommitState::kDropped}, session(1)), std::nullopt);
  EXPECT_EQ(kept.book.find(id(0))->stages[0], State::kLost);
}

// A member that reports such an entry for a round would make the trainer's log look older than the authority's.
TEST(CommitBookTest, AnEntryThatIsNotInADurablePathOfItsStageIsUnfitForARound) {
  Kept kept;
  kept.decide(0);
  const auto unfit = [&](std::uint16_t stage, std::uint64_t tag, const std::vector<std::uint64_t>& serials) {
    return kept.book.unfit_for_round(StageId(stage), session(tag), serials).value_or("");
  };
  EXPECT_EQ(unfit(0, 1, {100}), "");
  EXPECT_NE(unfit(0, 1, {100, 777, 778}).find("entry 777, which the trainer never committed"), std::string::npos);
  EXPECT_NE(unfit(1, 1, {100}), "") << "of another stage";
  EXPECT_NE(unfit(0, 2, {100}), "") << "of another session";
  kept.book.issued(id(1));
  (void)kept.book.log(id(1), path_of(1, {entry_name(1, 101), entry_name(2, 201)}));
  EXPECT_NE(unfit(0, 1, {101}), "") << "appended is not durable";
}

// It would count twice, or although its loss was told.
TEST(CommitBookTest, AnEntryThatIsMergedOrLostIsUnfitForAnotherRound) {
  Kept kept;
  kept.decide(0);
  kept.decide(1);
  kept.secure(0, 1, {100});
  (void)kept.book.on_ack({id(1), entry_name(1, 101), CommitState::kGone}, session(1));
  const auto said = [](const CommitBook& book, std::uint64_t serial) {
    return book.unfit_for_round(StageId(0), session(1), {serial}).value_or("");
  };
  EXPECT_EQ(said(kept.book, 100), "entry 100, which a committed round contains already");
  EXPECT_EQ(said(kept.book, 101), "entry 101, which is lost already");
  EXPECT_EQ(kept.book.unfit_for_round(StageId(1), session(2), {200, 201}), std::nullopt)
      << "the other stage's are open";
  (void)kept.write_done();
  const auto again = kept.reopened();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(said(*again, 100), "entry 100, which a committed round contains already");
  EXPECT_EQ(said(*again, 101), "entry 101, which is lost already");
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
  EXPECT_EQ(kept.book.lost().pairs(), 0u);
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
