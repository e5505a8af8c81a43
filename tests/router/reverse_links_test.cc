// Links between processes of which one alone can be dialled.
#include "router/reverse_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "names.h"
#include "router/neighbours.h"

namespace shoal {
namespace {

using namespace naming;

PeerId peer_at(std::uint64_t tag) {
  PeerId peer;
  peer.bytes[0] = static_cast<std::uint8_t>(tag);
  peer.bytes[1] = static_cast<std::uint8_t>(tag >> 8);
  return peer;
}

struct HeldLinks final : Links {
  std::set<PeerId> without_a_way, up;
  std::map<PeerId, Whereabouts> learnt;
  std::vector<PeerId> dialled;
  std::vector<Session> knocks;

  std::vector<std::string> homes(std::uint64_t tag) { return learnt[peer_at(tag)].homes; }

  void learn(const PeerId& peer, Whereabouts whereabouts) override { learnt[peer] = std::move(whereabouts); }
  bool reaches(const PeerId& peer) const override { return !without_a_way.contains(peer) || has_homes(peer); }
  bool needs_relay(const PeerId& peer) const override { return without_a_way.contains(peer) && has_homes(peer); }
  void dial(const PeerId& peer) override { dialled.push_back(peer); }
  Result<TransferId> send(const PeerId&, Message message, std::vector<Bytes>) override {
    if (const auto* knock = std::get_if<Knock>(&message)) knocks.push_back(knock->session);
    return TransferId{0};
  }
  void drop(const PeerId&, TransferId) override {}
  std::uint64_t ahead_of(const PeerId&, TransferId) const override { return 0; }
  void refuse(const PeerId&, TransferId) override {}
  std::optional<Remote> remote(const PeerId& peer) const override {
    return up.contains(peer) ? std::optional(Remote{peer, session(peer.bytes[0]), PeerRole::kPeer}) : std::nullopt;
  }
  LinkStats stats(const PeerId&) const override { return {}; }

