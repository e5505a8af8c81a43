// Where members can be dialled, as the list says it; and knocks, which are passed on.
#include "tests/authority/authority_rig.h"
#include "transport/envelope.h"

namespace shoal::test {
namespace {

class AuthorityReachTest : public AuthorityTest {
 protected:
  void join_at(std::uint64_t n, Whereabouts found, std::optional<StageId> wish = {}) {
    JoinRequest request;
    request.wish = wish;
    request.whereabouts = std::move(found);
    join(n, request);
  }
  Whereabouts whereabouts_of(std::uint64_t n) const {
    for (const StageMembers& stage : authority->members().stages)
      for (const Member& member : stage.members)
        if (member.session == session_of(n)) return member.whereabouts;
    ADD_FAILURE() << n << " is no member";
    return {};
  }
  // Of the first round of members that are found there, which all bring their work to.
  RoundOwners owners_of_first(const std::vector<Whereabouts>& found, const std::vector<RelayPlace>& relays = {}) {
    boot();
    EXPECT_TRUE(authority->set_relays(relays).ok());
    settle();
    for (std::uint64_t n = 1; n <= found.size(); ++n) {
      join_at(n, found[n - 1]);
      beat(n);
    }
    beat(2, 0, 100 * found.size());
    commit_first(found.size());
    EXPECT_EQ(commits.size(), 1u);
    const std::vector<RoundOpen> opened = sent_to<RoundOpen>(1);
    EXPECT_EQ(opened.size(), 1u);
    if (opened.empty()) return {};
    EXPECT_EQ(opened.at(0).members.size(), found.size());
    return opened.at(0).owners;
  }
  void knock(std::uint64_t from, std::uint64_t at) { authority->on_message(remote(from), Knock{session_of(at)}); }

  const Whereabouts nowhere{{}, Reach::kNone}, somewhere{{"192.0.2.7:4700"}, Reach::kDirect};
};

TEST_F(AuthorityReachTest, WhomNobodyDialledIsAMemberAndIsRaisedLater) {
  boot();
  join_at(1, nowhere);
  EXPECT_EQ(whereabouts_of(1), nowhere);
  authority->on_reach(session_of(1), somewhere);
  settle();
  EXPECT_EQ(whereabouts_of(1), somewhere);
  const auto lines = told(EventKind::kMember);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const EventRecord& line) { return line.state == "reach"; }),
            2);
  const Epoch epoch = authority->members().epoch;
  authority->on_reach(session_of(1), somewhere);
  authority->on_reach(session_of(9), somewhere);
  settle();
  EXPECT_EQ(authority->members().epoch, epoch) << "nothing changed";
}

TEST_F(AuthorityReachTest, JoinersGoWhereTheyMeetAMemberOrAreMet) {
  options.stages = 2;
  boot();
  const auto stage_of = [&](std::uint64_t n) { return sent_to<JoinAnswer>(n).back().stage; };
  join_at(1, nowhere, StageId(0));
  join_at(2, somewhere, StageId(1));
  join_at(3, nowhere);
  EXPECT_EQ(stage_of(3), StageId(1)) << "1 could give it no state";
  join_at(4, nowhere, StageId(0));
  authority->on_reach(session_of(1), somewhere);
  authority->on_reach(session_of(2), nowhere);
  settle();
  join_at(5, somewhere);
  EXPECT_EQ(stage_of(5), StageId(1)) << "nobody there can be dialled any more";
}

TEST_F(AuthorityReachTest, OneOfFourThatCanBeDialledOwnsTheRoundOfAll) {
  EXPECT_EQ(owners_of_first({nowhere, somewhere, nowhere, nowhere}), RoundOwners{1});
}

TEST_F(AuthorityReachTest, OneThatCannotBeDialledFillsTheOwnersUp) {
  EXPECT_EQ(owners_of_first({nowhere, somewhere, somewhere}), (RoundOwners{0, 1, 2}));
}

TEST_F(AuthorityReachTest, WhereARelayJoinsThemTwoThatCannotBeDialledFillTheOwnersUp) {
  EXPECT_EQ(owners_of_first({nowhere, somewhere, nowhere, nowhere}, {{"203.0.113.7:443", 0}}), (RoundOwners{0, 1, 2}));
}

