#include "authority/membership.h"

#include <gtest/gtest.h>

#include "authority/list_change.h"
#include "common/crypto/sign.h"
#include "sim/sim_loop.h"
#include "tests/sync/sync_fixtures.h"
#include "transport/envelope.h"
#include "transport/signed_list.h"

namespace shoal {
namespace {
using test::peer_of;
using test::session_of;

TEST(EndTest, OnlyTheRunsKeyEndsARun) {
  const KeyPair key = KeyPair::from_seed({1, 2, 3}), other = KeyPair::from_seed({4});
  const RunId run{key.id().bytes}, other_run{other.id().bytes};
  const auto signed_by = [&](const KeyPair& signer, const RunId& of) {
    const Signature signature = signer.sign(end_text(of, "done"));
    return End{"done", {signature.begin(), signature.end()}};
  };
  EXPECT_TRUE(check_end(signed_by(key, run), run).ok());
  EXPECT_EQ(check_end(signed_by(other, run), run).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(check_end(signed_by(key, other_run), run).code(), ErrorCode::kCorrupt) << "of another run";
  EXPECT_EQ(check_end(End{"done"}, run).code(), ErrorCode::kCorrupt);
  End changed = signed_by(key, run);
  changed.reason = "gone";
  EXPECT_EQ(check_end(changed, run).code(), ErrorCode::kCorrupt);
}

class MembershipTest : public testing::Test, public MembershipPort {
 protected:
  MembershipTest() : key(KeyPair::from_seed({1, 2, 3})) {
    run.bytes = key.id().bytes;
    MembershipOptions options;
    options.run = run;
    options.self = session_of(1);
    membership = std::make_unique<Membership>(options, *this, loop);
  }
  void send_to_authority(Message message) override { sent.push_back(std::move(message)); }
  Beat make_beat() override {
    Beat beat;
    beat.serving = true;
    return beat;
  }
  void on_joined(const JoinAnswer&) override { said += "joined "; }
  void on_refused(const std::string&) override { said += "refused "; }
  void on_unreachable(const std::string& reason) override { said += "unreachable(" + reason + ") "; }
  void on_later(const std::string& reason) override { said += "later(" + reason + ") "; }
  void on_members(const MemberList& list) override { said += "list" + std::to_string(list.epoch.value) + " "; }
  void on_fenced(const std::string&) override { said += "fenced "; }
  void on_goodbye() override { said += "goodbye "; }
  void on_end(const std::string&) override { said += "end "; }
  void on_status(const BeatAck&) override { said += "status "; }

  MemberList list_of(std::uint64_t epoch, const std::vector<std::uint64_t>& serving) {
    MemberList list;
    list.run = run;
    list.epoch = Epoch(epoch);
    list.stages.resize(1);
    for (std::uint64_t n : serving) list.stages[0].members.push_back({session_of(n), peer_of(n), {}, true, Version(0)});
    return list;
  }
  Members sign(const MemberList& list) {
    Members members;
    members.body = pack_member_list(list).value();
    const Signature signature = key.sign(members.body);
    members.signature.assign(signature.begin(), signature.end());
    return members;
  }
  SignBytes signer() const {
    return [this](ByteView bytes) {
      const Signature signature = key.sign(bytes);
      return std::vector<std::uint8_t>(signature.begin(), signature.end());
    };
  }
  MembersChange change(const MemberList& from, const MemberList& to) {
    ListChange change = change_between(from, to);
    change.base_id = list_id(pack_member_list(from).value());
    change.id = list_id(pack_member_list(to).value());
    return sign_change(change, run, signer()).value();
  }
  // The last one.
  MembersQuery asked() const {
    for (auto at = sent.rbegin(); at != sent.rend(); ++at)
      if (const auto* query = std::get_if<MembersQuery>(&*at)) return *query;
    return {};
  }
  template <class T>
  std::size_t count_sent() const {
    std::size_t count = 0;
    for (const Message& message : sent) count += std::holds_alternative<T>(message) ? 1 : 0;
    return count;
  }
  void join() {
    membership->start();
    JoinAnswer answer;
    answer.accepted = true;
    ASSERT_TRUE(membership->on_message(answer).ok());
  }

  SimLoop loop;
  KeyPair key;
  RunId run;
  std::vector<Message> sent;
  std::string said;
  std::unique_ptr<Membership> membership;
};

TEST_F(MembershipTest, AsksUntilItIsAnsweredThenBeats) {
  membership->start();
  loop.run_for(7s);
  EXPECT_EQ(count_sent<JoinRequest>(), 4u);
  EXPECT_EQ(count_sent<Beat>(), 0u);
  JoinAnswer answer;
  answer.accepted = true;
  answer.stage = StageId(3);
  ASSERT_TRUE(membership->on_message(answer).ok());
  ASSERT_TRUE(membership->on_message(answer).ok());
  EXPECT_EQ(said, "joined ");
  EXPECT_EQ(membership->stage(), StageId(3));
  loop.run_for(5500ms);
  EXPECT_EQ(count_sent<Beat>(), 5u);
  EXPECT_EQ(count_sent<JoinRequest>(), 4u);
  membership->beat_now();
  EXPECT_EQ(count_sent<Beat>(), 6u);
}

TEST_F(MembershipTest, ARefusalIsFinal) {
  membership->start();
  ASSERT_TRUE(membership->on_message(JoinAnswer{}).ok());
  loop.run_for(20s);
  EXPECT_EQ(said, "refused ");
  EXPECT_EQ(count_sent<JoinRequest>(), 1u);
}

TEST_F(MembershipTest, AsksAgainWhenItIsToldToComeLater) {
  membership->start();
  JoinAnswer answer;
  answer.later = true;
  ASSERT_TRUE(membership->on_message(answer).ok());
  EXPECT_EQ(said, "later() ");
  loop.run_for(5100ms);
  EXPECT_EQ(count_sent<JoinRequest>(), 2u);
}

TEST_F(MembershipTest, AsksAgainWhenNobodyCouldDialIt) {
  membership->start();
  JoinAnswer answer;
  answer.unreachable = true;
  answer.reason = "nobody listens there";
  ASSERT_TRUE(membership->on_message(answer).ok());
  EXPECT_EQ(said, "unreachable(nobody listens there) ");
  loop.run_for(4900ms);
  EXPECT_EQ(count_sent<JoinRequest>(), 1u);
  loop.run_for(200ms);
  EXPECT_EQ(count_sent<JoinRequest>(), 2u);
  answer = {};
  answer.accepted = true;
  ASSERT_TRUE(membership->on_message(answer).ok());
  EXPECT_EQ(said, "unreachable(nobody listens there) joined ");
}

TEST_F(MembershipTest, BelievesOnlyNewerListsThatTheRunSigned) {
  join();
  said.clear();
  ASSERT_TRUE(membership->on_message(sign(list_of(5, {1, 2}))).ok());
  ASSERT_TRUE(membership->on_message(sign(list_of(4, {1}))).ok());
  ASSERT_TRUE(membership->on_message(sign(list_of(5, {1}))).ok());
  EXPECT_EQ(said, "list5 ");
  Members forged = sign(list_of(6, {1}));
  forged.signature[3] ^= 1;
  EXPECT_EQ(membership->on_message(forged).code(), ErrorCode::kCorrupt);
  forged = sign(list_of(6, {1}));
  forged.body[forged.body.size() / 2] ^= 1;
  EXPECT_EQ(membership->on_message(forged).code(), ErrorCode::kCorrupt);
  forged.signature.clear();
  EXPECT_EQ(membership->on_message(forged).code(), ErrorCode::kCorrupt);
  MemberList foreign = list_of(7, {1});
  foreign.run.bytes[0] ^= 1;
  EXPECT_EQ(membership->on_message(sign(foreign)).code(), ErrorCode::kForeign);
  EXPECT_EQ(membership->list()->epoch, Epoch(5));
}

// What is known already costs no check of a signature, whoever sends it again.
TEST_F(MembershipTest, WhatIsNotNewIsDroppedBeforeItsSignatureIsChecked) {
  join();
  const MemberList first = list_of(5, {1, 2}), second = list_of(6, {1});
  ASSERT_TRUE(membership->on_message(sign(second)).ok());
  said.clear();
  Members old = sign(first);
  old.signature[0] ^= 1;
  EXPECT_TRUE(membership->on_message(old).ok());
  MembersChange known = change(first, second);
  known.signature[0] ^= 1;
  EXPECT_TRUE(membership->on_message(known).ok());
  EXPECT_EQ(open_member_list(old, run, Epoch(6)).code(), ErrorCode::kStale);
  EXPECT_EQ(open_member_list(old, run).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(open_list_change(known, run, Epoch(6)).code(), ErrorCode::kStale);
  EXPECT_EQ(said, "");
  EXPECT_EQ(membership->list()->epoch, Epoch(6));
}

// ---- what changed ----

TEST_F(MembershipTest, FollowsWhatChangedAndForgetsNothing) {
  join();
  const MemberList first = list_of(5, {1, 2}), second = list_of(6, {1, 2, 3}), third = list_of(9, {1, 3});
  ASSERT_TRUE(membership->on_message(sign(first)).ok());
  said.clear();
  ASSERT_TRUE(membership->on_message(change(first, second)).ok());
  ASSERT_TRUE(membership->on_message(change(second, third)).ok());
  EXPECT_EQ(said, "list6 list9 ");
  EXPECT_EQ(pack_member_list(*membership->list()).value(), pack_member_list(third).value());
  ASSERT_TRUE(membership->on_message(change(first, second)).ok()) << "repeated";
  ASSERT_TRUE(membership->on_message(change(second, third)).ok());
  EXPECT_EQ(said, "list6 list9 ");
  EXPECT_EQ(count_sent<MembersQuery>(), 0u);
}

TEST_F(MembershipTest, AsksWhenWhatChangedIsNotOfItsList) {
  join();
  const MemberList first = list_of(5, {1, 2}), second = list_of(6, {1, 2, 3}), third = list_of(7, {1, 3});
  ASSERT_TRUE(membership->on_message(change(first, second)).ok());
  ASSERT_EQ(count_sent<MembersQuery>(), 1u) << "it has none";
  EXPECT_EQ(asked().epoch, Epoch(0));
  ASSERT_TRUE(membership->on_message(sign(first)).ok());
  loop.run_for(1100ms);
  ASSERT_TRUE(membership->on_message(change(second, third)).ok());
  ASSERT_EQ(count_sent<MembersQuery>(), 2u) << "one is missing";
  EXPECT_EQ(asked().epoch, Epoch(5));
  EXPECT_EQ(asked().id, list_id(pack_member_list(first).value()));
  EXPECT_EQ(membership->list()->epoch, Epoch(5));
  // They come in the wrong order: the first fits now, and the second is asked for again.
  ASSERT_TRUE(membership->on_message(change(first, second)).ok());
  EXPECT_EQ(membership->list()->epoch, Epoch(6));
  ASSERT_TRUE(membership->on_message(change(second, third)).ok());
  EXPECT_EQ(membership->list()->epoch, Epoch(7));
}

TEST_F(MembershipTest, AListOfTheSameEpochAndOtherContentIsNoBase) {
  join();
  const MemberList ours = list_of(5, {1, 2}), theirs = list_of(5, {1, 3}), next = list_of(6, {1, 3, 4});
  ASSERT_TRUE(membership->on_message(sign(ours)).ok());
  ASSERT_TRUE(membership->on_message(change(theirs, next)).ok());
  EXPECT_EQ(count_sent<MembersQuery>(), 1u);
  EXPECT_EQ(membership->list()->epoch, Epoch(5));
}

TEST_F(MembershipTest, ForgedChangesAskForNothing) {
  join();
  const MemberList first = list_of(5, {1, 2}), second = list_of(6, {1});
  ASSERT_TRUE(membership->on_message(sign(first)).ok());
  MembersChange forged = change(first, second);
  forged.body[forged.body.size() / 2] ^= 1;
  EXPECT_EQ(membership->on_message(forged).code(), ErrorCode::kCorrupt);
  forged = change(list_of(4, {2}), second);
  forged.signature[0] ^= 1;
  EXPECT_EQ(membership->on_message(forged).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(count_sent<MembersQuery>(), 0u);
  EXPECT_EQ(membership->list()->epoch, Epoch(5));
}

TEST_F(MembershipTest, AChangeThatContradictsTheListIsFollowedByTheWholeList) {
  join();
  const MemberList first = list_of(5, {1, 2});
  ASSERT_TRUE(membership->on_message(sign(first)).ok());
  ListChange wrong = change_between(list_of(5, {1, 2, 3}), list_of(6, {1, 2}));
  wrong.base_id = list_id(pack_member_list(first).value());
  EXPECT_EQ(membership->on_message(sign_change(wrong, run, signer()).value()).code(), ErrorCode::kMalformed);
  ASSERT_EQ(count_sent<MembersQuery>(), 1u);
  EXPECT_EQ(asked().epoch, Epoch(0));
  EXPECT_EQ(pack_member_list(*membership->list()).value(), pack_member_list(first).value());
}

TEST_F(MembershipTest, ABeatAckThatNamesANewerListMakesItAskOnceASecond) {
  join();
  ASSERT_TRUE(membership->on_message(sign(list_of(5, {1, 2}))).ok());
  BeatAck ack;
  ack.list_epoch = Epoch(5);
  ASSERT_TRUE(membership->on_message(ack).ok());
  EXPECT_EQ(count_sent<MembersQuery>(), 0u);
  ack.list_epoch = Epoch(6);
  for (int tenth = 0; tenth < 25; ++tenth) {
    ASSERT_TRUE(membership->on_message(ack).ok());
    loop.run_for(100ms);
  }
  EXPECT_EQ(count_sent<MembersQuery>(), 3u);
  EXPECT_EQ(asked().epoch, Epoch(5));
}

// Its own list stays: the run's key signed it, and who cannot prove that it is over is not believed.
TEST_F(MembershipTest, ABeatAckThatNamesAnOlderListMakesItSayWhichItHas) {
  join();
  ASSERT_TRUE(membership->on_message(sign(list_of(5, {1, 2}))).ok());
  BeatAck ack;
  ack.list_epoch = Epoch(0);
  ASSERT_TRUE(membership->on_message(ack).ok());
  EXPECT_EQ(count_sent<MembersQuery>(), 0u) << "none was told yet";
  ack.list_epoch = Epoch(4);
  ASSERT_TRUE(membership->on_message(ack).ok());
  ASSERT_EQ(count_sent<MembersQuery>(), 1u);
  EXPECT_EQ(asked().epoch, Epoch(5));
  ASSERT_TRUE(membership->on_message(sign(list_of(4, {1}))).ok());
  EXPECT_EQ(membership->list()->epoch, Epoch(5));
}

TEST_F(MembershipTest, AChangeThatDropsItEndsItsSession) {
  join();
  const MemberList first = list_of(5, {1, 2});
  ASSERT_TRUE(membership->on_message(sign(first)).ok());
  said.clear();
  ASSERT_TRUE(membership->on_message(change(first, list_of(6, {2}))).ok());
  EXPECT_EQ(said, "list6 fenced ");
}

TEST_F(MembershipTest, IsFencedByNameOrByAListThatDroppedIt) {
  join();
  ASSERT_TRUE(membership->on_message(sign(list_of(5, {2}))).ok());
  EXPECT_EQ(membership->phase(), Membership::Phase::kMember)
      << "it was no member yet: that list is older than its joining";
  ASSERT_TRUE(membership->on_message(sign(list_of(6, {1, 2}))).ok());
  ASSERT_TRUE(membership->on_message(Fenced{session_of(2), "another session"}).ok());
  EXPECT_EQ(membership->phase(), Membership::Phase::kMember);
  said.clear();
  ASSERT_TRUE(membership->on_message(sign(list_of(7, {2}))).ok());
  EXPECT_EQ(said, "list7 fenced ");
  const std::size_t before = sent.size();
  loop.run_for(10s);
  EXPECT_EQ(sent.size(), before) << "a session that is over says nothing";
}

TEST_F(MembershipTest, RepeatsItsWishToLeaveUntilGoodbye) {
  join();
  membership->leave(true);
  loop.run_for(3500ms);
  EXPECT_EQ(count_sent<Leave>(), 4u);
  EXPECT_TRUE(std::get<Beat>(sent[sent.size() - 2]).leaving);
  said.clear();
  ASSERT_TRUE(membership->on_message(Goodbye{}).ok());
  EXPECT_EQ(said, "goodbye ");
  loop.run_for(5s);
  EXPECT_EQ(count_sent<Leave>(), 4u);
}

TEST_F(MembershipTest, ASecondWishToLeaveAsksNothing) {
  join();
  membership->leave(true);
  membership->leave_at_once();
  EXPECT_TRUE(std::holds_alternative<Goodbye>(sent.back()));
  EXPECT_EQ(membership->phase(), Membership::Phase::kOver);
}

TEST_F(MembershipTest, ASessionThatItsOwnProcessEndedSaysNothingMore) {
  join();
  membership->stop();
  EXPECT_EQ(membership->phase(), Membership::Phase::kOver);
  const std::size_t before = sent.size();
  membership->on_authority_up();
  membership->beat_now();
  loop.run_for(10s);
  EXPECT_EQ(sent.size(), before);
}

TEST_F(MembershipTest, KnowsTheLastHolderOfAStage) {
  join();
  ASSERT_TRUE(membership->on_message(sign(list_of(5, {1, 2}))).ok());
  EXPECT_FALSE(membership->last_holder());
  ASSERT_TRUE(membership->on_message(sign(list_of(6, {1}))).ok());
  EXPECT_TRUE(membership->last_holder());
}

// A member that leaves is shown as not serving and holds the state until it is gone.
TEST_F(MembershipTest, AnotherThatLeavesHoldsTheStateToo) {
  join();
  MemberList list = list_of(5, {1, 2});
  list.stages[0].secured = true;
  for (Member& member : list.stages[0].members) {
    member.serving = false;
    member.version = Version(3);
  }
  ASSERT_TRUE(membership->on_message(sign(list)).ok());
  EXPECT_FALSE(membership->last_holder());
  list.epoch = Epoch(6);
  list.stages[0].members[1].version = Version(0);
  ASSERT_TRUE(membership->on_message(sign(list)).ok());
  EXPECT_TRUE(membership->last_holder()) << "it is still fetching";
}

TEST_F(MembershipTest, StaysAMemberWhileTheAuthorityIsAway) {
  join();
  ASSERT_TRUE(membership->on_message(BeatAck{}).ok());
  loop.run_for(12s);
  EXPECT_EQ(membership->phase(), Membership::Phase::kMember);
}

}  // namespace
}  // namespace shoal
