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
