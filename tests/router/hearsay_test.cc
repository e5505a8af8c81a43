// A COMMIT that a peer passes on is no decision: it settles, closes and ends nothing. It keeps what it names for as
// long as the trainer takes to be asked.
#include "ledger_rig.h"

namespace shoal {
namespace {

using namespace naming;
using S = EntryState;

Commit naming_path(std::uint64_t serial, std::vector<EntryName> path) {
  Commit message;
  message.items = {{id(serial), std::move(path)}};
  message.lows = {{kTrainer, std::uint64_t{1} << 62}};
  return message;
}

TEST(LedgerHearsayTest, AForgedCommitSettlesNothingAndNeedsItsClaimAfterALease) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.ledger.on_hearsay(naming_path(0, {rig.own(entry)}), rig.now);
  EXPECT_EQ(rig.state(entry), S::kCounted);
  EXPECT_EQ(rig.ledger.low_of(kTrainer), 0u);
  EXPECT_TRUE(rig.work_all().empty()) << "a window of what is not settled makes no step";
  rig.release(2, 0);
  EXPECT_EQ(rig.state(entry), S::kCounted);
  rig.ledger.tick(rig.now += 700ms);
  ASSERT_EQ(rig.take_sent<Waiting>(1).size(), 1u);
  rig.ledger.heard_trainer(rig.now += 100ms);
  rig.ledger.tick(rig.now += 3800ms);
  EXPECT_EQ(rig.state(entry), S::kCounted);
  rig.ledger.tick(rig.now += 200ms);
  EXPECT_EQ(rig.state(entry), S::kUndoing);
}

TEST(LedgerHearsayTest, AForgedCommitOfAnotherEntryClosesNothing) {
  LedgerRig rig(1, 3);
  rig.list(2, {70});
  const EntrySerial entry = rig.accept(2, 0);
  rig.work_all();
  rig.sent.clear();
  rig.ledger.on_hearsay(naming_path(0, {entry_name(60, 1), entry_name(70, 1)}), rig.now);
  rig.ledger.on_hearsay(naming_path(5, {entry_name(60, 2)}), rig.now);
  rig.ledger.on_hearsay(naming_path(0, {}), rig.now);
  rig.ledger.on_hearsay(naming_path(0, {rig.own(entry)}), rig.now);
  EXPECT_EQ(rig.state(entry), S::kBelow);
  EXPECT_FALSE(rig.ledger.hearsay().keeps(entry))
      << "a peer that had its gradient would have passed that on: it is not counted";
  EXPECT_TRUE(rig.sent.empty());
  EXPECT_TRUE(rig.forward(3, 5)) << "microbatch 5 is open";
}

// Its holder lost, was told so, and releases what the winner's claim would have kept.
TEST(LedgerHearsayTest, AWinnerThatIsReleasedIsKeptUntilTheTrainersOwnCommitCame) {
  LedgerRig rig;
  const EntrySerial entry = rig.count(2, 0);
  rig.ledger.on_hearsay(naming_path(0, {rig.own(entry)}), rig.now);
  rig.release(2, 0);
  rig.ledger.tick(rig.now + 600ms);
  EXPECT_TRUE(rig.take_sent<Waiting>(1).empty()) << "its COMMIT is on its way";
  rig.now += 700ms;
  rig.ledger.tick(rig.now);
  const auto asked = rig.take_sent<Waiting>(1);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].entry_name, rig.own(entry));
  EXPECT_EQ(asked[0].silent, Session{}) << "nobody is blamed";
  rig.commit(0, {rig.own(entry)});
  EXPECT_EQ(rig.state(entry), S::kCommitted);
  EXPECT_EQ(rig.take_sent<CommitAck>(1).at(0).items.at(0).state, CommitState::kCommitted);
  rig.now += 100s;
  rig.ledger.tick(rig.now);
  EXPECT_TRUE(rig.take_sent<Waiting>(1).empty());
}

TEST(HearsayTest, AFalseWordHoldsAnEntryOnce) {
  Hearsay hearsay(4s);
  TimePoint now = at(0s);
  hearsay.hear(7, now);
  EXPECT_TRUE(hearsay.keeps(7));
  std::vector<EntrySerial> over;
  while (over.empty() && now < at(8s)) {
    hearsay.heard_trainer(now += 1s);
    over = hearsay.tick(now, [](EntrySerial) { return true; });
    hearsay.hear(7, now);
  }
  EXPECT_EQ(over, std::vector<EntrySerial>{7});
  EXPECT_FALSE(hearsay.keeps(7));
}

TEST(HearsayTest, WhileTheTrainerIsAwayWhatWasNamedWaitsForIt) {
  Hearsay hearsay(4s);
  bool link = false;
  int asked = 0;
  TimePoint now = at(0s);
  const auto over_in = [&](int seconds) {
    std::size_t over = 0;
    for (int i = 0; i < seconds; ++i)
      over += hearsay.tick(now += 1s, [&](EntrySerial) { return ++asked, link; }).size();
    return over;
  };
  hearsay.hear(7, now);
  EXPECT_EQ(over_in(30), 0u);
  link = true;
  asked = 0;
  EXPECT_EQ(over_in(31), 0u) << "a question that left may be lost with its link";
  EXPECT_EQ(asked, 31);
  hearsay.heard_trainer(now);
  EXPECT_EQ(over_in(4), 1u) << "it is back, and answered nothing";
}

TEST(LedgerHearsayTest, TheTrainersDecisionEndsWhatAFalseWordKeeps) {
  LedgerRig rig;
  const EntrySerial closed = rig.count(2, 0), below = rig.count(2, 1);
  rig.ledger.on_hearsay(naming_path(0, {rig.own(closed)}), rig.now);
  rig.ledger.on_hearsay(naming_path(1, {rig.own(below)}), rig.now);
  rig.commit(0, {entry_name(60, 9)});
  rig.ledger.on_lows({{kTrainer, 2}});
  EXPECT_EQ(rig.state(closed), S::kUndoing);
  EXPECT_EQ(rig.state(below), S::kUndoing);
}

}  // namespace
}  // namespace shoal
