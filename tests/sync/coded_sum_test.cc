// Rounds whose pieces and sums travel as frames of a codec: equal bits everywhere, a bounded error, and the same
// refusals as among floats.
#include <gtest/gtest.h>

#include <cmath>

#include "compression/codec.h"
#include "tests/sync/reducers.h"

namespace shoal {
namespace {

using test::joined;
using test::payload_of;
using test::summed;
using test::values_of;

constexpr std::size_t kMembers = 3, kCount = 1001;

class CodedSumTest : public testing::TestWithParam<CodecId> {
 protected:
  std::vector<Payload> payloads() {
    std::vector<Payload> all;
    for (std::size_t member = 0; member < kMembers; ++member) {
      std::vector<float> values;
      for (std::size_t i = 0; i < kCount; ++i) values.push_back(static_cast<float>(0.01 * rng.normal()));
      all.push_back(payload_of(values, 3 + member, 1u << member));
    }
    return all;
  }
  static Reducer reducer_of(CodecId codec, std::size_t self, const Payload& own, std::size_t members = kMembers) {
    Reducer reducer({members, self, all_own(members)},
                    make_coded_sum(codec, DenseSum::kWeightedMean, own.bytes, members), own.weight, own.tag);
    reducer.cut().job();
    return reducer;
  }
  static std::vector<Reducer> reducers_of(CodecId codec, const std::vector<Payload>& payloads) {
    std::vector<Reducer> members;
    for (std::size_t i = 0; i < payloads.size(); ++i) members.push_back(reducer_of(codec, i, payloads[i]));
    return members;
  }
  // Adds up the bytes that a member sends.
  std::vector<Payload> reduced(std::vector<Reducer>& members) {
    for (std::size_t from = 0; from < members.size(); ++from)
      for (std::size_t to = 0; to < members.size(); ++to)
        if (from != to) {
          sent += members[from].piece_for(to).bytes.size();
          members[to].add(from, members[from].piece_for(to));
        }
    std::vector<Reducer::Piece> sums;
    for (Reducer& member : members) sums.push_back(summed(member).value());
    for (std::size_t owner = 0; owner < members.size(); ++owner)
      for (std::size_t to = 0; to < members.size(); ++to)
        if (owner != to) {
          sent += sums[owner].bytes.size();
          members[to].take(owner, sums[owner]);
        }
    std::vector<Payload> results;
    for (Reducer& member : members) results.push_back(joined(member).value());
    return results;
  }
  static std::vector<double> mean_of(const std::vector<Payload>& payloads) {
    std::vector<double> mean(kCount);
    double weight = 0;
    for (const Payload& each : payloads) weight += static_cast<double>(each.weight);
    for (const Payload& each : payloads)
      for (std::size_t i = 0; i < kCount; ++i)
        mean[i] += static_cast<double>(each.weight) / weight * static_cast<double>(values_of(each)[i]);
    return mean;
  }
  static double error_of(const Payload& result, const std::vector<double>& mean) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      error += std::pow(static_cast<double>(values_of(result)[i]) - mean[i], 2);
      size += mean[i] * mean[i];
    }
    return std::sqrt(error / size);
  }

  Rng rng{7};
  std::uint64_t sent = 0;
};

TEST_P(CodedSumTest, AllMembersHaveTheSameBitsAndAboutTheMean) {
  const std::vector<Payload> brought = payloads();
  std::vector<Reducer> members = reducers_of(GetParam(), brought);
  const std::vector<Payload> results = reduced(members);
  for (const Payload& result : results) {
    EXPECT_EQ(values_of(result), values_of(results[0]));
    EXPECT_EQ(result.weight, 12u);
    EXPECT_EQ(result.tag, 7u);
  }
  const double most = GetParam() == CodecId::kInt4 ? 0.2 : GetParam() == CodecId::kInt8 ? 0.02 : 0.005;
  EXPECT_LT(error_of(results[0], mean_of(brought)), most);
  EXPECT_GT(error_of(results[0], mean_of(brought)), 0) << "it was coded";
}

