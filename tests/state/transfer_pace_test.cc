// Donors of different pace, and images that are kept for fetchers.
#include "tests/state/transfer_rig.h"

namespace shoal {
namespace {

TEST_F(TransferTest, TheFasterDonorGivesMoreAndTheSlowOneHoldsNothingUp) {
  const Bytes image = big_image(16, 7, 1);
  add(1, image, DonorOptions{.bytes_per_second = 1 << 20});
  add(2, image, DonorOptions{.bytes_per_second = 16 << 20});
  const TimePoint start = loop.now();
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, image));
  EXPECT_GE(donors[1]->chunks_asked, 27);
  EXPECT_LE(loop.now() - start, 3s) << "33 chunks at 16 a second: the last ones are not waited for at the slow one";
}

// One chunk takes eight seconds of its line.
TEST_F(TransferTest, ASlowDonorIsNotSilent) {
  const Bytes image = big_image(3, 7, 1);
  add(1, image, DonorOptions{.bytes_per_second = 1 << 17});
  bytes_move = true;
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched(120s));
  EXPECT_TRUE(equal(fetched, image));
  EXPECT_EQ(donors[0]->chunks_asked, 7) << "nothing is asked for twice";
}

// The line carries one chunk after the other, eight seconds each, and breaks in the second.
TEST_F(TransferTest, PartsOfAChunkAreProgressThatNeverGoesBack) {
  const Bytes image = big_image(1, 7, 1);
  add(1, image, DonorOptions{.bytes_per_second = 1 << 17});
  bytes_move = true;
  TimePoint since = loop.now(), told_at = loop.now();
  std::uint32_t comes = 0;
  when_chunk = [&](const Chunk& chunk) {
    since = loop.now();
    comes = chunk.index + 1;
  };
  arrives = [&](const Chunk& chunk) {
    return chunk.index == comes ? static_cast<std::uint64_t>((1 << 17) * seconds_of(loop.now() - since)) : 0;
  };
  std::uint64_t most = 0;
  Duration longest{};
  when_progress = [&] {
    EXPECT_GE(progress, most);
    most = progress;
    const Duration passed = loop.now() - std::exchange(told_at, loop.now());
    if (progress <= 2u << 20) longest = std::max(longest, passed);  // behind them is no more than a few bytes
  };
  fetcher.fetch(Version(7), digest_of_image(image), all());
  loop.run_for(5s);
  EXPECT_GT(progress, 1u << 20) << "half of the second one is here";
  EXPECT_LT(progress, 2u << 20);
  since = loop.now();
  fetcher.on_donor_down(peer_of(1));
  ASSERT_TRUE(run_until_fetched(120s));
  EXPECT_LE(longest, 3s);
  EXPECT_EQ(most, image.size());
}

// It is left each minute, and offers again.
TEST_F(TransferTest, AChunkThatNeverGetsWholeIsNoProgressForEver) {
  const Bytes image = big_image(1, 7, 1);
  add(1, image, DonorOptions{.bytes_per_second = 1});
  bytes_move = true;
  arrives = [&](const Chunk&) {
    return static_cast<std::uint64_t>(seconds_of(loop.now().time_since_epoch())) % 50 * 1000;
  };
  TimePoint told_at{};
  when_progress = [&] { told_at = loop.now(); };
  const TimePoint start = loop.now();
  fetcher.fetch(Version(7), digest_of_image(image), all());
  loop.run_for(300s);
  EXPECT_GE(told_at - start, 50s);
  EXPECT_LE(told_at - start, 61s);
}

// What its link brings is of other things.
TEST_F(TransferTest, ADonorThatGivesNoChunkForAMinuteIsLeft) {
  const Bytes image = big_image(3, 7, 1);
  add(1, image).loses_first = true;
  bytes_move = true;
  const TimePoint start = loop.now();
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched(120s));
  EXPECT_GE(loop.now() - start, 60s);
  EXPECT_LE(loop.now() - start, 70s);
}

// What it asked for a moment ago keeps nobody else's image, and not the place of its own next one.
TEST_F(TransferTest, AFetcherThatAsksForAnotherImageIsDoneWithTheOneBefore) {
  const Bytes first = big_image(1, 7, 6), second = big_image(1, 8, 7), third = big_image(1, 9, 8);
  Donor& donor = add(1, first);
  fetcher.fetch(Version(7), digest_of_image(first), all());
  ASSERT_TRUE(run_until_fetched());
  donor.image = second;
  donor.donor.moved_on();
  fetched = {};
  when_progress = [&] {
    if (progress == 0 || donor.version() == Version(9)) return;
    donor.image = third;
    donor.donor.moved_on();
  };
  fetcher.fetch(Version(8), digest_of_image(second), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, second));
}

}  // namespace
}  // namespace shoal
