// Members and owners that lie about what they bring to a round and what they make of it.
#include "sync/piece_sizes.h"
#include "tests/sync/reducers.h"

namespace shoal {
namespace {

using namespace test;

// Eight members step towards the same place, each with noise of its own.
class ByzantineMemberTest : public testing::Test {
 protected:
  static constexpr std::size_t kMembers = 8, kCount = kMembers * 512;
  std::vector<Payload> honest() {
    std::vector<float> towards(kCount);
    for (float& value : towards) value = static_cast<float>(rng.normal());
    std::vector<Payload> all;
    for (std::size_t i = 0; i < kMembers; ++i) {
      std::vector<float> values = towards;
      for (float& value : values) value += static_cast<float>(rng.normal());
      all.push_back(payload_of(values, 4, 1));
    }
    return all;
  }
  static Payload times(const Payload& payload, float factor) {
    std::vector<float> values = values_of(payload);
    for (float& value : values) value *= factor;
    return payload_of(values, payload.weight, payload.tag);
  }
  static double along(const Payload& a, const Payload& b) {
    double ab = 0, bb = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      ab += static_cast<double>(values_of(a)[i]) * static_cast<double>(values_of(b)[i]);
      bb += static_cast<double>(values_of(b)[i]) * static_cast<double>(values_of(b)[i]);
    }
    return ab / bb;
  }
  // What member 0 makes of the sums when member 5 sends `factor` times the one that it made.
  Result<Payload> with_sum_of_five(float factor) {
    const std::vector<Payload> payloads = honest();
    std::vector<Reducer> members;
    for (std::size_t i = 0; i < kMembers; ++i) members.push_back(reducer_of(kMembers, i, true, payloads[i]));
    for (std::size_t from = 0; from < kMembers; ++from)
      for (std::size_t to = 0; to < kMembers; ++to)
        if (from != to) members[to].add(from, members[from].piece_for(to));
    for (std::size_t owner = 0; owner < kMembers; ++owner) {
      Reducer::Piece sum = summed(members[owner]).value();
      if (owner == 5) sum.bytes = times({sum.bytes, 1, 0}, factor).bytes;
      if (owner != 0) members[0].take(owner, sum);
    }
    auto result = joined(members[0]);
    failed = members[0].failed();
    return result;
  }
  Rng rng{23};
  std::optional<std::size_t> failed;
};

TEST_F(ByzantineMemberTest, OneOfEightPullsTheMeanBackByTwoStepsAtMost) {
  std::vector<Payload> payloads = honest();
  const Payload clean = reduce_all(payloads, true, rng)[0];
  for (const float factor : {-30.0f, -50.0f, 50.0f}) {
    std::vector<Payload> with_liar = payloads;
    with_liar[3] = times(payloads[3], factor);
    const double kept = along(reduce_all(with_liar, true, rng)[0], clean);
    EXPECT_GT(kept, 0.5) << factor;
    EXPECT_LT(kept, 1.25) << factor;
  }
}

TEST_F(ByzantineMemberTest, HonestPiecesAreAddedAsTheyAre) {
  const std::vector<Payload> payloads = honest();
  const std::vector<float> mean = values_of(reduce_all(payloads, true, rng)[0]);
  for (std::size_t i = 0; i < kCount; i += 97) {
    double expected = 0;
    for (const Payload& payload : payloads) expected += static_cast<double>(values_of(payload)[i]) / kMembers;
    ASSERT_EQ(mean[i], static_cast<float>(expected));
  }
}

TEST_F(ByzantineMemberTest, AFalseSumIsItsOwners) {
  EXPECT_TRUE(with_sum_of_five(1).ok());
  EXPECT_EQ(failed, std::nullopt);
  for (const float factor : {-30.0f, -1.0f, 30.0f}) {
    EXPECT_FALSE(with_sum_of_five(factor).ok()) << factor;
    EXPECT_EQ(failed, 5u) << factor;
  }
}

// Three sums are enough to judge one of them, also for members that own none.
TEST_F(ByzantineMemberTest, AFalseSumIsItsOwnersWhereFewOwn) {
  const RoundOwners owners{1, 4, 5};
  for (const float factor : {1.0f, -1.0f, 30.0f}) {
    const std::vector<Payload> payloads = honest();
    std::vector<Reducer> members;
    for (std::size_t i = 0; i < kMembers; ++i) members.push_back(reducer_of({kMembers, i, owners}, true, payloads[i]));
    for (std::size_t part = 0; part < owners.size(); ++part) {
      Reducer& owner = members[owners[part]];
      for (std::size_t from = 0; from < kMembers; ++from) owner.add(from, members[from].piece_for(part));
      Reducer::Piece sum = summed(owner).value();
      if (part == 2) sum.bytes = times({sum.bytes, 1, 0}, factor).bytes;
      for (const std::size_t judge : {0u, 1u})
        if (judge != owners[part]) members[judge].take(part, sum);
    }
    for (const std::size_t judge : {0u, 1u}) {
      EXPECT_EQ(joined(members[judge]).ok(), factor == 1.0f);
      EXPECT_EQ(members[judge].failed(), factor == 1.0f ? std::nullopt : std::optional<std::size_t>(5));
    }
  }
}

// Small steps make noise in few directions, and an honest sum of it may point anywhere.
TEST_F(ByzantineMemberTest, ASumThatPointsAgainstUsIsFalseOnlyWhereTheOthersDoNot) {
  const auto judged = [](double agreement, double others) {
    std::vector<SumBeside> sums(4, {.size = 1, .own_size = 1, .agreement = others});
    sums[2].agreement = agreement;
    return refused_sum(sums, 4, 0);
  };
  EXPECT_EQ(judged(-0.9, 0.9)->at, 2u);
  EXPECT_FALSE(judged(-0.9, 0.5));
  EXPECT_FALSE(judged(-0.5, 0.9));
  EXPECT_FALSE(judged(0.9, 0.9));
  EXPECT_FALSE(judged(-0.9, -0.9));
}

// What shares nothing: each moves a place of its own.
TEST_F(ByzantineMemberTest, MembersThatAgreeInNothingAreTaken) {
  std::vector<Payload> payloads;
  for (std::size_t i = 0; i < kMembers; ++i) payloads.push_back(random_payload(rng, kCount, 4, 1));
  reduce_all(payloads, true, rng);
}

}  // namespace
}  // namespace shoal
