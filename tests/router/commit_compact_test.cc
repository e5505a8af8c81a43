// A trainer's log that says in a few records what all of it said: the book that is made of it is the same one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/rng.h"
#include "kept_book.h"

namespace shoal {
namespace {

using namespace naming;

CommitBook read_back(const std::vector<Bytes>& records) {
  CommitBook book(kTrainer, 2);
  for (const Bytes& record : records) EXPECT_TRUE(book.replay(record).ok());
  return book;
}

std::size_t bytes_of(const std::vector<Bytes>& records) {
  std::size_t bytes = 0;
  for (const Bytes& record : records) bytes += record.size();
  return bytes;
}

void expect_same(const CommitBook& compacted, const CommitBook& whole) {
  EXPECT_EQ(compacted.low(), whole.low());
  EXPECT_EQ(compacted.next_serial(), whole.next_serial());
  EXPECT_EQ(compacted.next(), whole.next());
  EXPECT_EQ(compacted.committed(), whole.committed());
  EXPECT_EQ(compacted.committed_targets(), whole.committed_targets());
  EXPECT_EQ(compacted.lost().pairs(), whole.lost().pairs());
  EXPECT_EQ(compacted.lost().lines(), whole.lost().lines());
  EXPECT_EQ(compacted.unmerged(), whole.unmerged());
  EXPECT_EQ(compacted.life(), whole.life());
  for (std::uint16_t k = 0; k < 2; ++k) {
    // A round that changes nothing is written with the next one that does.
    EXPECT_GE(compacted.done().heard(StageId(k)), whole.done().heard(StageId(k)));
    EXPECT_GE(compacted.done().settled(StageId(k)), whole.done().settled(StageId(k)));
    EXPECT_EQ(compacted.done().settled(StageId(k)), compacted.done().heard(StageId(k)));
  }
  for (std::uint64_t serial = compacted.low(); serial < compacted.next_serial(); ++serial) {
    const CommitBook::Logged *one = compacted.find(id(serial)), *other = whole.find(id(serial));
    ASSERT_EQ(one == nullptr, other == nullptr) << serial;
    if (one == nullptr) continue;
    EXPECT_EQ(one->path, other->path);
    EXPECT_EQ(one->stages, other->stages);
    EXPECT_EQ(one->targets, other->targets);
    EXPECT_EQ(one->loss_sum, other->loss_sum);
  }
}

// A run at random: paths out of order, rounds, gone entries, sessions that end, lives.
class Story {
 public:
  explicit Story(std::uint64_t seed) : rng_(seed) { kept.write(kept.book.life_record(a_life(0))); }
  void step() {
    const std::uint64_t what = rng_.below(10);
    if (what < 5)
      issue();
    else if (what < 7)
      secure();
    else if (what == 7 && !logged_.empty())
      lose();
    else if (what == 8)
      kept.write_done();
    else if (rng_.below(20) == 0)
      end_session();
  }
  void write_all() {
    while (kept.book.done().left()) kept.write_done();
  }
  Kept kept;

 private:
  void issue() {
    if (const auto next = kept.book.next()) {
      kept.book.issued(*next);
      open_.push_back(next->serial);
    }
    if (open_.size() < 4) return;
    const auto at = open_.begin() + static_cast<std::ptrdiff_t>(rng_.below(open_.size()));
    const std::uint64_t serial = *at;
    open_.erase(at);
    const EntryName first{sessions_[0], 1000 + serial}, second{sessions_[1], 2000 + serial};
    kept.write(kept.book.log(id(serial), path_of(serial, {first, second})));
    (void)kept.book.durable(id(serial));
    logged_.push_back(serial);
  }
  void secure() {
    const auto stage = static_cast<std::uint16_t>(rng_.below(2));
    RoundCommit commit;
    commit.stage = StageId(stage);
    commit.version = Version(++versions_[stage]);
    Secured secured{sessions_[stage], {}};
    for (const std::uint64_t serial : logged_)
      if (const auto* logged = kept.book.find(id(serial));
          logged && logged->path[stage].session == secured.session && rng_.below(3) > 0)
        secured.serials.push_back(logged->path[stage].serial);
    commit.secured.push_back(std::move(secured));
    (void)kept.book.on_round_commit(commit, [](const MicrobatchId&, StageId, const EntryName&) {});
  }
  void lose() {
    const std::uint64_t serial = logged_[rng_.below(logged_.size())];
    const auto* logged = kept.book.find(id(serial));
    if (logged == nullptr) return;
    const EntryName entry = logged->path[rng_.below(2)];
    (void)kept.book.on_ack({id(serial), entry, CommitState::kGone}, entry.session);
  }
  void end_session() {
    Session& session = sessions_[rng_.below(2)];
    (void)kept.book.on_session_over(session, std::string(150, 'c') + std::to_string(session.incarnation));
    ++session.incarnation;
    kept.write(kept.book.life_record(a_life(kept.book.next_serial())));
  }

