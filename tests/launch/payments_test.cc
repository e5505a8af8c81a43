// Places of joiners whose payment is on its way: nobody squats one.
#include "runtime/launch/payments.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

PeerId peer_of(std::uint64_t n) {
  PeerId peer;
  peer.bytes[0] = static_cast<std::uint8_t>(n);
  return peer;
}
TimePoint at(Duration since_start) { return TimePoint(Duration(1000s)) + since_start; }
ReachQuery query_at(const std::string& address) { return {{{address}}}; }

TEST(PaymentsTest, APaymentThatComesBringsItsRequestOnce) {
  Payments payments;
  EXPECT_FALSE(payments.await({peer_of(1), 7}, query_at("a"), at(0s)));
  EXPECT_TRUE(payments.awaits(peer_of(1)));
  EXPECT_FALSE(payments.awaits(peer_of(2)));
  EXPECT_FALSE(payments.take({peer_of(1), 8})) << "other frames";
  const auto taken = payments.take({peer_of(1), 7});
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->whereabouts.addresses.front(), "a");
  EXPECT_FALSE(payments.take({peer_of(1), 7}));
  EXPECT_FALSE(payments.awaits(peer_of(1)));
}

TEST(PaymentsTest, WhatDripsInLosesItsPlaceWhateverStillComes) {
  Payments payments;
  (void)payments.await({peer_of(1), 7}, {}, at(0s));
  (void)payments.await({peer_of(2), 3}, {}, at(5s));
  EXPECT_TRUE(payments.take_late(at(Payments::kPatience)).empty());
  const auto late = payments.take_late(at(Payments::kPatience + 1s));
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0], (InboundFrames{peer_of(1), 7}));
  EXPECT_FALSE(payments.awaits(peer_of(1)));
  EXPECT_TRUE(payments.awaits(peer_of(2)));
}

TEST(PaymentsTest, WhenAllPlacesAreTakenTheOldestGoes) {
  Payments payments;
  for (std::uint64_t n = 0; n < Payments::kMax; ++n) {  // the first one is neither the least key nor the greatest
    const std::uint64_t peer = (n + Payments::kMax / 2) % Payments::kMax + 1;
    EXPECT_FALSE(payments.await({peer_of(peer), 1}, {}, at(std::chrono::milliseconds(n))));
  }
  const auto out = payments.await({peer_of(200), 1}, query_at("late"), at(1s));
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(*out, (InboundFrames{peer_of(Payments::kMax / 2 + 1), 1}));
  EXPECT_FALSE(payments.awaits(out->peer));
  EXPECT_TRUE(payments.take({peer_of(200), 1}).has_value());
}

TEST(PaymentsTest, ALinkThatIsDownFreesItsPlace) {
  Payments payments;
  (void)payments.await({peer_of(1), 7}, {}, at(0s));
  payments.drop(peer_of(1));
  EXPECT_FALSE(payments.awaits(peer_of(1)));
}

}  // namespace
}  // namespace shoal
