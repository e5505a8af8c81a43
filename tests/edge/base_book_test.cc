// Which end holds which base, and how much of it.
#include "runtime/edge/base_book.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

Session session(std::uint64_t tag) { return {tag, 1}; }

Base base_of_bytes(std::size_t size, std::uint64_t hash) {
  return {Bytes::from_vector(std::vector<std::uint8_t>(size, 7)), hash};
}

constexpr SampleId kOne{1}, kTwo{2};

TEST(BaseBookTest, ADeltaGoesToWhomTheBaseCountedWithAndToNobodyElse) {
  BaseBook book(1000);
  EXPECT_TRUE(book.outgoing(kOne).empty());
  EXPECT_FALSE(book.sends_delta(session(10), kOne, 0)) << "nothing was encoded to a base";
  book.settled(session(10), kOne, base_of_bytes(100, 5));
  EXPECT_EQ(book.outgoing(kOne).hash, 5u);
  EXPECT_TRUE(book.sends_delta(session(10), kOne, 5));
  EXPECT_FALSE(book.sends_delta(session(11), kOne, 5));
  EXPECT_FALSE(book.sends_delta(session(10), kOne, 4)) << "it was encoded to an older one";
  EXPECT_FALSE(book.sends_delta(session(10), kTwo, 5));
  EXPECT_EQ(book.counters().deltas, 1u);
  EXPECT_EQ(book.counters().keys, 4u);
}

TEST(BaseBookTest, ANewBaseTakesThePlaceOfTheOldAndIsKnownToItsReceiverAlone) {
  BaseBook book(1000);
  book.settled(session(10), kOne, base_of_bytes(100, 5));
  book.settled(session(11), kOne, base_of_bytes(120, 6));
  EXPECT_FALSE(book.sends_delta(session(10), kOne, 6));
  EXPECT_TRUE(book.sends_delta(session(11), kOne, 6));
  book.settled(session(10), kOne, base_of_bytes(120, 6));
  EXPECT_TRUE(book.sends_delta(session(11), kOne, 6)) << "both hold the same one";
  EXPECT_EQ(book.counters().bytes, 120u);
}

TEST(BaseBookTest, WhoLacksABaseIsSentKeyFramesUntilOneCounts) {
  BaseBook book(1000);
  book.settled(session(10), kOne, base_of_bytes(100, 5));
  book.lacks(session(10), kOne);
  EXPECT_TRUE(book.outgoing(kOne).empty()) << "no delta is made that nobody could read";
  EXPECT_FALSE(book.sends_delta(session(10), kOne, 5));
  book.settled(session(10), kOne, base_of_bytes(100, 6));
  EXPECT_TRUE(book.sends_delta(session(10), kOne, 6));
  EXPECT_EQ(book.counters().lacking, 1u);
}

TEST(BaseBookTest, WhatComesInIsKeptBySenderAndSample) {
  BaseBook book(1000);
  book.keep(session(2), kOne, base_of_bytes(100, 5));
  book.keep(session(3), kOne, base_of_bytes(100, 6));
  EXPECT_EQ(book.incoming(session(2), kOne, 5).hash, 5u);
  EXPECT_EQ(book.incoming(session(3), kOne, 6).hash, 6u);
  EXPECT_TRUE(book.incoming(session(2), kOne, 6).empty());
  EXPECT_TRUE(book.incoming(session(2), kTwo, 5).empty());
  book.keep(session(2), kOne, base_of_bytes(100, 7));
  EXPECT_TRUE(book.incoming(session(2), kOne, 5).empty());
  EXPECT_EQ(book.counters().bytes, 200u);
}

TEST(BaseBookTest, BeyondTheBoundOfADirectionNewSamplesStayWithoutAndOldOnesStay) {
  BaseBook book(250);
  book.settled(session(10), kOne, base_of_bytes(100, 1));
  book.settled(session(10), kTwo, base_of_bytes(100, 2));
  book.settled(session(10), SampleId(3), base_of_bytes(100, 3));
  EXPECT_TRUE(book.outgoing(SampleId(3)).empty());
  EXPECT_EQ(book.outgoing(kOne).hash, 1u);
  EXPECT_EQ(book.counters().no_room, 1u);
  book.settled(session(10), kTwo, base_of_bytes(120, 4));
  EXPECT_EQ(book.outgoing(kTwo).hash, 4u) << "its own place is free";
  book.settled(session(10), kTwo, base_of_bytes(200, 5));
  EXPECT_TRUE(book.outgoing(kTwo).empty()) << "a base that is overtaken is none";
  book.keep(session(2), kOne, base_of_bytes(250, 8));
  EXPECT_EQ(book.incoming(session(2), kOne, 8).hash, 8u) << "the other direction has its own";
  book.keep(session(3), kOne, base_of_bytes(1, 9));
  EXPECT_TRUE(book.incoming(session(3), kOne, 9).empty());
  EXPECT_EQ(book.counters().bytes, 350u);
}

TEST(BaseBookTest, ASessionThatIsOverTakesItsBasesAlong) {
  BaseBook book(1000);
  book.settled(session(10), kOne, base_of_bytes(100, 1));
  book.settled(session(10), kTwo, base_of_bytes(100, 2));
  book.settled(session(11), kTwo, base_of_bytes(100, 2));
  book.keep(session(10), kOne, base_of_bytes(50, 3));
  book.keep(session(12), kOne, base_of_bytes(50, 4));
  book.forget(session(10));
  EXPECT_TRUE(book.outgoing(kOne).empty());
  EXPECT_EQ(book.outgoing(kTwo).hash, 2u);
  EXPECT_TRUE(book.incoming(session(10), kOne, 3).empty());
  EXPECT_EQ(book.incoming(session(12), kOne, 4).hash, 4u);
  EXPECT_EQ(book.counters().bytes, 150u);
}

}  // namespace
}  // namespace shoal
