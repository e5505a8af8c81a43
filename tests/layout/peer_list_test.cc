#include "layout/peer_list.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

const std::string kKey(64, 'a'), kOther(64, 'b');

std::string said(const std::string& text) {
  const auto list = parse_peer_list(text, "peers.toml");
  return list.ok() ? "ok" : list.error().message;
}
std::string wished(const std::string& text, std::uint16_t stages) {
  const auto list = parse_peer_list(text, "peers.toml");
  if (!list.ok()) return list.error().message;
  const auto wishes = wishes_of(*list, stages);
  return wishes.ok() ? "ok" : wishes.error().message;
}

TEST(PeerListTest, ReadsWhatIsSaidOfAPeer) {
  const auto list = parse_peer_list(
      "trainer = \"Ohio\"\n[[peer]]\nname = \"lab\"\nregion = \"Ohio\"\ntokens_per_s = 1200\nmemory_mib = 8000\n"
      "up_mbps = 100\ndown_mbps = 400.5\n\n[[peer]]\nkey = \"" +
          kKey + "\"\nflops = 1e13\nstage = 2\n",
      "peers.toml");
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->trainer, "Ohio");
  ASSERT_EQ(list->peers.size(), 2u);
  EXPECT_EQ(list->peers[0].name, "lab");
  EXPECT_EQ(list->peers[0].tokens_per_s, 1200);
  EXPECT_EQ(list->peers[0].memory_mib, 8000u);
  EXPECT_EQ(list->peers[0].down_mbps, 400.5);
  EXPECT_FALSE(list->peers[0].key);
  EXPECT_EQ(list->peers[1].name, "aaaaaaaa") << "the beginning of its key";
  EXPECT_EQ(list->peers[1].flops, 1e13);
  EXPECT_EQ(list->peers[1].stage, 2);
  EXPECT_EQ(list->peers[1].line, 10u);
}

TEST(PeerListTest, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_TRUE(said("[[peer]\n").starts_with("peers.toml:1: "));
  EXPECT_EQ(said("stages = 2\n"), "peers.toml: there is no [[peer]]");
  EXPECT_EQ(said("[peer]\nname = \"a\"\n"), "peers.toml:1: a peer is a [[peer]] with keys");
  EXPECT_TRUE(said("[[peer]]\nname = \"a\"\nspeed = 3\n").starts_with("peers.toml:3: unknown key \"speed\""));
  EXPECT_TRUE(said("stage = 3\n").starts_with("peers.toml:1: unknown key \"stage\""));
  EXPECT_EQ(said("[[peer]]\nflops = 1\n"), "peers.toml:1: a peer needs a name or a key");
  EXPECT_EQ(said("[[peer]]\nname = \"a\"\nflops = 0\n"), "peers.toml:3: flops must be a number above 0");
  EXPECT_EQ(said("[[peer]]\nname = \"a\"\nflops = \"1\"\n"), "peers.toml:3: flops must be a number above 0");
  EXPECT_EQ(said("[[peer]]\nname = \"a\"\nstage = -1\n"), "peers.toml:3: stage must be a whole number from 0");
  EXPECT_TRUE(said("[[peer]]\nname = \"a\"\nflops = 1\nstage_ms = 1\n").ends_with("tokens_per_s, flops or stage_ms"));
  EXPECT_TRUE(said("[[peer]]\nkey = \"abc\"\n").starts_with("peers.toml:2: key: "));
  EXPECT_TRUE(said("[[peer]]\nname = \"a\"\n[[peer]]\nname = \"a\"\n")
                  .starts_with("peers.toml:3: peer \"a\" stands in line 1 already"));
  EXPECT_TRUE(said("[[peer]]\nkey = \"" + kKey + "\"\n[[peer]]\nname = \"b\"\nkey = \"" + kKey + "\"\n")
                  .starts_with("peers.toml:3: the key of peer \"b\" stands in line 1 already"));
}

TEST(PeerListTest, AListThatDoesNotFitTheRunIsRefusedWithItsRemedy) {
  const std::string peer = "[[peer]]\nname = \"a\"\nkey = \"" + kKey + "\"\n";
  EXPECT_EQ(wished(peer + "stage = 1\n", 2), "ok");
  EXPECT_TRUE(
      wished(peer + "stage = 2\n", 2).starts_with("peers.toml:1: peer \"a\" is wished for stage 2; the run has 2"));
  EXPECT_TRUE(wished(peer, 2).starts_with("peers.toml:1: peer \"a\" has no stage. HINT"));
  EXPECT_TRUE(wished("[[peer]]\nname = \"a\"\nstage = 1\n", 2).starts_with("peers.toml:1: peer \"a\" has no key"));
  EXPECT_TRUE(wished("stages = 3\n" + peer + "stage = 1\n", 2).starts_with("peers.toml was planned for 3 stages"));
}

TEST(PeerListTest, WhatIsWrittenIsReadAgain) {
  PeerList list{.origin = "peers.toml", .stages = 2};
  list.peers.push_back(
      {.name = "a \"b\"", .key = PeerId{*parse_hex32(kKey)}, .region = "Ohio", .flops = 3, .stage = 1});
  list.peers.push_back({.name = "c", .stage = 0});
  const auto again = parse_peer_list(text_of(list), "again.toml");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->stages, 2);
  ASSERT_EQ(again->peers.size(), 2u);
  EXPECT_EQ(again->peers[0].name, "a \"b\"");
  EXPECT_EQ(again->peers[0].key, list.peers[0].key);
  EXPECT_EQ(again->peers[0].stage, 1);
  EXPECT_FALSE(again->peers[1].key);
}

}  // namespace
}  // namespace shoal
