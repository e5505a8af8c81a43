#include "authority/recent_commits.h"

#include <gtest/gtest.h>

#include <numeric>

namespace shoal {
namespace {

Digest digest_of(std::uint64_t n) {
  Digest digest;
  digest.bytes[0] = static_cast<std::uint8_t>(n);
  digest.bytes[1] = static_cast<std::uint8_t>(n >> 8);
  return digest;
}

RoundCommit commit_of(std::uint64_t version, std::vector<std::uint64_t> serials, std::uint64_t peer = 1) {
  RoundCommit commit;
  commit.version = Version(version);
  commit.digest = digest_of(version);
  commit.tag = 100 + version;
  commit.secured.push_back({Session{peer, 7}, std::move(serials)});
  return commit;
}

RoundCommit back_to(std::uint64_t made, std::uint64_t version) {
  RoundCommit commit;
  commit.version = Version(made);
  commit.digest = digest_of(version);
  commit.back_to = Version(version);
  return commit;
}

TEST(RecentCommitsTest, NamesWhatLiesBehindAVersion) {
  RecentCommits recent;
  recent.push(commit_of(1, {1, 2}));
  recent.push(commit_of(2, {5}, 2));
  recent.push(commit_of(3, {3, 9}));
  const auto taken = recent.behind(Version(1));
  ASSERT_EQ(taken.secured.size(), 2u);
  EXPECT_EQ(taken.secured[0].serials, (std::vector<std::uint64_t>{3, 9}));
  EXPECT_EQ(taken.secured[1].serials, std::vector<std::uint64_t>{5});
  EXPECT_EQ(taken.tag, 102u + 103u);
  EXPECT_EQ(taken.entries(), 3u);
  EXPECT_EQ(recent.behind(Version(3)).entries(), 0u);
  EXPECT_TRUE(recent.known({Version(2), digest_of(2)}));
  EXPECT_FALSE(recent.known({Version(2), digest_of(3)}));
  EXPECT_FALSE(recent.known({Version(4), digest_of(4)}));
  EXPECT_TRUE(recent.took_part(2, Version(2)));
  EXPECT_FALSE(recent.took_part(2, Version(3)));
  EXPECT_TRUE(recent.took_part(1, Version(2))) << "in a later one";
}

TEST(RecentCommitsTest, WhatAStageWentBackFromIsForgotten) {
  RecentCommits recent;
  for (std::uint64_t version = 1; version <= 4; ++version) recent.push(commit_of(version, {version}));
  recent.push(back_to(5, 2));
  EXPECT_FALSE(recent.digest_of(Version(3)));
  EXPECT_FALSE(recent.digest_of(Version(4)));
  EXPECT_EQ(recent.digest_of(Version(5)), digest_of(2));
  recent.push(commit_of(6, {60}));
  const auto taken = recent.behind(Version(1));
  ASSERT_EQ(taken.secured.size(), 1u);
  EXPECT_EQ(taken.secured[0].serials, (std::vector<std::uint64_t>{2, 60})) << "3 and 4 were taken back before";
}

TEST(RecentCommitsTest, KeepsAThousandShortRoundsAndFewLongOnes) {
  RecentCommits recent;
  for (std::uint64_t version = 1; version <= 20'000; ++version)
    recent.push(commit_of(version, {8 * version, 8 * version + 1}));
  EXPECT_TRUE(recent.digest_of(Version(19'000)));
  EXPECT_FALSE(recent.digest_of(Version(10'000)));
  std::vector<std::uint64_t> even(100'000);
  std::iota(even.begin(), even.end(), 1);
  for (std::uint64_t& serial : even) serial *= 2;
  for (std::uint64_t version = 20'001; version <= 20'010; ++version) recent.push(commit_of(version, even));
  EXPECT_FALSE(recent.digest_of(Version(20'006)));
  EXPECT_TRUE(recent.digest_of(Version(20'007))) << "the newest ones whatever they name";
  EXPECT_EQ(recent.behind(Version(20'009)).entries(), even.size());
}

}  // namespace
}  // namespace shoal
