// Frames that need a base which the receiver lacks: one question, the same claim, the deadline that runs. And what a
// holder is told about the frames it sent, since that is what codecs with bases go by.
#include <algorithm>
#include <functional>

#include "courier_rig.h"
#include "ledger_rig.h"

namespace shoal {
namespace {

using namespace naming;
using S = EntryState;
using Ends = std::vector<std::pair<Session, BranchEnd>>;

class HolderKeyFrameTest : public CourierRig {
 protected:
  void need_key_frame(std::uint64_t tag, const Lease& lease) { tell(tag, NeedKeyFrame{lease}); }
};

TEST_F(HolderKeyFrameTest, TheSameForwardGoesOutAgainUnderTheSameLeaseAndDeadline) {
  measure(1s);
  open();
  const Forward first = asked().second;
  pass(2s);
  need_key_frame(kA, first.lease);
  const auto [to, again] = asked();
  EXPECT_EQ(to, session(kA));
  EXPECT_EQ(again.lease, first.lease);
  EXPECT_EQ(again.microbatch, first.microbatch);
  EXPECT_EQ(again.above, first.above);
  EXPECT_EQ(keys, (std::vector<bool>{false, true}));
  EXPECT_EQ(courier.counters().branches, 0u);
  EXPECT_EQ(written[EventKind::kKeyFrame], 1u);
  pass(900ms);
  EXPECT_TRUE(asked_nobody());
  pass(200ms);
  EXPECT_EQ(asked().first, session(kB)) << "the deadline of the first frames";
  EXPECT_EQ(ends, (Ends{{session(kA), BranchEnd::kSent}, {session(kB), BranchEnd::kSent}})) << "one branch, sent once";
}

TEST_F(HolderKeyFrameTest, ABranchGetsOneKeyFrame) {
  open();
  const Lease lease = asked().second.lease;
  need_key_frame(kA, lease);
  EXPECT_EQ(asked().first, session(kA));
  need_key_frame(kA, lease);
  EXPECT_TRUE(asked_nobody());
}

TEST_F(HolderKeyFrameTest, WhoHasNoClaimOrHasWonGetsNone) {
  open();
  const Lease lease = asked().second.lease;
  need_key_frame(kB, lease);  // another's lease
  EXPECT_TRUE(asked_nobody());
  const auto released = take_out<Release>();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].first, session(kB));
  gradient(kA, lease);
  need_key_frame(kA, lease);
  EXPECT_TRUE(asked_nobody());
}

TEST_F(HolderKeyFrameTest, AnotherIsAskedWhenTheKeyFrameCannotBeSent) {
  open();
  const Lease lease = asked().second.lease;
  unreachable = session(kA);
  need_key_frame(kA, lease);
  EXPECT_EQ(asked().first, session(kB));
  EXPECT_EQ(
      ends,
      (Ends{{session(kA), BranchEnd::kSent}, {session(kA), BranchEnd::kAborted}, {session(kB), BranchEnd::kSent}}));
}

TEST_F(HolderKeyFrameTest, AClaimThatHadJoinedIsWaitedForAgainAndItsBranchBegins) {
  measure(1s);
  open();
  const Lease lease = asked().second.lease;
  tell(kA, Have{lease});
  EXPECT_EQ(ends, (Ends{{session(kA), BranchEnd::kSent}, {session(kA), BranchEnd::kAborted}}))
      << "another's frames were used";
  pass(5s);
  EXPECT_TRUE(asked_nobody()) << "below: no deadline";
  need_key_frame(kA, lease);
  EXPECT_EQ(asked().first, session(kA));
  EXPECT_EQ(ends.back(), std::pair(session(kA), BranchEnd::kSent));
  pass(3100ms);
  EXPECT_EQ(asked().first, session(kB)) << "it computes now, and that has a deadline";
}

TEST_F(HolderKeyFrameTest, TheWinnerOfACommittedEntryIsSettledAndEverybodyElseAborted) {
  measure(1s);
  open();
  const Lease first = asked().second.lease;
  pass(3100ms);
  const Lease second = asked().second.lease;
  gradient(kB, second);
  EXPECT_EQ(
      ends,
      (Ends{{session(kA), BranchEnd::kSent}, {session(kB), BranchEnd::kSent}, {session(kA), BranchEnd::kAborted}}));
  gradient(kA, first);
  ends.clear();
  courier.commit(id(0));
  courier.commit(id(0));
  courier.forget(id(0));
  EXPECT_EQ(ends, (Ends{{session(kB), BranchEnd::kSettled}})) << "once";
}

TEST_F(HolderKeyFrameTest, EveryOtherEndOfABranchAbortsIt) {
  const std::vector<std::function<void(const Lease&)>> ways = {
      [&](const Lease& lease) { busy(kA, lease); },
      [&](const Lease& lease) { tell(kA, Gone{lease}); },
      [&](const Lease&) { over(kA); },
      [&](const Lease&) { courier.close(id(0)); },
      [&](const Lease&) { courier.forget(id(0)); },
      [&](const Lease& lease) {
        gradient(kA, lease);
        courier.reject(id(0), "malformed", now);
      },
  };
  for (std::size_t i = 0; i < ways.size(); ++i) {
    ends.clear();
    pass(PeerHealth::kRemembered);  // a peer that refused is asked again
    serve({kA});
    open();
    ways[i](asked().second.lease);
    ASSERT_GE(ends.size(), 2u) << i;
    EXPECT_EQ(ends[1], std::pair(session(kA), BranchEnd::kAborted)) << i;
    courier.close(id(0));
    const auto sent = std::count(ends.begin(), ends.end(), std::pair(session(kA), BranchEnd::kSent));
    EXPECT_EQ(static_cast<std::size_t>(sent) * 2, ends.size()) << i << ": every branch has one end";
    out.clear();
  }
}