TEST_F(AuthorityReachTest, ReachOutlivesTheProcessAndACompactedLog) {
  boot();
  join_at(1, nowhere);
  join_at(2, {{"192.168.1.7:1"}, Reach::kLocal});
  for (const bool compacted : {false, true}) {
    EXPECT_TRUE(!compacted || compact());
    reboot();
    EXPECT_EQ(whereabouts_of(1), nowhere);
    EXPECT_EQ(whereabouts_of(2).reach, Reach::kLocal);
  }
}

TEST_F(AuthorityReachTest, RelaysStandOnEachListAreToldAndOutliveTheProcessAndACompactedLog) {
  const std::vector<RelayPlace> relays = {{"203.0.113.7:443", 10'000}};
  boot();
  join_at(1, nowhere);
  settle();
  sent.clear();
  ASSERT_TRUE(authority->set_relays(relays).ok());
  settle();
  loop.run_for(1s);
  EXPECT_EQ(authority->members().relays, relays);
  ASSERT_EQ(sent_to<MembersChange>(1).size(), 1u);
  EXPECT_EQ(parse_list_change(sent_to<MembersChange>(1)[0].body)->relays, relays);
  const Epoch epoch = authority->members().epoch;
  ASSERT_TRUE(authority->set_relays(relays).ok());
  settle();
  EXPECT_EQ(authority->members().epoch, epoch) << "nothing changed";
  for (const bool compacted : {false, true}) {
    EXPECT_TRUE(!compacted || compact());
    reboot();
    EXPECT_EQ(authority->members().relays, relays);
    EXPECT_GE(authority->members().epoch, epoch);
  }
  ASSERT_TRUE(authority->set_relays({}).ok());
  settle();
  EXPECT_TRUE(authority->members().relays.empty());
  EXPECT_EQ(authority->set_relays({{"a.example:1", 0}}).code(), ErrorCode::kMalformed);
}

TEST_F(AuthorityReachTest, OneThatNobodyDialsKnocksOnlyWhereARelayJoins) {
  boot();
  join_at(1, nowhere);
  join_at(2, somewhere);
  knock(1, 2);
  EXPECT_TRUE(sent_to<Knock>(2).empty());
  ASSERT_TRUE(authority->set_relays({{"203.0.113.7:443", 0}}).ok());
  settle();
  knock(1, 2);
  EXPECT_EQ(sent_to<Knock>(2).size(), 1u);
}

TEST_F(AuthorityReachTest, AKnockIsPassedOnBetweenMembersOnceASecond) {
  boot();
  join_at(1, somewhere);
  join_at(2, nowhere);
  sent.clear();
  for (int i = 0; i < 3; ++i) knock(1, 2);
  ASSERT_EQ(sent_to<Knock>(2).size(), 1u);
  EXPECT_EQ(sent_to<Knock>(2)[0].session, session_of(1)) << "under the name of its sender";
  loop.run_for(1s);
  knock(1, 2);
  EXPECT_EQ(sent_to<Knock>(2).size(), 2u);
  knock(2, 1);
  EXPECT_TRUE(sent_to<Knock>(1).empty()) << "nobody could dial who asks";
  knock(7, 2);
  knock(1, 9);
  EXPECT_EQ(sent_to<Knock>(2).size(), 2u) << "of no member";
}

TEST_F(AuthorityReachTest, WhoKnocksOftenIsHeardSoOften) {
  boot();
  join_at(1, somewhere);
  for (std::uint64_t n = 2; n < 102; ++n) join_at(n, nowhere);
  sent.clear();
  for (std::uint64_t n = 2; n < 102; ++n) knock(1, n);
  std::size_t passed = 0;
  for (const auto& [peer, message] : sent) passed += std::holds_alternative<Knock>(message) ? 1 : 0;
  EXPECT_EQ(passed, static_cast<std::size_t>(kKnocksPerSecond));
}

}  // namespace
}  // namespace shoal::test
