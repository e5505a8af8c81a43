// Links between processes of which one alone can be dialled.
#include "router/reverse_links.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  std::set<PeerId> without_a_way;
  std::vector<PeerId> dialled;
  std::vector<Session> knocks;

  void learn(const PeerId&, Whereabouts) override {}
  bool reaches(const PeerId& peer) const override { return !without_a_way.contains(peer); }
  void dial(const PeerId& peer) override { dialled.push_back(peer); }
  Result<TransferId> send(const PeerId&, Message message, std::vector<Bytes>) override {
    if (const auto* knock = std::get_if<Knock>(&message)) knocks.push_back(knock->session);
    return TransferId{0};
  }
  void drop(const PeerId&, TransferId) override {}
  std::uint64_t ahead_of(const PeerId&, TransferId) const override { return 0; }
  void refuse(const PeerId&, TransferId) override {}
  std::optional<Remote> remote(const PeerId&) const override { return std::nullopt; }
  LinkStats stats(const PeerId&) const override { return {}; }
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

}  // namespace
}  // namespace shoal
