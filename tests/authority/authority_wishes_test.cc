// join --stage N: obeyed, overridden with a reason, or refused; and who asks at once ends where it asked to be.
#include <algorithm>
#include <numeric>

#include "common/rng.h"
#include "tests/authority/authority_rig.h"

namespace shoal {
namespace {

using test::AuthorityTest;
using test::peer_of;

JoinRequest wish(std::uint16_t stage) {
  JoinRequest request;
  request.wish = StageId(stage);
  return request;
}

class WishesTest : public AuthorityTest {
 protected:
  // As a joiner does: the request is repeated until it is answered.
  void ask_until(std::map<std::uint64_t, std::uint16_t> wishes, Duration limit) {
    for (const auto& [n, stage] : wishes) authority->on_link_up(remote(n));
    for (const TimePoint until = loop.now() + limit; loop.now() < until; loop.run_for(2s)) {
      for (const std::uint64_t n : order_) {
        if (!sent_to<JoinAnswer>(n).empty()) continue;
        authority->on_message(remote(n), wish(wishes.at(n)));
        settle();
      }
    }
  }
  std::vector<std::uint64_t> order_;
};

class WishOrderTest : public WishesTest, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(WishOrderTest, EightThatAskForTwoOfEachStageAreTwoAtEachStage) {
  options.stages = 4;
  boot();
  std::map<std::uint64_t, std::uint16_t> wishes;
  for (std::uint64_t n = 1; n <= 8; ++n) wishes[n] = static_cast<std::uint16_t>((n - 1) % 4);
  order_.resize(8);
  std::iota(order_.begin(), order_.end(), 1);
  Rng rng(GetParam());
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng.below(i)]);
  ask_until(wishes, 8s);
  for (std::uint16_t stage = 0; stage < 4; ++stage) EXPECT_EQ(members(StageId(stage)), 2u) << "stage " << stage;
  for (const auto& [n, stage] : wishes) {
    ASSERT_EQ(sent_to<JoinAnswer>(n).size(), 1u);
    EXPECT_EQ(sent_to<JoinAnswer>(n)[0].stage, StageId(stage));
    EXPECT_EQ(sent_to<JoinAnswer>(n)[0].reason, "as asked for");
  }
}
INSTANTIATE_TEST_SUITE_P(Orders, WishOrderTest, testing::Range<std::uint64_t>(1, 25));

TEST_F(WishesTest, AStageThatNobodyComesForIsFilledAgainstAWishAfterItsPatience) {
  options.stages = 2;
  boot();
  join(1, wish(1));
  ASSERT_EQ(sent_to<JoinAnswer>(1).size(), 1u);
  EXPECT_EQ(sent_to<JoinAnswer>(1)[0].stage, StageId(1)) << "one empty stage is as good as the other";
  join(2, wish(1));
  EXPECT_TRUE(sent_to<JoinAnswer>(2).empty()) << "somebody may be on the way to stage 0";
  loop.run_for(MemberBook::kWishPatience);
  authority->on_message(remote(1), beat_of(0, 0, StageId(1)));
  join(2, wish(1));
  ASSERT_EQ(sent_to<JoinAnswer>(2).size(), 1u);
  EXPECT_EQ(sent_to<JoinAnswer>(2)[0].stage, StageId(0));
  EXPECT_EQ(sent_to<JoinAnswer>(2)[0].reason, "weakest stage (0 members)");
  join(3, wish(7));
  ASSERT_EQ(sent_to<JoinAnswer>(3).size(), 1u);
  EXPECT_FALSE(sent_to<JoinAnswer>(3)[0].accepted);
}

// A joiner that asks for nothing is not kept waiting, and a crowd of wishes is no reason to keep more than a few.
TEST_F(WishesTest, NoMoreThanSoManyWait) {
  options.stages = 2;
  host.clear();  // the pace of one host's joiners is another matter
  boot();
  join(1, wish(1));
  const auto stranger = [](std::uint64_t n) {
    PeerId peer;
    peer.bytes[0] = 9;
    peer.bytes[1] = static_cast<std::uint8_t>(n);
    peer.bytes[2] = static_cast<std::uint8_t>(n >> 8);
    return Remote{peer, Session::of(peer, 1), PeerRole::kPeer};
  };
  const auto answers = [&] {
    std::vector<JoinAnswer> all;
    for (const auto& [peer, message] : sent)
      if (const auto* answer = std::get_if<JoinAnswer>(&message)) all.push_back(*answer);
    return all;
  };
  for (std::uint64_t n = 0; n <= MemberBook::kWishesMax; ++n) {
    ASSERT_EQ(answers().size(), 1u) << n;
    authority->on_link_up(stranger(n));
    authority->on_message(stranger(n), wish(1));
    settle();
  }
  ASSERT_EQ(answers().size(), 2u) << "that of one too many";
  EXPECT_EQ(answers().back().stage, StageId(0));
}

TEST_F(WishesTest, ALayoutIsTheWishOfWhoseOwnerHasNone) {
  options.stages = 3;
  options.layout = {{peer_of(1), StageId(2)}, {peer_of(2), StageId(1)}, {peer_of(4), StageId(0)}};
  boot();
  join(1);
  ASSERT_EQ(sent_to<JoinAnswer>(1).size(), 1u);
  EXPECT_EQ(sent_to<JoinAnswer>(1)[0].stage, StageId(2));
  EXPECT_EQ(sent_to<JoinAnswer>(1)[0].reason, "as the layout has it");
  join(2, wish(0));
  EXPECT_EQ(sent_to<JoinAnswer>(2)[0].stage, StageId(0)) << "its owner's word comes first";
  EXPECT_EQ(sent_to<JoinAnswer>(2)[0].reason, "as asked for");
  join(3);
  EXPECT_EQ(sent_to<JoinAnswer>(3)[0].stage, StageId(1)) << "the layout does not know it: the weakest";
  join(4);
  EXPECT_EQ(sent_to<JoinAnswer>(4)[0].stage, StageId(0));
}

TEST_F(WishesTest, AsALayoutHasThemEightAreTwoAtEachStageInAnyOrder) {
  options.stages = 4;
  for (std::uint64_t n = 1; n <= 8; ++n) options.layout[peer_of(n)] = StageId(static_cast<std::uint16_t>((n - 1) / 2));
  boot();
  for (std::uint64_t n = 1; n <= 8; ++n) authority->on_link_up(remote(n));
  for (const TimePoint until = loop.now() + 8s; loop.now() < until; loop.run_for(2s))
    for (std::uint64_t n = 1; n <= 8; ++n) {
      if (!sent_to<JoinAnswer>(n).empty()) continue;
      authority->on_message(remote(n), JoinRequest());
      settle();
    }
  for (std::uint64_t n = 1; n <= 8; ++n) {
    ASSERT_EQ(sent_to<JoinAnswer>(n).size(), 1u) << n;
    EXPECT_EQ(sent_to<JoinAnswer>(n)[0].stage, options.layout.at(peer_of(n))) << n;
  }
}

}  // namespace
}  // namespace shoal
