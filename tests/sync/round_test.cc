#include "sync/round.h"

#include <gtest/gtest.h>

#include <cstring>

#include "sync/early_parts.h"
#include "tests/sync/round_rig.h"
#include "tests/sync/sparse_rule.h"

namespace shoal {
namespace {

class RoundSizesTest : public RoundTest, public testing::WithParamInterface<int> {};

TEST_P(RoundSizesTest, AllReportTheSameDigestAndCommitIt) {
  make(static_cast<std::size_t>(GetParam()));
  const RoundOpen message = open(1);
  open_all(message);
  for (const auto& member : members) {
    ASSERT_EQ(member->reports.size(), 2u);
    EXPECT_EQ(member->reports[0].kind, ReportKind::kContributed);
    EXPECT_EQ(member->reports[0].entries, member->contribution.entries);
    EXPECT_EQ(member->reports[1].kind, ReportKind::kAgreed);
    EXPECT_EQ(member->reports[1].digest, members[0]->reports[1].digest);
    CountTag tag = 0;
    for (const auto& other : members) tag += other->contribution.payload.tag;
    EXPECT_EQ(member->sum.tag, tag);
  }
  for (const auto& member : members) member->round.on_commit(commit_of(message, members[0]->reports[1].digest));
  for (const auto& member : members) {
    EXPECT_EQ(member->calls, (std::vector<std::string>{"contribute", "prepare", "commit"}));
    EXPECT_FALSE(member->round.active());
  }
}

INSTANTIATE_TEST_SUITE_P(OneToFive, RoundSizesTest, testing::Range(1, 6));

TEST_F(RoundTest, TheContributionIsReportedBeforeAnyPartLeaves) {
  make(3);
  members[0]->hold_contribution = true;
  members[0]->round.on_open(open(1));
  EXPECT_EQ(members[0]->parts_sent, 0);
  EXPECT_TRUE(members[0]->reports.empty());
  members[0]->held(members[0]->contribution);
  EXPECT_EQ(members[0]->reports.size(), 1u);
  EXPECT_EQ(members[0]->parts_sent, 2);
}

TEST_F(RoundTest, ASilentMemberIsNamedWhenTheBudgetIsOver) {
  for (std::size_t silent = 0; silent < 3; ++silent) {
    members.clear();
    all.clear();
    make(3);
    members[silent]->mute = true;
    const TimePoint start = loop.now();
    open_all(open(1));
    loop.run_until(start + 1100ms);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(members[i]->reports.back().kind, ReportKind::kFailed);
      if (i == silent) continue;
      EXPECT_EQ(members[i]->reports.back().silent, members[silent]->self);
    }
  }
}

TEST_F(RoundTest, PartsThatOvertakeTheirOpeningAreKept) {
  make(2);
  const RoundOpen message = open(1);
  members[0]->round.on_open(message);
  pump();
  EXPECT_TRUE(members[1]->reports.empty());
  members[1]->round.on_open(message);
  pump();
  EXPECT_EQ(members[0]->reports.size(), 2u);
  EXPECT_EQ(members[1]->reports.size(), 2u);
}

TEST_F(RoundTest, ARepeatedOpeningRepeatsTheReportsAndNothingElse) {
  make(2);
  const RoundOpen message = open(1);
  open_all(message);
  members[0]->round.on_open(message);
  EXPECT_EQ(members[0]->reports.size(), 4u);
  EXPECT_EQ(members[0]->reports[2].entries, members[0]->reports[0].entries);
  EXPECT_EQ(members[0]->reports[3].digest, members[0]->reports[1].digest);
  EXPECT_EQ(members[0]->calls, (std::vector<std::string>{"contribute", "prepare"}));
}

TEST_F(RoundTest, ANewerOpeningOnTheSameBaseAbandonsTheOlder) {
  make(2);
  open_all(open(1));
  open_all(open(2));
  EXPECT_EQ(members[0]->calls, (std::vector<std::string>{"contribute", "prepare", "abandon", "contribute", "prepare"}));
  members[0]->round.on_open(open(1));
  EXPECT_EQ(members[0]->round.current(), RoundId(2)) << "an older opening changes nothing";
}

TEST_F(RoundTest, AnOpeningOnANewerBaseWaitsForTheCommitThatIsStillOnItsWay) {
  make(2);
  const RoundOpen first = open(1);
  open_all(first);
  open_all(open(2, 1));
  EXPECT_EQ(members[0]->round.current(), RoundId(1));
  members[0]->round.on_commit(commit_of(first, members[0]->reports[1].digest));
  EXPECT_EQ(members[0]->round.current(), RoundId(2));
  EXPECT_EQ(members[0]->calls.back(), "contribute");
}

TEST_F(RoundTest, ACommitThatComesBeforeTheSumIsKeptForIt) {
  make(2);
  const RoundOpen message = open(1);
  open_all(message);
  const Digest digest = members[0]->reports[1].digest;
  members.clear();
  all.clear();
  make(2);
  members[0]->round.on_open(message);
  members[1]->hold_contribution = true;
  members[1]->round.on_open(message);
  members[1]->round.on_commit(commit_of(message, digest));
  EXPECT_EQ(members[1]->calls, (std::vector<std::string>{"contribute"}));
  members[1]->held(members[1]->contribution);
  pump();
  EXPECT_EQ(members[1]->calls, (std::vector<std::string>{"contribute", "prepare", "commit"}));
}

TEST_F(RoundTest, WhoCannotFollowACommitFallsBehindAndKnowsWhetherItIsNamed) {
  make(3);
  const RoundOpen message = open(1);
  members[2]->mute = true;
  open_all(message);
  loop.run_for(2s);
  members[0]->round.on_commit(commit_of(message, Digest{}));
  EXPECT_EQ(members[0]->calls.back(), "fell_behind secured");
  members[1]->round.on_commit(commit_of(message, Digest{}, false));
  EXPECT_EQ(members[1]->calls.back(), "fell_behind");
  members[1]->round.on_commit(commit_of(message, Digest{}, false));
  EXPECT_EQ(std::count(members[1]->calls.begin(), members[1]->calls.end(), "fell_behind"), 1)
      << "a repeat changes nothing";
}

// Found by the swarm: forgetting the first made a member bring the same entries to a later round again.
TEST_F(RoundTest, ANewerCommitDoesNotHideThatAnEarlierOneNamedUs) {
  make(2);
  members[1]->mute = true;
  const RoundOpen message = open(1);
  open_all(message);
  members[0]->round.on_commit(commit_of(message, Digest{}));
  EXPECT_EQ(members[0]->calls.back(), "contribute") << "the sum may still come";
  RoundCommit newer;
  newer.round = RoundId(2);
  newer.version = Version(2);
  members[0]->round.on_commit(newer);
  EXPECT_EQ(members[0]->calls, (std::vector<std::string>{"contribute", "fell_behind secured", "fell_behind"}));
}

TEST_F(RoundTest, AnotherDigestThanTheCommittedOneIsSaidToDiffer) {
  make(2);
  const RoundOpen message = open(1);
  open_all(message);
  members[0]->round.on_commit(commit_of(message, Digest{}));
  EXPECT_EQ(members[0]->calls.back(), "fell_behind secured differs");
}

TEST_F(RoundTest, ACommitOfARoundWithoutUsFallsBehind) {
  make(1);
  RoundCommit commit;
  commit.round = RoundId(4);
  commit.version = Version(4);
  members[0]->round.on_commit(commit);
  EXPECT_EQ(members[0]->calls, (std::vector<std::string>{"fell_behind"}));
  members[0]->round.on_open(open(4));
  EXPECT_FALSE(members[0]->round.active()) << "that round is over";
}

TEST_F(RoundTest, AbandonAndCancelGiveTheContributionBackOnce) {
  make(2);
  open_all(open(1));
  members[0]->round.on_abandon({StageId(0), RoundId(1), "test"});
  members[0]->round.on_abandon({StageId(0), RoundId(1), "test"});
  members[1]->round.cancel();
  for (const auto& member : members)
    EXPECT_EQ(member->calls, (std::vector<std::string>{"contribute", "prepare", "abandon"}));
}

TEST_F(RoundTest, ARefusedContributionIsReportedWithItsReason) {
  make(2);
  members[0]->hold_contribution = true;
  members[0]->round.on_open(open(1));
  members[0]->held(make_error(ErrorCode::kNonFinite, "the delta is not finite"));
  ASSERT_EQ(members[0]->reports.size(), 1u);
  EXPECT_EQ(members[0]->reports[0].kind, ReportKind::kFailed);
  EXPECT_EQ(members[0]->reports[0].reason, "the delta is not finite");
}

TEST_F(RoundTest, WhoIsNotReadyWithinTheBudgetSaysThatItIsItself) {
  make(2);
  members[0]->hold_contribution = true;
  members[0]->round.on_open(open(1));
  loop.run_for(2s);
  ASSERT_EQ(members[0]->reports.size(), 1u);
  EXPECT_EQ(members[0]->reports[0].kind, ReportKind::kFailed);
  EXPECT_EQ(members[0]->reports[0].silent, members[0]->self);
  members[0]->held(members[0]->contribution);
  EXPECT_EQ(members[0]->reports.size(), 1u) << "what comes behind it revives no round";
  EXPECT_EQ(members[0]->parts_sent, 0);
}

TEST_F(RoundTest, ARuleThatTheRunDoesNotUseFailsTheRound) {
  make(1);
  RoundOpen message = open(1);
  message.rule = 9;
  members[0]->round.on_open(message);
  ASSERT_EQ(members[0]->reports.size(), 1u);
  EXPECT_EQ(members[0]->reports[0].kind, ReportKind::kFailed);
}

// A payload of another kind and of another length at every member, one of them with nothing in it.
TEST_F(RoundTest, CarriesASparsePayloadWithoutKnowingIt) {
  using test::SparseValue;
  make(3);
  const std::vector<std::vector<SparseValue>> brought = {{{0, 1}, {400, 2}, {999, 4}}, {}, {{400, 8}, {401, 16}}};
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->rule_ = std::make_unique<test::SparseRule>();
    members[i]->contribution.payload.bytes = test::pack_sparse(brought[i]);
  }
  open_all(open(1));
  const std::vector<SparseValue> sum = {{0, 1}, {400, 10}, {401, 16}, {999, 4}};
  std::size_t bytes = 0;
  for (const auto& member : members) {
    ASSERT_EQ(member->reports.size(), 2u);
    EXPECT_EQ(member->reports[1].kind, ReportKind::kAgreed);
    EXPECT_EQ(member->reports[1].digest, members[0]->reports[1].digest);
    EXPECT_EQ(test::parse_sparse(member->sum.bytes), sum);
    EXPECT_EQ(member->sum.weight, 1u + 2u + 3u);
    bytes += member->bytes_sent;
  }
  EXPECT_LE(bytes, (5 + 2 * sum.size()) * sizeof(SparseValue)) << "a piece to its owner, the sums to the two others";
  open_all(owned_by({0, 2}, 2));
  for (const auto& member : members) {
    EXPECT_EQ(member->reports.back().round, RoundId(2));
    EXPECT_EQ(member->reports.back().kind, ReportKind::kAgreed);
    EXPECT_EQ(test::parse_sparse(member->sum.bytes), sum);
  }
}