// One that owns nothing has the bits of those that own.
TEST_P(CodedSumTest, AnySetOfOwnersGivesAllMembersTheSameBits) {
  const std::vector<Payload> brought = payloads();
  for (const RoundOwners& owners : {RoundOwners{1}, RoundOwners{0, 2}}) {
    std::vector<Reducer> members;
    for (std::size_t i = 0; i < kMembers; ++i) {
      members.emplace_back(RoundShape{kMembers, i, owners},
                           make_coded_sum(GetParam(), DenseSum::kWeightedMean, brought[i].bytes, owners.size()),
                           brought[i].weight, brought[i].tag);
      members.back().cut().job();
    }
    std::vector<Reducer::Piece> sums;
    for (std::size_t part = 0; part < owners.size(); ++part) {
      for (std::size_t from = 0; from < kMembers; ++from)
        members[owners[part]].add(from, members[from].piece_for(part));
      sums.push_back(summed(members[owners[part]]).value());
    }
    std::vector<Payload> results;
    for (Reducer& member : members) {
      for (std::size_t part = 0; part < owners.size(); ++part) member.take(part, sums[part]);
      results.push_back(joined(member).value());
    }
    for (const Payload& result : results) EXPECT_EQ(values_of(result), values_of(results[0]));
    EXPECT_LT(error_of(results[0], mean_of(brought)), GetParam() == CodecId::kInt4 ? 0.2 : 0.02);
  }
}

TEST_P(CodedSumTest, WeighsWhatItsCodecSays) {
  std::vector<Reducer> members = reducers_of(GetParam(), payloads());
  (void)reduced(members);
  const double floats = 4.0 * kCount * 2 * (kMembers - 1);
  const double most = GetParam() == CodecId::kInt4 ? 0.2 : GetParam() == CodecId::kInt8 ? 0.32 : 0.56;  // with heads
  EXPECT_LT(static_cast<double>(sent), most * floats);
}

TEST_P(CodedSumTest, AMemberAloneAndMoreMembersThanValues) {
  const Payload one = payload_of({1.0f, -2.0f}, 5, 9);
  Reducer alone = reducer_of(GetParam(), 0, one, 1);
  EXPECT_TRUE(alone.own_part_due());
  EXPECT_TRUE(summed(alone).ok());
  EXPECT_EQ(values_of(joined(alone).value()).size(), 2u);

  const std::vector<Payload> few(kMembers, payload_of({0.5f, -0.25f}, 4, 1));
  std::vector<Reducer> members = reducers_of(GetParam(), few);
  for (const Payload& result : reduced(members)) {
    ASSERT_EQ(values_of(result).size(), 2u);
    EXPECT_NEAR(static_cast<double>(values_of(result)[0]), 0.5, 0.05);
  }
}

TEST_P(CodedSumTest, WhatIsNoPieceIsRefusedAndItsSenderNamed) {
  const std::vector<Payload> brought = payloads();
  const auto refused = [&](const Bytes& bytes) {
    std::vector<Reducer> members = reducers_of(GetParam(), brought);
    members[0].add(1, members[1].piece_for(0));
    members[0].add(2, {brought[2].weight, brought[2].tag, bytes});
    const bool failed = !summed(members[0]).ok();
    return failed && members[0].failed() == 2u;
  };
  std::vector<Reducer> members = reducers_of(GetParam(), brought);
  EXPECT_FALSE(refused(members[2].piece_for(0).bytes));
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(members[2].piece_for(2).bytes)) << "one of another part's length";
  EXPECT_TRUE(refused(brought[2].bytes)) << "plain floats";
  EXPECT_TRUE(refused(reducers_of(CodecId::kFp16, brought)[2].piece_for(0).bytes)) << "another codec's";
  const ByteView good = members[2].piece_for(0).bytes.view();
  for (std::size_t at = 0; at < good.size(); at += 7) {
    std::vector<std::uint8_t> damaged(good.begin(), good.end());
    damaged[at] ^= 0x40;
    EXPECT_TRUE(refused(Bytes::from_vector(damaged))) << at;
  }
  EXPECT_TRUE(refused(Bytes::copy_of(good.subspan(0, good.size() - 1))));
}

// The bound of a piece is that of what it stands for.
TEST_P(CodedSumTest, AHugePieceIsRefused) {
  std::vector<Payload> brought = payloads();
  std::vector<float> huge = values_of(brought[2]);
  for (float& value : huge) value *= 1000;
  brought[2] = payload_of(huge, brought[2].weight, brought[2].tag);
  std::vector<Reducer> members = reducers_of(GetParam(), brought);
  members[0].add(1, members[1].piece_for(0));
  members[0].add(2, members[2].piece_for(0));
  EXPECT_FALSE(summed(members[0]).ok());
  EXPECT_EQ(members[0].failed(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Codecs, CodedSumTest, testing::Values(CodecId::kBf16, CodecId::kInt8, CodecId::kInt4));

}  // namespace
}  // namespace shoal
