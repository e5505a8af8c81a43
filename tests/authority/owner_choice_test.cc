#include "authority/owner_choice.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

using OwnerPairs = std::vector<std::pair<std::size_t, std::size_t>>;

struct OwnerCase {
  const char* why;
  std::vector<bool> direct;
  OwnerPairs apart;
  std::size_t needed;
  RoundOwners owners;
};

TEST(OwnerChoiceTest, AllThatCanBeDialledOwnAndOthersFillUpToThreeButNobodyOfAPairApart) {
  constexpr bool kDirect = true, kNone = false;
  const OwnerCase cases[] = {
      {"alone", {kDirect}, {}, 1, {0}},
      {"alone, at home", {kNone}, {}, 1, {0}},
      {"all direct", {kDirect, kDirect, kDirect, kDirect}, {}, 1, {0, 1, 2, 3}},
      {"two at home", {kNone, kNone}, {}, 1, {0, 1}},
      {"three direct are enough to judge a sum", {kNone, kDirect, kDirect, kNone, kDirect}, {}, 1, {1, 2, 4}},
      {"one direct is filled up to three", {kNone, kNone, kNone, kDirect, kNone}, {}, 1, {0, 1, 3}},
      {"a pair beside a third", {kDirect, kDirect, kDirect}, {{0, 2}}, 1, {1}},
      {"who is in a pair does not fill up", {kDirect, kNone, kNone, kNone, kNone}, {{1, 3}}, 1, {0, 2, 4}},
      {"one of four meets all", {kNone, kDirect, kNone, kNone}, {{0, 2}, {2, 3}, {0, 3}}, 1, {1}},
      {"two that do not meet", {kDirect, kDirect}, {{0, 1}}, 1, {}},
      {"each in a pair", {kDirect, kDirect, kDirect, kDirect}, {{0, 1}, {2, 3}}, 1, {}},
      {"one that meets none", {kDirect, kDirect, kDirect}, {{0, 1}, {0, 2}}, 1, {}},
      {"parts too large for two", {kDirect, kDirect, kDirect, kDirect}, {{0, 1}}, 3, {}},
      {"parts too large for three", {kDirect, kNone, kNone, kNone, kNone}, {}, 4, {0, 1, 2, 3}},
  };
  for (const OwnerCase& one : cases) EXPECT_EQ(choose_owners(one.direct, one.apart, one.needed), one.owners) << one.why;
}

TEST(OwnerChoiceTest, WhatItChoosesAreOwnersAndMeetAll) {
  for (std::uint32_t cut = 0; cut < 1u << 6; ++cut)
    for (std::uint32_t home = 0; home < 16; ++home) {
      std::vector<bool> direct;
      for (std::uint32_t i = 0; i < 4; ++i) direct.push_back((home & (1u << i)) == 0);
      OwnerPairs apart;
      std::uint32_t bit = 0;
      for (std::size_t a = 0; a < 4; ++a)
        for (std::size_t b = a + 1; b < 4; ++b)
          if (cut & (1u << bit++)) apart.emplace_back(a, b);
      const RoundOwners owners = choose_owners(direct, apart, 1);
      EXPECT_TRUE(owners.empty() || are_owners(owners, 4));
      for (const auto& [a, b] : apart)
        for (const std::uint16_t owner : owners) EXPECT_TRUE(owner != a && owner != b);
    }
}

}  // namespace
}  // namespace shoal
