#include "sync/reducer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/rng.h"
#include "tests/sync/reducers.h"

namespace shoal {
namespace {

using namespace test;

class ReducerSizesTest : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

TEST_P(ReducerSizesTest, AllMembersGetTheSameSumAndTheSameMean) {
  const auto [members, count] = GetParam();
  Rng rng(members * 1000 + count);
  std::vector<Payload> payloads;
  std::uint64_t weight = 0;
  CountTag tag = 0;
  for (std::size_t i = 0; i < members; ++i) {
    payloads.push_back(random_payload(rng, count, i == 1 ? 0 : 3 + i, 1000 + i));
    if (i == 1) payloads[i] = payload_of(std::vector<float>(count, 0.0f));
    weight += payloads[i].weight;
    tag += payloads[i].tag;
  }
  for (const bool mean : {false, true}) {
    const std::vector<Payload> results = reduce_all(payloads, mean, rng);
    for (const Payload& result : results) {
      EXPECT_EQ(values_of(result), values_of(results[0])) << "identical bits";
      EXPECT_EQ(result.weight, weight);
      EXPECT_EQ(result.tag, tag);
    }
    const std::vector<float> sum = values_of(results[0]);
    ASSERT_EQ(sum.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      double expected = 0;
      for (const Payload& payload : payloads) {
        const double value = static_cast<double>(values_of(payload)[i]);
        const double share = static_cast<double>(payload.weight) / static_cast<double>(weight);
        if (payload.weight > 0) expected += (mean ? share : 1.0) * value;
      }
      ASSERT_EQ(sum[i], static_cast<float>(expected)) << "added in doubles, in member order";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(MembersAndSizes, ReducerSizesTest,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5), testing::Values(0, 1, 4, 5, 1001)));

// Every set of owners: whole numbers add up to the same bits however the values are cut.
TEST(ReducerTest, WhoeverOwnsThePartsTheSumIsTheSame) {
  Rng rng(17);
  for (const std::size_t members : {2u, 3u, 5u})
    for (const std::size_t count : {0u, 1u, 4u, 1001u}) {
      std::vector<Payload> payloads;
      for (std::size_t i = 0; i < members; ++i) {
        std::vector<float> values;
        for (std::size_t k = 0; k < count; ++k) values.push_back(static_cast<float>(rng.below(1000)) - 500);
        payloads.push_back(payload_of(values, 1 + i, 10 + i));
      }
      const Payload all = reduce_all(payloads, false, rng)[0];
      for (std::uint32_t set = 1; set < 1u << members; ++set) {
        RoundOwners owners;
        for (std::uint16_t i = 0; i < members; ++i)
          if (set & (1u << i)) owners.push_back(i);
        for (const Payload& result : reduce_all(payloads, false, rng, owners)) {
          ASSERT_EQ(values_of(result), values_of(all)) << members << " members, owners " << set;
          ASSERT_EQ(result.weight, all.weight);
          ASSERT_EQ(result.tag, all.tag);
        }
      }
    }
}

TEST(ReducerTest, AMemberThatOwnsNothingWaitsForTheOwnersAlone) {
  Rng rng(19);
  const RoundOwners owners{0, 2};
  std::vector<Reducer> members;
  for (std::size_t i = 0; i < 4; ++i)
    members.push_back(reducer_of({4, i, owners}, false, random_payload(rng, 9, 1, 1)));
  EXPECT_EQ(members[1].missing(), 0u);
  members[1].add(3, members[3].piece_for(0));
  EXPECT_FALSE(members[1].own_part_due());
  for (std::size_t part = 0; part < 2; ++part) {
    for (std::size_t from = 0; from < 4; ++from) members[owners[part]].add(from, members[from].piece_for(part));
    members[1].take(part, summed(members[owners[part]]).value());
    EXPECT_EQ(members[1].missing(), part == 0 ? std::optional<std::size_t>(2) : std::nullopt);
  }
  EXPECT_EQ(joined(members[1]).value().weight, 4u);
}

// It knows the weight of the whole from them alone. One that invents it makes no honest sum look false.
TEST(ReducerTest, AMemberThatOwnsNothingBelievesNoWeightThatTheOwnersContradict) {
  for (const std::size_t liar : {0u, 1u, 2u}) {
    Rng rng(29);
    const RoundOwners owners{0, 1, 2};
    std::vector<Reducer> members;
    const Payload own = random_payload(rng, 3000, 4, 1);
    for (std::size_t i = 0; i < 4; ++i) members.push_back(reducer_of({4, i, owners}, true, own));
    for (std::size_t part = 0; part < 3; ++part) {
      for (std::size_t from = 0; from < 4; ++from) members[part].add(from, members[from].piece_for(part));
      Reducer::Piece sum = summed(members[part]).value();
      if (part == liar) sum.weight = 1;
      members[3].take(part, sum);
    }
    EXPECT_EQ(joined(members[3]).code(), ErrorCode::kMalformed);
    EXPECT_EQ(members[3].failed(), std::nullopt);
  }
}

TEST(ReducerTest, PartsCoverTheValuesOnce) {
  for (std::size_t count : {0u, 1u, 7u, 100u})
    for (std::size_t members : {1u, 2u, 3u, 8u}) {
      std::size_t next = 0;
      for (std::size_t p = 0; p < members; ++p) {
        EXPECT_EQ(part_range(count, members, p).begin, next);
        next = part_range(count, members, p).end;
      }
      EXPECT_EQ(next, count);
    }
}

TEST(ReducerTest, NamesTheMemberItWaitsForAndRefusesNonFiniteParts) {
  Rng rng(3);
  Reducer a = reducer_of(3, 0, false, random_payload(rng, 9, 1, 1)),
          b = reducer_of(3, 1, false, random_payload(rng, 9, 1, 2)),
          c = reducer_of(3, 2, false, random_payload(rng, 9, 1, 4));
  EXPECT_EQ(a.missing(), 1u);
  a.add(1, b.piece_for(0));
  EXPECT_EQ(a.missing(), 2u);
  Reducer::Piece bad = c.piece_for(0);
  std::vector<std::uint8_t> bytes(bad.bytes.data(), bad.bytes.data() + bad.bytes.size());
  const float nan = NAN;
  std::memcpy(bytes.data() + 4, &nan, 4);
  bad.bytes = Bytes::from_vector(bytes);
  a.add(2, bad);
  a.add(2, c.piece_for(0));  // the first one stands
  EXPECT_EQ(summed(a).code(), ErrorCode::kNonFinite);
  EXPECT_EQ(a.failed(), 2u) << "whose it was";
}

TEST(ReducerTest, APartThatIsNotWhatItShouldBeIsItsOwners) {
  Rng rng(5);
  Reducer a = reducer_of(2, 0, false, random_payload(rng, 9, 1, 1)),
          b = reducer_of(2, 1, false, random_payload(rng, 9, 1, 2));
  a.add(1, b.piece_for(0));
  EXPECT_TRUE(summed(a).ok());
  EXPECT_EQ(a.missing(), 1u);
  a.take(1, {2, 3, Bytes::from_vector({1, 2, 3, 4})});
  EXPECT_EQ(joined(a).code(), ErrorCode::kMalformed);
  EXPECT_EQ(a.failed(), 1u);
}

// Values of about the same size a target; `times` as large at member 2, which says that it brings `weight`.
class ReducerSizeTest : public testing::Test {
 protected:
  static constexpr std::size_t kCount = 3 * 1000;
  Payload brought(float times, std::uint64_t weight) {
    Payload payload = random_payload(rng, kCount, weight, 1);
    std::vector<float> values = values_of(payload);
    for (float& value : values) value *= times;
    return payload_of(values, weight, 1);
  }
  // Member 0 adds its part of three payloads, of which two are honest.
  Result<Reducer::Piece> add_up(const Payload& third, std::uint64_t weight_of_second = 4) {
    Reducer owner = reducer_of(3, 0, true, brought(1, 4));
    const Reducer second = reducer_of(3, 1, true, brought(1, weight_of_second));
    const Reducer last = reducer_of(3, 2, true, third);
    owner.add(1, second.piece_for(0));
    owner.add(2, last.piece_for(0));
    auto sum = summed(owner);
    failed = owner.failed();
    return sum;
  }
  Rng rng{11};
  std::optional<std::size_t> failed;
};

TEST_F(ReducerSizeTest, APieceFarLargerThanTheMedianIsRefusedAndItsSenderNamed) {
  const auto sum = add_up(brought(1e4f, 4));
  EXPECT_EQ(sum.code(), ErrorCode::kMalformed);
  EXPECT_NE(sum.error().message.find("the round's median"), std::string::npos) << sum.error().message;
  EXPECT_EQ(failed, 2u);
}

TEST_F(ReducerSizeTest, AWeightThatItInventsExcusesItNot) {
  EXPECT_EQ(add_up(brought(1e4f, std::uint64_t{1} << 50)).code(), ErrorCode::kMalformed);
  EXPECT_EQ(failed, 2u);
}

TEST_F(ReducerSizeTest, WhoBringsMoreWorkMayBringLargerValues) {
  EXPECT_TRUE(add_up(brought(100, 400)).ok());
  EXPECT_TRUE(add_up(brought(1, 4), 400).ok()) << "and who brings little work";
  EXPECT_TRUE(add_up(payload_of(std::vector<float>(kCount, 0.0f), 0, 0)).ok()) << "or none";
}

// What it takes for one target a sum of many steps beside it has averaged away: per target it is 500 times the others'.
TEST_F(ReducerSizeTest, WhoMadeOneStepBesideMembersOfManyIsTaken) {
  const Payload members[] = {brought(22, 2000), brought(22, 2000)}, joiner = brought(22, 4);
  Reducer owner = reducer_of(3, 0, true, members[0]);
  owner.add(1, reducer_of(3, 1, true, members[1]).piece_for(0));
  owner.add(2, reducer_of(3, 2, true, joiner).piece_for(0));
  const auto sum = summed(owner);
  EXPECT_TRUE(sum.ok()) << sum.error().message;
  Reducer flooded = reducer_of(3, 0, true, members[0]);
  flooded.add(1, reducer_of(3, 1, true, members[1]).piece_for(0));
  flooded.add(2, reducer_of(3, 2, true, brought(22e4f, 4)).piece_for(0));
  EXPECT_FALSE(summed(flooded).ok()) << "large in whole too";
}

// Of two nobody knows which one is right: the smaller one is believed, and our own is not ours to refuse.
TEST_F(ReducerSizeTest, OfTwoTheOthersLargerOneIsRefused) {
  for (const bool other_is_larger : {true, false}) {
    Reducer owner = reducer_of(2, 0, true, brought(other_is_larger ? 1 : 1e4f, 4));
    const Reducer other = reducer_of(2, 1, true, brought(other_is_larger ? 1e4f : 1, 4));
    owner.add(1, other.piece_for(0));
    EXPECT_EQ(summed(owner).ok(), !other_is_larger);
  }
}

TEST_F(ReducerSizeTest, ASumFarLargerThanWhatWeBroughtIsItsOwners) {
  for (const float times : {1.0f, 1e4f}) {
    Reducer owner = reducer_of(2, 0, true, brought(1, 4));
    Reducer other = reducer_of(2, 1, true, brought(1, 4));
    owner.add(1, other.piece_for(0));
    ASSERT_TRUE(summed(owner).ok());
    other.add(0, owner.piece_for(1));
    Reducer::Piece sum = summed(other).value();
    std::vector<float> values = values_of(Payload{sum.bytes, 0, 0});
    for (float& value : values) value *= times;
    sum.bytes = payload_of(values).bytes;
    owner.take(1, sum);
    EXPECT_EQ(joined(owner).ok(), times == 1.0f);
    EXPECT_EQ(owner.failed(), times == 1.0f ? std::nullopt : std::optional<std::size_t>(1));
  }
}

TEST(ReducerTest, OwnersThatAddedDifferentPiecesAreFoundOut) {
  Rng rng(4);
  Reducer a = reducer_of(2, 0, false, random_payload(rng, 4, 1, 1)),
          b = reducer_of(2, 1, false, random_payload(rng, 4, 1, 2));
  a.add(1, b.piece_for(0));
  ASSERT_TRUE(summed(a).ok());
  Reducer::Piece other = b.piece_for(1);
  other.tag += 1;
  a.take(1, other);
  ASSERT_TRUE(a.complete());
  EXPECT_EQ(joined(a).code(), ErrorCode::kMalformed);
  EXPECT_EQ(a.failed(), std::nullopt) << "nobody knows whose fault it is";
}

}  // namespace
}  // namespace shoal
