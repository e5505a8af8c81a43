// What changed between two lists, and how who missed something comes to the newest.
#include "authority/list_change.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/crypto/sign.h"
#include "common/rng.h"
#include "tests/sync/sync_fixtures.h"
#include "transport/envelope.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using test::peer_of;
using test::session_of;

const KeyPair& run_key() {
  static const KeyPair key = KeyPair::from_seed({7});
  return key;
}
RunId the_run() { return RunId{run_key().id().bytes}; }
std::vector<std::uint8_t> signed_by_run(ByteView bytes) {
  const Signature signature = run_key().sign(bytes);
  return {signature.begin(), signature.end()};
}

Member member_of(std::uint64_t n, std::uint64_t version = 0) {
  return {session_of(n), peer_of(n), {{"10.0.0.1:" + std::to_string(7000 + n)}}, true, Version(version)};
}

MemberList list_of(std::uint16_t stages, std::uint64_t members_each) {
  MemberList list;
  list.run = the_run();
  list.epoch = Epoch(1);
  std::uint64_t n = 0;
  for (std::uint16_t k = 0; k < stages; ++k) {
    list.stages.emplace_back();
    list.stages.back().stage = StageId(k);
    for (std::uint64_t i = 0; i < members_each; ++i) list.stages.back().members.push_back(member_of(++n));
  }
  return list;
}

void add(StageMembers& stage, const Member& member) {
  const auto at = std::lower_bound(stage.members.begin(), stage.members.end(), member,
                                   [](const Member& a, const Member& b) { return a.session < b.session; });
  stage.members.insert(at, member);
}

void commit(StageMembers& stage) {
  for (Member& member : stage.members)
    if (member.version == stage.version) ++member.version.value;
  ++stage.version.value;
  ++stage.round.value;
  stage.secured = true;
  stage.digest.bytes[0] = static_cast<std::uint8_t>(stage.version.value);
}

// Anything that an authority may decide.
void change_at_random(MemberList& list, Rng& rng, std::uint64_t& next) {
  ++list.epoch.value;
  StageMembers& stage = list.stages[rng.below(list.stages.size())];
  ++stage.epoch.value;
  const auto some = [&]() -> Member& { return stage.members[rng.below(stage.members.size())]; };
  switch (stage.members.empty() ? 0 : rng.below(8)) {
    case 0:
      return add(stage, member_of(rng.below(1u << 20) * 1000 + ++next % 1000, stage.version.value));
    case 1:
      return void(
          stage.members.erase(stage.members.begin() + static_cast<std::ptrdiff_t>(rng.below(stage.members.size()))));
    case 2:
      return void(some().serving = rng.chance(0.5));
    case 3:
      return void(some().version = Version(rng.below(5)));
    case 4:
      list.relays.clear();
      for (std::uint64_t i = rng.below(3); i > 0; --i)
        list.relays.push_back({"203.0.113.7:" + std::to_string(i), static_cast<std::uint32_t>(rng.below(9))});
      return;
    case 5:
      return void(some().whereabouts.addresses = {"198.51.100.7:" + std::to_string(rng.below(9000))});
    case 6:
      return void(some().whereabouts.reach = static_cast<Reach>(rng.below(3)));
    default:
      return commit(stage);
  }
}

std::vector<std::uint8_t> packed(const MemberList& list) { return pack_member_list(list).value(); }

TEST(ListChangeTest, WhatIsAppliedIsTheNewListByteForByte) {
  Rng rng(11);
  std::uint64_t next = 100;
  for (int course = 0; course < 200; ++course) {
    MemberList list = list_of(3, rng.below(6));
    for (int i = 0; i < 20; ++i) {
      MemberList newer = list;
      for (std::uint64_t k = 1 + rng.below(4); k > 0; --k) change_at_random(newer, rng, next);
      const auto body = pack_list_change(change_between(list, newer));
      ASSERT_TRUE(body.ok());
      const auto change = parse_list_change(*body);
      ASSERT_TRUE(change.ok()) << change.error().message;
      MemberList applied = list;
      ASSERT_TRUE(apply_change(*change, applied).ok());
      ASSERT_EQ(packed(applied), packed(newer)) << "course " << course << " step " << i;
      list = std::move(newer);
    }
  }
}

