#include "runtime/peer/inbound_chunks.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

PeerId peer(std::uint8_t n) {
  PeerId id;
  id.bytes[0] = n;
  return id;
}

Chunk chunk(std::uint32_t index) {
  Chunk one;
  one.index = index;
  return one;
}

TEST(InboundChunksTest, BytesFindTheirHeaderByPeerAndTransferOnce) {
  InboundChunks chunks;
  EXPECT_TRUE(chunks.add(peer(1), 7, chunk(3)));
  EXPECT_TRUE(chunks.add(peer(2), 7, chunk(4)));
  EXPECT_FALSE(chunks.take(peer(1), 8).has_value()) << "frames of something else";
  ASSERT_TRUE(chunks.take(peer(1), 7).has_value());
  EXPECT_FALSE(chunks.take(peer(1), 7).has_value());
  EXPECT_EQ(chunks.take(peer(2), 7)->index, 4u);
}

TEST(InboundChunksTest, AChunkFindsItsTransferWhileItIsOnItsWay) {
  InboundChunks chunks;
  Chunk newer = chunk(3);
  newer.version = Version(8);
  chunks.add(peer(1), 7, chunk(3));
  EXPECT_EQ(chunks.transfer_of(peer(1), chunk(3)), TransferId{7});
  EXPECT_FALSE(chunks.transfer_of(peer(1), newer).has_value());
  EXPECT_FALSE(chunks.transfer_of(peer(1), chunk(4)).has_value());
  EXPECT_FALSE(chunks.transfer_of(peer(2), chunk(3)).has_value());
  chunks.take(peer(1), 7);
  EXPECT_FALSE(chunks.transfer_of(peer(1), chunk(3)).has_value());
}

TEST(InboundChunksTest, OnePeerCannotAnnounceTheSameChunkTwice) {
  InboundChunks chunks;
  EXPECT_TRUE(chunks.add(peer(1), 7, chunk(3)));
  EXPECT_FALSE(chunks.add(peer(1), 8, chunk(3)));
  EXPECT_FALSE(chunks.take(peer(1), 8).has_value());
  EXPECT_TRUE(chunks.add(peer(2), 8, chunk(3))) << "another peer may";
  chunks.take(peer(1), 7);
  EXPECT_TRUE(chunks.add(peer(1), 9, chunk(3))) << "asked again, because the first was corrupt";
}

TEST(InboundChunksTest, ChunksOfAVersionThatIsNotFetchedAnyMoreAreRefused) {
  InboundChunks chunks;
  Chunk old_one = chunk(3), new_one = chunk(3), of_the_base = chunk(4);
  old_one.version = Version(7);
  new_one.version = Version(8);
  of_the_base.version = Version(0);
  EXPECT_TRUE(chunks.add(peer(1), 7, old_one));
  EXPECT_TRUE(chunks.add(peer(1), 8, of_the_base));
  std::vector<TransferId> refused;
  chunks.refuse_others(Version(8), [&](const PeerId&, TransferId transfer) { refused.push_back(transfer); });
  EXPECT_EQ(refused, std::vector<TransferId>{7});
  EXPECT_FALSE(chunks.take(peer(1), 7).has_value());
  EXPECT_TRUE(chunks.take(peer(1), 8).has_value());
  EXPECT_TRUE(chunks.add(peer(1), 9, new_one)) << "the one before had the same number";
}

TEST(InboundChunksTest, ALinkThatBreaksTakesItsOwnAlong) {
  InboundChunks chunks;
  chunks.add(peer(1), 7, chunk(3));
  chunks.add(peer(1), 8, chunk(4));
  chunks.add(peer(2), 9, chunk(5));
  chunks.drop(peer(1));
  EXPECT_FALSE(chunks.take(peer(1), 7).has_value());
  EXPECT_FALSE(chunks.take(peer(1), 8).has_value());
  EXPECT_TRUE(chunks.take(peer(2), 9).has_value());
}

}  // namespace
}  // namespace shoal