TEST_F(RoundTest, APieceThatTheRuleRefusesFailsTheRoundAndNamesItsSender) {
  make(2);
  for (const auto& member : members) member->rule_ = std::make_unique<test::SparseRule>();
  members[0]->contribution.payload.bytes = test::pack_sparse({{1, 1}});
  members[1]->contribution.payload.bytes = test::pack_sparse({{2, 1}});
  members[0]->round.on_open(open(1));
  RoundPart part;
  part.round = RoundId(1);
  members[0]->round.on_part(members[1]->self, part, test::pack_sparse({{700, 1}}));
  ASSERT_EQ(members[0]->reports.size(), 2u);
  EXPECT_EQ(members[0]->reports[1].kind, ReportKind::kFailed);
  EXPECT_EQ(members[0]->reports[1].malformed, members[1]->self);
  EXPECT_FALSE(members[0]->reports[1].silent) << "it was heard";
  EXPECT_NE(members[0]->reports[1].reason.find("cannot be used: a sparse value of another part"), std::string::npos);
}

// The only owner's device is at another job, and the pieces of all, of the whole payload each, are here before its own.
TEST_F(RoundTest, PiecesForAnOwnerThatIsNotReadyAreKeptThoughTheyAreMoreThanAPayload) {
  make(4);
  Buffer zeros((Round::kEarlyBytesMax >> 1) + (1 << 20));
  std::memset(zeros.data(), 0, zeros.size());
  const Bytes payload = std::move(zeros).freeze();
  members[0]->largest_payload = payload.size();
  members[0]->contribution.payload.bytes = payload;
  members[0]->hold_contribution = true;
  members[0]->round.on_open(owned_by({0}));
  RoundPart part;
  part.round = RoundId(1);
  part.weight = 1;
  for (std::size_t from = 1; from < 4; ++from) members[0]->round.on_part(members[from]->self, part, payload);
  members[0]->held(members[0]->contribution);
  for (int work = 0; work < 3; ++work) members[0]->run_asides();
  EXPECT_EQ(members[0]->reports.back().kind, ReportKind::kAgreed);
}