  Rng rng_;
  std::vector<std::uint64_t> open_, logged_;
  Session sessions_[2] = {session(1), session(2)};
  std::uint64_t versions_[2] = {};
};

TEST(CommitBookTest, ACompactedLogMakesTheSameBookWheneverItIsMade) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Story story(seed);
    for (int i = 0; i < 400; ++i) {
      story.step();
      if (i % 23 != 0) continue;
      // Before what follows from rounds is written: it is in the compacted log, and the other one gets it now.
      const CommitBook compacted = read_back(story.kept.book.compacted());
      story.write_all();
      const auto whole = story.kept.reopened();
      ASSERT_TRUE(whole.ok()) << whole.error().message;
      expect_same(compacted, *whole);
      expect_same(read_back(compacted.compacted()), *whole);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(story.kept.book.low(), 20u);
    EXPECT_GT(story.kept.book.lost().pairs(), 0u);
  }
}

TEST(CommitBookTest, ACompactedLogGoesOnAsTheWholeOneDoes) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Story story(seed);
    for (int i = 0; i < 150; ++i) story.step();
    Kept compacted;
    compacted.log.clear();
    compacted.framer = RecordFramer(kTrainerLog);
    const Bytes front = compacted.framer.frame_whole(story.kept.book.compacted());
    compacted.log.assign(front.data(), front.data() + front.size());
    const std::size_t before = story.kept.log.size();
    // What the book says from now on stands behind either log.
    for (int i = 0; i < 150; ++i) story.step();
    story.write_all();
    RecordFramer from(kTrainerLog, before);
    (void)read_record_log(story.kept.log, kTrainerLog, [&, at = std::size_t{kLogHeadBytes}](ByteView record) mutable {
      at += kRecordHeadBytes + record.size();
      if (at > before) compacted.write(Bytes::copy_of(record));
      return Status();
    });
    const auto whole = story.kept.reopened(), other = compacted.reopened();
    ASSERT_TRUE(whole.ok() && other.ok());
    expect_same(*other, *whole);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(CommitBookTest, ItsCompactedLogDoesNotGrowWithTheRunsLength) {
  Kept kept;
  std::size_t after_first = 0;
  for (std::uint64_t serial = 0; serial < 2000; ++serial) {
    kept.decide(serial);
    for (std::uint16_t stage = 0; stage < 2; ++stage) kept.secure(stage, stage + 1u, {(stage + 1u) * 100 + serial});
    kept.write_done();
    if (serial == 9) after_first = bytes_of(kept.book.compacted());
  }
  EXPECT_EQ(kept.book.low(), 2000u);
  EXPECT_EQ(bytes_of(kept.book.compacted()), after_first);
  EXPECT_EQ(read_back(kept.book.compacted()).committed(), 2000u);
}

TEST(CommitBookTest, LossesBelowTheWindowAreCountedByPeerStageAndCauseAndNotNamedOneByOne) {
  Kept kept;
  for (std::uint64_t serial = 0; serial < 3 * LostBook::kLinesMax / 2; ++serial) {
    kept.decide(serial, {entry_name(10 + serial, serial), entry_name(2, 100'000 + serial)});
    (void)kept.book.on_session_over(session(10 + serial), "no sign of life");
    kept.secure(1, 2, {100'000 + serial});
    kept.write_done();
  }
  const LostBook::Lines losses = kept.book.lost().lines();
  EXPECT_EQ(losses.size(), LostBook::kLinesMax + 1);
  EXPECT_EQ(losses.at({0, StageId(0), "other causes"}), LostBook::kLinesMax / 2);
  EXPECT_EQ(losses.at({10, StageId(0), "no sign of life"}), 1u);
  EXPECT_EQ(kept.book.lost().pairs(), 3 * LostBook::kLinesMax / 2);
  expect_same(read_back(kept.book.compacted()), *kept.reopened());
}

TEST(CommitBookTest, ABaseThatIsNotTheFirstWordOfItsLogIsRefused) {
  Kept kept;
  kept.decide(0);
  const Bytes base = kept.book.compacted()[1];  // behind the header
  CommitBook book(kTrainer, 2);
  EXPECT_EQ(book.replay(base).code(), ErrorCode::kCorrupt) << "no header";
  const auto whole = kept.reopened();
  EXPECT_EQ(CommitBook(*whole).replay(base).code(), ErrorCode::kCorrupt) << "it stands for records that are there";
  CommitBook fresh(kTrainer, 2);
  ASSERT_TRUE(fresh.replay(kept.book.header_record()).ok());
  for (std::size_t size = 1; size < base.size(); ++size) {
    CommitBook cut(kTrainer, 2);
    ASSERT_TRUE(cut.replay(kept.book.header_record()).ok());
    EXPECT_EQ(cut.replay(base.view().first(size)).code(), ErrorCode::kCorrupt) << size;
  }
  EXPECT_TRUE(fresh.replay(base).ok());
}

}  // namespace
}  // namespace shoal
