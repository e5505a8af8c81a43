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

TEST(InboundChunksTest, OnePeerCannotAnnounceTheSameChunkTwice) {
  InboundChunks chunks;
  EXPECT_TRUE(chunks.add(peer(1), 7, chunk(3)));
  EXPECT_FALSE(chunks.add(peer(1), 8, chunk(3)));
  EXPECT_FALSE(chunks.take(peer(1), 8).has_value());
  EXPECT_TRUE(chunks.add(peer(2), 8, chunk(3))) << "another peer may";
  chunks.take(peer(1), 7);
  EXPECT_TRUE(chunks.add(peer(1), 9, chunk(3))) << "asked again, because the first was corrupt";
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