// A part of a GiB-sized state, whose sender was ready first: dropped, it would be so in every try.
TEST_F(RoundTest, AnEarlyPartIsKeptWhateverTheStateWeighs) {
  for (const bool large_state : {true, false}) {
    SCOPED_TRACE(large_state);
    members.clear();
    all.clear();
    make(2);
    const Bytes frame = Buffer(Round::kEarlyBytesMax + 4).freeze();
    if (large_state) members[0]->largest_payload = 2 * frame.size();
    RoundPart part;
    part.round = RoundId(1);
    members[0]->round.on_part(members[1]->self, part, frame);
    members[0]->round.on_open(open(1));
    members[0]->run_asides();
    // The rig's own payload is small, so what was kept is named malformed; what was dropped is still waited for.
    EXPECT_EQ(members[0]->reports.back().kind, large_state ? ReportKind::kFailed : ReportKind::kContributed);
    EXPECT_EQ(members[0]->reports.back().malformed.has_value(), large_state);
  }
}

// The third member fills what is kept of early parts, by number and by bytes; the second one's part came before that.
TEST_F(RoundTest, AMemberThatSendsEarlyPartsWithoutEndPushesOutNobodysButItsOwn) {
  make(3);
  members[1]->round.on_open(open(1));
  pump();
  const Session liar = members[2]->self;
  RoundPart part;
  for (std::uint64_t id = 5; id < 5 + 4 * EarlyParts::kSendersMax; ++id) {
    part.round = RoundId(id);
    members[0]->round.on_part(liar, part, Bytes());
  }
  part.round = RoundId(part.round.value + 1);
  members[0]->round.on_part(liar, part, Buffer(Round::kEarlyBytesMax - 1).freeze());
  open_all(open(1));
  for (const auto& member : members) EXPECT_EQ(member->reports.back().kind, ReportKind::kAgreed);
}

}  // namespace
}  // namespace shoal
