// Which joiner is admitted now and which is asked to come again.
#include "authority/admission_pace.h"

#include <gtest/gtest.h>

#include "tests/sync/sync_fixtures.h"

namespace shoal {
namespace {

using test::peer_of;

TimePoint at(Duration since_start) { return TimePoint(Duration(1000s)) + since_start; }

std::size_t admitted(AdmissionPace& pace, int asking, const std::string& host, TimePoint now) {
  std::size_t count = 0;
  for (int i = 0; i < asking; ++i) count += pace.refuse(peer_of(1), host, now) ? 0 : 1;
  return count;
}

TEST(AdmissionPaceTest, AHostHasSoManyJoinersAtOnceAndThenSoManyASecond) {
  AdmissionPace pace;
  EXPECT_EQ(admitted(pace, 200, "192.0.2.7", at(0s)), AdmissionPace::kAtOnce);
  EXPECT_EQ(admitted(pace, 200, "192.0.2.7", at(10s)), 10 * AdmissionPace::kPerSecond);
  EXPECT_EQ(admitted(pace, 1, "192.0.2.8", at(10s)), 1u) << "another host";
  EXPECT_EQ(admitted(pace, 200, "2001:db8::1", at(10s)), AdmissionPace::kAtOnce);
}

TEST(AdmissionPaceTest, AHostIsOneHowEverItIsWritten) {
  AdmissionPace pace;
  EXPECT_EQ(admitted(pace, 200, "::ffff:192.0.2.7", at(0s)), AdmissionPace::kAtOnce);
  EXPECT_EQ(admitted(pace, 1, "192.0.2.7", at(0s)), 0u);
  EXPECT_EQ(admitted(pace, 200, "2001:db8::1", at(0s)), AdmissionPace::kAtOnce);
  EXPECT_EQ(admitted(pace, 1, "2001:DB8:0:0::1", at(0s)), 0u);
  EXPECT_EQ(admitted(pace, 1, "lab.example", at(0s)), 1u);
}

TEST(AdmissionPaceTest, WhoseHostIsNotKnownIsCountedByNone) {
  AdmissionPace pace;
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(pace.refuse(peer_of(1), "", at(0s)));
}

TEST(AdmissionPaceTest, WhoseSessionEndedForWhatItDidRestsEverLonger) {
  AdmissionPace pace;
  EXPECT_EQ(pace.on_misconduct(peer_of(1), at(0s)), kPeerRest.first);
  EXPECT_TRUE(pace.refuse(peer_of(1), {}, at(29s)));
  EXPECT_FALSE(pace.refuse(peer_of(2), {}, at(29s)));
  EXPECT_FALSE(pace.refuse(peer_of(1), {}, at(30s)));
  EXPECT_EQ(pace.on_misconduct(peer_of(1), at(31s)), 2 * kPeerRest.first);
  for (int i = 0; i < 10; ++i) EXPECT_LE(pace.on_misconduct(peer_of(1), at(31s)), kPeerRest.most);
}

TEST(AdmissionPaceTest, ManyHostsCostABoundedMemoryAndTheOldestIsForgotten) {
  AdmissionPace pace;
  EXPECT_EQ(admitted(pace, 200, "192.0.2.7", at(0s)), AdmissionPace::kAtOnce);
  EXPECT_EQ(admitted(pace, 1, "192.0.2.7", at(0s)), 0u);
  for (std::size_t i = 0; i < AdmissionPace::kHostsMax; ++i)
    (void)admitted(pace, 1, "host" + std::to_string(i), at(1ms));
  EXPECT_EQ(admitted(pace, 1, "192.0.2.7", at(2ms)), 1u);
}

}  // namespace
}  // namespace shoal