TEST_F(HolderKeyFrameTest, ATakeSendsNoFramesAndEndsNone) {
  open(0, GradientHint{session(kB), entry_name(kB, 4)});
  courier.close(id(0));
  EXPECT_TRUE(ends.empty());
}

// ---- the receiver ----

// An entry whose forward the device has begun.
EntrySerial begun(LedgerRig& rig, std::uint64_t holder = 2) {
  const EntrySerial entry = rig.accept(holder, 0);
  EXPECT_EQ(rig.ledger.next_job(false)->kind, JobKind::kForward);
  return entry;
}

TEST(ReceiverKeyFrameTest, AsksItsHolderOnceAndTakesTheNewFramesIntoTheSameEntry) {
  LedgerRig rig;
  const EntrySerial entry = begun(rig);
  ASSERT_TRUE(rig.ledger.base_missing(entry));
  EXPECT_EQ(rig.state(entry), S::kArriving);
  const auto needs = rig.take_sent<NeedKeyFrame>(2);
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0].lease, lease(2, 0));
  EXPECT_FALSE(rig.ledger.next_job(false)) << "nothing to compute";
  EXPECT_EQ(rig.forward(2, 0), entry) << "the same claim again: its frames belong to the entry";
  EXPECT_TRUE(rig.refused.empty());
  EXPECT_FALSE(rig.forward(2, 0)) << "a further repeat";
  EXPECT_EQ(rig.refused.size(), 1u);
  rig.ledger.inputs_arrived(entry, rig.now);
  rig.work_all();
  EXPECT_EQ(rig.state(entry), S::kCounted);
  EXPECT_EQ(rig.take_sent<Gradient>(2).size(), 1u);
  EXPECT_EQ(rig.ledger.counters().accepted, 1u);
}

TEST(ReceiverKeyFrameTest, AKeyFrameThatNeedsABaseFailsTheForward) {
  LedgerRig rig;
  const EntrySerial entry = begun(rig);
  ASSERT_TRUE(rig.ledger.base_missing(entry));
  ASSERT_EQ(rig.forward(2, 0), entry);
  rig.ledger.inputs_arrived(entry, rig.now);
  ASSERT_EQ(rig.ledger.next_job(false)->kind, JobKind::kForward);
  EXPECT_FALSE(rig.ledger.base_missing(entry));
  rig.ledger.forward_done(entry, {}, rig.now);
  EXPECT_TRUE(rig.told_busy(2, BusyReason::kFailed));
  EXPECT_EQ(rig.state(entry), std::nullopt);
}

TEST(ReceiverKeyFrameTest, AForwardOfTheSameClaimThatNobodyAskedForIsARepeat) {
  LedgerRig rig;
  const EntrySerial entry = begun(rig);
  EXPECT_FALSE(rig.forward(2, 0));
  EXPECT_EQ(rig.refused.size(), 1u);
  EXPECT_EQ(rig.state(entry), S::kForward);
}

TEST(ReceiverKeyFrameTest, WhenTheAskedHolderLetsGoAnotherClaimsHolderIsAsked) {
  for (const bool on_its_way : {false, true}) {
    LedgerRig rig;
    const EntrySerial entry = begun(rig);
    EXPECT_FALSE(rig.forward(3, 0, 7));
    EXPECT_EQ(rig.take_sent<Have>(3).size(), 1u);
    ASSERT_TRUE(rig.ledger.base_missing(entry));
    rig.refused.clear();
    if (on_its_way) {
      ASSERT_EQ(rig.forward(2, 0), entry);
    }
    rig.release(2, 0);
    EXPECT_EQ(rig.refused.size(), on_its_way ? 1u : 0u) << "its frames are not awaited any more";
    const auto needs = rig.take_sent<NeedKeyFrame>(3);
    ASSERT_EQ(needs.size(), 1u);
    EXPECT_EQ(needs[0].lease, lease(3, 7));
    EXPECT_EQ(rig.forward(3, 0, 7), entry);
    rig.ledger.inputs_arrived(entry, rig.now);
    rig.work_all();
    EXPECT_EQ(rig.take_sent<Gradient>(3).size(), 1u);
  }
}

TEST(ReceiverKeyFrameTest, TheEntryEndsWhenNobodyCanBeAskedOrTheAskedLinkIsLost) {
  for (const bool before : {false, true}) {
    LedgerRig rig;
    const EntrySerial entry = begun(rig);
    if (before) {
      rig.ledger.on_link_down(session(2), rig.now);
      EXPECT_FALSE(rig.ledger.base_missing(entry));
      rig.ledger.forward_done(entry, {}, rig.now);
    } else {
      ASSERT_TRUE(rig.ledger.base_missing(entry));
      rig.ledger.on_link_down(session(2), rig.now);
    }
    EXPECT_EQ(rig.state(entry), std::nullopt) << "its holder, when it is back, is told Gone";
    rig.renew(2, 0);
    EXPECT_FALSE(rig.take_sent<Gone>(2).empty());
  }
}

TEST(ReceiverKeyFrameTest, AnEntryWhoseLastClaimFellMeanwhileIsNotAskedFor) {
  LedgerRig rig;
  const EntrySerial entry = begun(rig);
  rig.release(2, 0);
  EXPECT_FALSE(rig.ledger.base_missing(entry));
  rig.ledger.forward_done(entry, {}, rig.now);
  EXPECT_EQ(rig.state(entry), std::nullopt);
  EXPECT_TRUE(rig.take_sent<NeedKeyFrame>(2).empty());
}

}  // namespace
}  // namespace shoal