TEST(ListChangeTest, ItsBytesFollowWhatChangedAndNotTheList) {
  const MemberList list = list_of(3, 200);
  const auto bytes_of = [&](const MemberList& newer) {
    const auto message = sign_change(change_between(list, newer), the_run(), signed_by_run);
    return pack_envelope(*message, std::nullopt)->size();
  };
  EXPECT_GT(packed(list).size(), 30'000u);
  MemberList newer = list;
  newer.epoch = Epoch(2);
  commit(newer.stages[1]);
  EXPECT_LT(bytes_of(newer), 200u) << "200 members moved with their stage";
  newer = list;
  add(newer.stages[0], member_of(100'000));
  EXPECT_LT(bytes_of(newer), 250u);
  newer = list;
  newer.stages[2].members.erase(newer.stages[2].members.begin());
  EXPECT_LT(bytes_of(newer), 180u);
}

TEST(ListChangeTest, RelaysTravelWhereTheyChangedAndAListOfOthersIsRefused) {
  MemberList list = list_of(1, 1), newer = list;
  newer.relays = {{"203.0.113.7:443", 10'000}, {"[2001:db8::7]:443", 0}};
  EXPECT_EQ(change_between(list, newer).relays, newer.relays);
  EXPECT_EQ(change_between(newer, newer).relays, std::nullopt);
  EXPECT_EQ(change_between(newer, list).relays, std::vector<RelayPlace>());
  EXPECT_EQ(parse_member_list(packed(newer))->relays, newer.relays);
  const auto refused = [&](std::vector<RelayPlace> relays) {
    MemberList other = list;
    other.relays = std::move(relays);
    const ErrorCode code = parse_member_list(packed(other)).code();
    EXPECT_EQ(parse_list_change(*pack_list_change(change_between(list, other))).code(), code);
    return code;
  };
  for (const std::string bad :
       {"", "a.example:443", "203.0.113.7", "203.0.113.7:0", "203.0.113.7:1+2", "via/203.0.113.7:1"})
    EXPECT_EQ(refused({{bad, 1}}), ErrorCode::kMalformed) << bad;
  EXPECT_EQ(refused({{"203.0.113.7:443", 1}, {"203.0.113.7:443", 2}}), ErrorCode::kMalformed) << "twice";
  std::vector<RelayPlace> many;
  for (std::size_t i = 0; i <= limits::kRelaysMax; ++i) many.push_back({"203.0.113.7:" + std::to_string(1 + i), 0});
  EXPECT_EQ(refused(many), ErrorCode::kTooLarge);
}

TEST(ListChangeTest, OnlyTheRunsKeySigns) {
  const MemberList list = list_of(1, 2);
  MemberList newer = list;
  newer.epoch = Epoch(2);
  newer.stages[0].members.pop_back();
  const MembersChange good = sign_change(change_between(list, newer), the_run(), signed_by_run).value();
  EXPECT_TRUE(open_list_change(good, the_run()).ok());
  for (std::size_t at = 0; at < good.body.size(); ++at) {
    MembersChange forged = good;
    forged.body[at] ^= 1;
    EXPECT_EQ(open_list_change(forged, the_run()).code(), ErrorCode::kCorrupt) << at;
  }
  MembersChange forged = good;
  forged.signature[5] ^= 1;
  EXPECT_EQ(open_list_change(forged, the_run()).code(), ErrorCode::kCorrupt);
  forged.signature.clear();
  EXPECT_EQ(open_list_change(forged, the_run()).code(), ErrorCode::kCorrupt);
  const KeyPair other = KeyPair::from_seed({8});
  EXPECT_EQ(open_list_change(good, RunId{other.id().bytes}).code(), ErrorCode::kCorrupt) << "of another run";
  // What the key signed as a whole list is no change, and the other way round.
  const std::vector<std::uint8_t> body = packed(list);
  EXPECT_EQ(open_list_change({body, signed_by_run(body)}, the_run()).code(), ErrorCode::kCorrupt);
}

TEST(ListChangeTest, AChangeThatDoesNotFitTheListIsRefused) {
  const MemberList list = list_of(2, 2);
  const auto apply = [&](auto edit) {
    ListChange change;
    change.epoch = Epoch(2);
    change.stages.resize(1);
    edit(change.stages[0]);
    MemberList copy = list;
    return apply_change(change, copy).code();
  };
  EXPECT_EQ(apply([](StageChange& c) { c.stage = StageId(2); }), ErrorCode::kMalformed);
  EXPECT_EQ(apply([](StageChange& c) { c.gone = {session_of(77)}; }), ErrorCode::kMalformed);
  EXPECT_EQ(apply([](StageChange& c) { c.joined = {member_of(1)}; }), ErrorCode::kMalformed);
  EXPECT_EQ(apply([](StageChange& c) { c.changed = {{session_of(77), true, Version(0)}}; }), ErrorCode::kMalformed);
  EXPECT_EQ(apply([](StageChange& c) { c.gone = {session_of(1), session_of(1)}; }), ErrorCode::kMalformed);
}

// ---- how one comes to the newest ----

class ListHistoryTest : public testing::Test {
 protected:
  void step(bool large = false) {
    ++list.epoch.value;
    if (large)
      for (Member& member : list.stages[0].members)
        member.whereabouts.addresses = {"198.51.100.9:" + std::to_string(list.epoch.value)};
    else
      add(list.stages[0], member_of(1000 + list.epoch.value));
    ids[list.epoch.value] = list_id(packed(list));
    told = history.tell(list).value();
  }
  // Follows the messages from the list of `epoch`.
  MemberList followed(MemberList from, const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      if (const auto* whole = std::get_if<Members>(&message)) {
        EXPECT_TRUE(verify(run_key().id(), whole->body, signature_of(whole->signature)));
        from = parse_member_list(whole->body).value();
      } else {
        const auto change = open_list_change(std::get<MembersChange>(message), the_run());
        EXPECT_TRUE(change.ok() && change->base == from.epoch && change->base_id == list_id(packed(from)));
        EXPECT_TRUE(apply_change(*change, from).ok());
        EXPECT_EQ(change->id, list_id(packed(from)));
      }
    }
    return from;
  }
  static Signature signature_of(const std::vector<std::uint8_t>& bytes) {
    Signature signature{};
    std::copy(bytes.begin(), bytes.end(), signature.begin());
    return signature;
  }

  MemberList list = list_of(2, 20);
  std::map<std::uint64_t, std::uint64_t> ids;
  ListHistory history{the_run(), signed_by_run};
  Message told;
};

TEST_F(ListHistoryTest, TheFirstListIsToldWholeAndThenWhatChanged) {
  step();
  EXPECT_TRUE(std::holds_alternative<Members>(told));
  step();
  EXPECT_TRUE(std::holds_alternative<MembersChange>(told));
  step(true);
  EXPECT_TRUE(std::holds_alternative<MembersChange>(told)) << "half of the list changed";
}

TEST_F(ListHistoryTest, EverybodyComesToTheNewestFromWhereItIs) {
  std::map<std::uint64_t, MemberList> lists;
  for (int i = 0; i < 10; ++i) {
    step();
    lists[list.epoch.value] = list;
  }
  for (const auto& [epoch, from] : lists) {
    const auto messages = history.since(Epoch(epoch), ids[epoch]);
    EXPECT_EQ(packed(followed(from, messages)), packed(list)) << epoch;
    EXPECT_EQ(messages.empty(), from.epoch == list.epoch);
  }
  const auto fresh = history.since(Epoch(0), 0);
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(packed(followed({}, fresh)), packed(list));
  // Of the same epoch, but another list: as after the launching process came back.
  const auto other = history.since(list.epoch, ids[list.epoch.value] ^ 1);
  ASSERT_EQ(other.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Members>(other[0]));
}

TEST_F(ListHistoryTest, WhatIsKeptIsBounded) {
  list = list_of(2, 5);
  step();
  const MemberList first = list;
  for (std::size_t i = 0; i < ListHistory::kChangesKept; ++i) step();
  EXPECT_EQ(history.since(first.epoch, ids[first.epoch.value]).size(), 1u) << "so many changes are more than the list";
  const std::uint64_t before = list.epoch.value - 3;
  EXPECT_EQ(history.since(Epoch(before), ids[before]).size(), 3u);
  step();
  const auto late = history.since(first.epoch, ids[first.epoch.value]);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Members>(late[0]));
}

}  // namespace
}  // namespace shoal
