#include "runtime/stage_peer/tensor_store.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

PeerId peer(std::uint8_t number) {
  PeerId id;
  id.bytes[0] = number;
  return id;
}

TEST(TensorStoreTest, FramesThatArriveAreOneEntrysInputOnce) {
  TensorStore store;
  store.await(7, {1, 70}, {peer(1), 3});
  store.await(8, {1, 80}, {peer(2), 3});
  EXPECT_EQ(store.arrived({peer(1), 5}), std::nullopt);
  EXPECT_EQ(store.arrived({peer(2), 3}), 8u) << "a transfer's number belongs to its link";
  EXPECT_EQ(store.arrived({peer(1), 3}), 7u);
  EXPECT_EQ(store.arrived({peer(1), 3}), std::nullopt);
}

TEST(TensorStoreTest, AnEntryHasItsTensorsUntilItIsErased) {
  TensorStore store;
  EXPECT_EQ(store.find(7), nullptr);
  store.await(7, {1, 70}, {peer(1), 3});
  ASSERT_NE(store.find(7), nullptr);
  EXPECT_EQ(store.find(7)->microbatch, (MicrobatchId{1, 70}));
  (void)store.arrived({peer(1), 3});
  EXPECT_NE(store.find(7), nullptr);
  store.erase(7);
  EXPECT_EQ(store.find(7), nullptr);
}

TEST(TensorStoreTest, AJobKeepsTheTensorsOfAnEntryThatEnds) {
  TensorStore store;
  store.await(7, {1, 70}, {peer(1), 3});
  const auto of_the_job = store.find(7);
  store.erase(7);
  EXPECT_EQ(of_the_job->microbatch, (MicrobatchId{1, 70}));
}

TEST(TensorStoreTest, AwaitedAgainAsKeyFramesAnEntryBeginsAnew) {
  TensorStore store;
  store.await(7, {1, 70}, {peer(1), 3});
  store.find(7)->input = {Bytes::copy_of("delta")};
  (void)store.arrived({peer(1), 3});
  store.await(7, {1, 70}, {peer(1), 9});
  EXPECT_TRUE(store.find(7)->input.empty());
  EXPECT_EQ(store.arrived({peer(1), 9}), 7u);
}

TEST(TensorStoreTest, FramesOfALinkThatIsDownOrThatAreForgottenAreNobodys) {
  TensorStore store;
  store.await(7, {1, 70}, {peer(1), 3});
  store.await(8, {1, 80}, {peer(2), 4});
  store.await(9, {1, 90}, {peer(2), 6});
  store.forget_link(peer(1));
  store.forget({peer(2), 4});
  EXPECT_EQ(store.arrived({peer(1), 3}), std::nullopt);
  EXPECT_EQ(store.arrived({peer(2), 4}), std::nullopt);
  EXPECT_EQ(store.arrived({peer(2), 6}), 9u);
}

}  // namespace
}  // namespace shoal