 private:
  bool has_homes(const PeerId& peer) const { return learnt.contains(peer) && !learnt.at(peer).homes.empty(); }
};

// Of `stages` stages, each with so many members; the first `none` of each cannot be dialled. Tags count from 1.
MemberList list_of(std::uint16_t stages, std::uint64_t members, std::uint64_t none) {
  MemberList list;
  list.epoch = Epoch(1);
  std::uint64_t tag = 0;
  for (std::uint16_t k = 0; k < stages; ++k) {
    StageMembers& stage = list.stages.emplace_back();
    stage.stage = StageId(k);
    for (std::uint64_t i = 0; i < members; ++i) {
      Member& member = stage.members.emplace_back();
      member.session = session(++tag);
      member.peer = peer_at(tag);
      member.serving = true;
      member.whereabouts = i < none ? Whereabouts{{}, Reach::kNone} : Whereabouts{{"192.0.2.7:1"}, Reach::kDirect};
    }
  }
  return list;
}

MemberList with_relays(MemberList list, std::uint64_t epoch = 1) {
  list.epoch = Epoch(epoch);
  list.relays = {{"203.0.113.1:443", 10'000}, {"203.0.113.2:443", 0}};
  return list;
}

Remote failed_dial_of(std::uint64_t tag) { return {peer_at(tag), Session{}, PeerRole::kPeer}; }

constexpr TimePoint kBegin = TimePoint{} + 100s;

TEST(ReverseLinksTest, WhomNobodyDialsKeepsLinksToTheDirectOnesAround) {
  HeldLinks links;
  ReverseLinks of_none(links, session(5), peer_at(999)), of_direct(links, session(6), peer_at(999));
  of_none.on_members(list_of(4, 2, 1));  // 5 and 6 are of stage 2
  of_direct.on_members(list_of(4, 2, 1));
  EXPECT_TRUE(of_direct.kept().empty());
  std::vector<PeerId> kept = of_none.kept();
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept, (std::vector<PeerId>{peer_at(4), peer_at(6), peer_at(8)})) << "stages 1, 2 and 3, and never itself";
  of_none.tick(kBegin);
  EXPECT_EQ(links.dialled.size(), 3u);
  of_none.tick(kBegin + 100ms);
  EXPECT_EQ(links.dialled.size(), 3u);
  of_none.tick(kBegin + ReverseLinks::kLookPeriod);
  EXPECT_EQ(links.dialled.size(), 6u);
  ReverseLinks of_many(links, session(1), peer_at(999));
  of_many.on_members(list_of(1, 200, 1));
  EXPECT_EQ(of_many.kept().size(), ReverseLinks::kStageMax);
}

TEST(ReverseLinksTest, ItKnocksWhereItHasNoWayToOnceASecond) {
  HeldLinks links;
  Neighbours direct(links, session(2), peer_at(999));
  direct.on_members(list_of(2, 3, 2), kBegin);  // 4 and 5 of the next stage cannot be dialled
  direct.tick(kBegin);
  links.without_a_way = {peer_at(4), peer_at(5)};
  EXPECT_EQ(direct.candidates(StageId(1), kBegin), std::vector<Session>{session(6)});
  EXPECT_TRUE(links.knocks.empty()) << "2 cannot be dialled either";
  Neighbours dialable(links, session(3), peer_at(999));
  dialable.on_members(list_of(2, 3, 2), kBegin);
  for (int i = 0; i < 10; ++i) {
    dialable.tick(kBegin + i * 100ms);
    EXPECT_EQ(dialable.candidates(StageId(1), kBegin), std::vector<Session>{session(6)});
  }
  EXPECT_EQ(links.knocks, (std::vector<Session>{session(4), session(5)}));
  dialable.tick(kBegin + ReverseLinks::kKnockPause);
  links.without_a_way.erase(peer_at(4));
  EXPECT_EQ(dialable.candidates(StageId(1), kBegin), (std::vector<Session>{session(4), session(6)}));
  EXPECT_EQ(links.knocks.back(), session(5));
  dialable.tick(kBegin + 2 * ReverseLinks::kKnockPause);
  EXPECT_TRUE(dialable.reach(peer_at(4)));
  EXPECT_FALSE(dialable.reach(peer_at(5)));
  EXPECT_EQ(links.knocks.size(), 4u) << "also for a message of others than hops";
  links.without_a_way = {peer_at(4), peer_at(5), peer_at(6)};
  EXPECT_TRUE(dialable.candidates(StageId(1), kBegin).empty()) << "nobody is asked over no way";
  links.dialled.clear();
  direct.on_knock(session(6));
  direct.on_knock(session(77));
  EXPECT_EQ(links.dialled, std::vector<PeerId>{peer_at(6)}) << "a member alone";
}

TEST(ReverseLinksTest, TwoThatNobodyDialsMeetAtTheHomesOfTheCalledOne) {
  HeldLinks links;
  Neighbours none(links, session(1), peer_at(999));
  none.on_members(list_of(2, 3, 2), kBegin);
  EXPECT_TRUE(links.homes(4).empty()) << "the list names no relay";
  none.on_members(with_relays(list_of(2, 3, 2), 2), kBegin);
  EXPECT_EQ(links.homes(4), homes_of(peer_at(4), {"203.0.113.1:443", "203.0.113.2:443"}));
  EXPECT_EQ(links.homes(2).size(), 2u);
  EXPECT_TRUE(links.homes(6).empty()) << "it can be dialled";
  none.on_members(
      [] {
        MemberList list = with_relays(list_of(2, 3, 2), 3);
        list.relays.pop_back();
        return list;
      }(),
      kBegin);
  EXPECT_EQ(links.homes(4), std::vector<std::string>{"203.0.113.1:443"}) << "the other relay is gone";
}

TEST(ReverseLinksTest, WhomOthersDialCallsAtHomesWhereKnocksBroughtNothing) {
  HeldLinks links;
  links.without_a_way = {peer_at(4), peer_at(5)};
  Neighbours direct(links, session(3), peer_at(999));
  direct.on_members(with_relays(list_of(2, 3, 2)), kBegin);
  const auto look = [&](Duration after) {
    direct.tick(kBegin + after);
    return direct.reach(peer_at(4));
  };
  EXPECT_FALSE(look(0ms));
  EXPECT_FALSE(look(900ms));
  EXPECT_EQ(links.knocks, std::vector<Session>{session(4)});
  EXPECT_TRUE(look(ReverseLinks::kRelayAfter));
  EXPECT_EQ(links.homes(4).size(), 2u);
  EXPECT_TRUE(links.homes(5).empty()) << "nobody knocked there";
  direct.on_link_up({peer_at(4), session(4), PeerRole::kPeer});
  EXPECT_TRUE(links.homes(4).empty()) << "the next time it is knocked first";
  EXPECT_FALSE(look(2s));
  EXPECT_TRUE(look(3s));
  direct.on_link_down(failed_dial_of(4), kBegin + 3s);
  EXPECT_FALSE(look(3s)) << "nobody is called there";
}

// A network that lets out few ports: who sits there dials relays alone.
TEST(ReverseLinksTest, OneThatNobodyDialsKnocksWhereItsDialFailsAndIsCalled) {
  HeldLinks links;
  Neighbours none(links, session(1), peer_at(999)), direct(links, session(6), peer_at(999));
  none.on_members(list_of(2, 3, 2), kBegin);
  none.tick(kBegin);
  none.on_link_down(failed_dial_of(6), kBegin);
  EXPECT_TRUE(links.knocks.empty()) << "nobody could call it";
  none.on_members(with_relays(list_of(2, 3, 2), 2), kBegin);
  none.on_link_down(failed_dial_of(6), kBegin);
  none.on_link_down(failed_dial_of(6), kBegin);
  EXPECT_EQ(links.knocks, std::vector<Session>{session(6)});
  direct.on_members(with_relays(list_of(2, 3, 2)), kBegin);
  links.without_a_way = {peer_at(1)};
  links.dialled.clear();
  direct.tick(kBegin);
  EXPECT_TRUE(links.homes(1).empty());
  direct.on_knock(session(1));
  EXPECT_EQ(links.homes(1).size(), 2u);
  EXPECT_EQ(links.dialled, std::vector<PeerId>{peer_at(1)});
}

TEST(ReverseLinksTest, ARelayedLinkIsOpenedWhereNoneIsLeftOrAllWereFullForASecond) {
  HeldLinks links;
  links.without_a_way = {peer_at(4), peer_at(5)};
  Neighbours none(links, session(1), peer_at(999));
  none.on_members(with_relays(list_of(2, 3, 2)), kBegin);
  const auto candidates = [&](Duration after) { return none.candidates(StageId(1), kBegin + after); };
  const auto refuse = [&](std::uint64_t tag, Duration after) {
    none.health().asked(session(tag), kBegin + after, false);
    none.health().ended(session(tag));
    none.health().refused(session(tag), kBegin + after, kBegin + after);
  };
  EXPECT_EQ(candidates(0ms), std::vector<Session>{session(6)});
  refuse(6, 0ms);
  EXPECT_EQ(candidates(0ms), std::vector<Session>{session(6)});
  EXPECT_EQ(candidates(900ms).size(), 1u);
  EXPECT_TRUE(links.dialled.empty());
  EXPECT_EQ(candidates(Neighbours::kFullTime).size(), 1u) << "it is opened first";
  ASSERT_EQ(links.dialled.size(), 1u) << "one at a time";
  const std::uint64_t first = links.dialled[0].bytes[0], second = 9 - first;
  links.up = {peer_at(first)};
  EXPECT_EQ(candidates(1100ms).size(), 2u);
  refuse(6, 1500ms);
  refuse(first, 1500ms);
  (void)candidates(1500ms);
  (void)candidates(2500ms);
  ASSERT_EQ(links.dialled.size(), 2u);
  EXPECT_EQ(links.dialled[1], peer_at(second)) << "both had no room";
  none.on_link_down({peer_at(6), session(6), PeerRole::kPeer}, kBegin + 10s);
  EXPECT_EQ(candidates(10s), std::vector<Session>{session(first)}) << "one that stands is enough";
  none.on_link_down({peer_at(first), session(first), PeerRole::kPeer}, kBegin + 10s);
  links.up.clear();
  EXPECT_EQ(candidates(10s), std::vector<Session>{session(second)}) << "what is sent there opens it";
}

TEST(ReverseLinksTest, WhereFewerAreMetWithoutARelayThanOverOneLinksAreOpenedThough) {
  HeldLinks links;
  links.without_a_way = {peer_at(4), peer_at(5)};
  Neighbours none(links, session(1), peer_at(999));
  none.on_members(with_relays(list_of(2, 3, 2)), kBegin);
  const auto candidates = [&](Duration after) { return none.candidates(StageId(1), kBegin + after); };
  EXPECT_EQ(candidates(0ms), std::vector<Session>{session(6)}) << "it has room";
  EXPECT_TRUE(links.dialled.empty());
  (void)candidates(Neighbours::kFullTime);
  ASSERT_EQ(links.dialled.size(), 1u);
  links.up = {links.dialled[0]};
  for (const Duration after : {2s, 3s, 4s}) EXPECT_EQ(candidates(after).size(), 2u);
  EXPECT_EQ(links.dialled.size(), 1u) << "half can be met, and these have room";
}

// A peer of stage 0 has its gradients sent again to a launching process that they did not come to.
TEST(ReverseLinksTest, ADialOfTheAuthorityThatFailedIsItsSessions) {
  HeldLinks links;
  Neighbours peer(links, session(1), peer_at(999));
  peer.on_members(list_of(2, 3, 2), kBegin);
  EXPECT_EQ(peer.on_link_down(failed_dial_of(999), kBegin), Session{}) << "it was never heard";
  peer.on_link_up({peer_at(999), session(999), PeerRole::kTrainer});
  EXPECT_EQ(peer.on_link_down(failed_dial_of(999), kBegin), session(999));
}

TEST(ReverseLinksTest, ARelayedLinkWeighsAFifthUntilAHopFinishedThere) {
  HopRates rates;
  for (const std::uint64_t tag : {1, 2}) {
    rates.set_relayed(session(tag), tag == 2);
    EXPECT_DOUBLE_EQ(rates.weight(session(tag), kBegin), tag == 2 ? HopRates::kRelayedShare : 1);
  }
  for (const std::uint64_t tag : {1, 2}) rates.report(session(tag), 100ms, 100ms, kBegin);
  const auto ratio = [&] { return rates.weight(session(2), kBegin) / rates.weight(session(1), kBegin); };
  EXPECT_DOUBLE_EQ(ratio(), HopRates::kRelayedShare);
  EXPECT_DOUBLE_EQ(rates.expected_seconds(session(2), 0, kBegin),
                   rates.expected_seconds(session(1), 0, kBegin) / HopRates::kRelayedShare);
  for (const std::uint64_t tag : {1, 2}) rates.finished(session(tag), 200ms, 0.2, kBegin);
  EXPECT_NEAR(ratio(), 1, 1e-9) << "as fast as the other";
  rates.set_relayed(session(2), false);
  EXPECT_NEAR(ratio(), 1, 1e-9);
}

}  // namespace
}  // namespace shoal
