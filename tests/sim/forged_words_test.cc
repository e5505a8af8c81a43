// A member that lies: it says what the trainer alone decides, to everybody, while the run goes on.
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "common/trainer_id.h"
#include "events/audit/audit.h"
#include "sim/checkers.h"
#include "tests/sim/heard_lines.h"
#include "tests/sim/stranger.h"
#include "tests/sim/swarm_words.h"

namespace shoal {
namespace {

constexpr std::uint64_t kHuge = std::uint64_t{1} << 62, kForeign = 5'000'000;

// It joined as any peer may, and serves nothing.
class ForgedWordsTest : public testing::Test {
 protected:
  ForgedWordsTest() {
    swarm.run_for(100ms);
    liar.emplace(swarm, swarm.launch()->authority().members().run);
    JoinRequest join;
    join.wish = StageId(0);
    join.whereabouts.addresses = {"stranger:1"};
    liar->say(swarm.run_key().id(), kSimLaunchAddress, join);
    swarm.run_for(2s);
  }
  SwarmOptions options() {
    SwarmOptions options;
    options.evidence = &evidence;
    options.config = small_config(RuleId::kDiloco, options.stages, 400);
    return options;
  }
  bool is_member() const {
    for (const StageMembers& stage : swarm.launch()->authority().members().stages)
      for (const Member& member : stage.members)
        if (member.peer == liar->id()) return true;
    return false;
  }
  void tell_all(const Message& message) {
    for (const auto& peer : swarm.peers()) liar->say(peer->key.id(), peer->address, message);
  }
  void ends_as_if_nobody_had_lied() {
    ASSERT_TRUE(swarm.run_to_end(300s));
    EXPECT_EQ(swarm.summary().committed, 400u);
    EXPECT_EQ(swarm.summary().lost, 0u);
    for (const auto& peer : swarm.peers()) EXPECT_FALSE(peer->error) << peer->error->message;
    for (const SimEvent& e : swarm.events()) EXPECT_NE(e.event, EventKind::kFenced) << e.cause;
    EXPECT_EQ(first_broken(check_end(swarm)), "");
  }

  std::map<std::string, std::string> evidence;
  Swarm swarm{options()};
  std::optional<Stranger> liar;
};

TEST_F(ForgedWordsTest, AMembersLowWaterMarkAndItsWordOfTheRunAreNotBelieved) {
  ASSERT_TRUE(is_member());
  std::optional<std::uint64_t> issued;
  for (int turn = 0; turn < 100 && !issued; ++turn) {
    swarm.run_for(100ms);
    for (const SimEvent& e : swarm.events())
      if (e.event == EventKind::kIssue) issued = e.microbatch->trainer;
  }
  ASSERT_TRUE(issued);
  const std::uint64_t trainer = *issued;
  tell_all(Renew{{}, {{trainer, kHuge}}});
  Commit commit;
  commit.lows = {{trainer, kHuge}};
  commit.run_targets = kHuge;
  tell_all(commit);
  swarm.run_for(1s);
  for (const auto& peer : swarm.peers()) EXPECT_LT(peer->peer->stage_peer()->windows().run_targets(), kHuge);
  ends_as_if_nobody_had_lied();
}

// As many as a message holds, so nothing may be kept of them.
TEST_F(ForgedWordsTest, AMembersTrainersLeaveNothingBehind) {
  ASSERT_TRUE(is_member());
  constexpr std::uint64_t kTrainers = 8000, kFirst = 1'000'000;
  Renew renew;
  Commit commit;
  for (std::uint64_t i = 0; i < kTrainers; ++i) renew.lows.push_back({kFirst + i, kHuge});
  for (std::uint64_t i = 0; i < kTrainers; ++i)
    commit.items.push_back({{kFirst + i, i}, {EntryName{Session{i + 1, 1}, i}}});
  tell_all(renew);
  tell_all(commit);
  swarm.run_for(1s);
  for (const auto& peer : swarm.peers()) {
    const Ledger& ledger = peer->peer->stage_peer()->ledger();
    for (std::uint64_t i = 0; i < kTrainers; ++i) ASSERT_EQ(ledger.low_of(kFirst + i), 0u);
    EXPECT_LT(ledger.entries().all().size(), 100u);
  }
  ends_as_if_nobody_had_lied();
}

// Each entry is named as soon as it is counted, long before its microbatch is decided.
TEST_F(ForgedWordsTest, AMembersCommitSettlesNothingThatTheTrainerDidNot) {
  ASSERT_TRUE(is_member());
  std::size_t seen = 0, said = 0;
  for (int turn = 0; turn < 300 && !swarm.finished() && is_member(); ++turn) {
    std::map<std::uint64_t, Commit> forged;
    for (; seen < swarm.events().size(); ++seen) {
      const SimEvent& e = swarm.events()[seen];
      if (e.event != EventKind::kCounted) continue;
      forged[e.entry_name->session.peer_tag].items.push_back({*e.microbatch, {*e.entry_name}});
    }
    for (const auto& peer : swarm.peers())
      if (const auto it = forged.find(Session::of(peer->key.id(), 1).peer_tag); it != forged.end()) {
        said += it->second.items.size();
        liar->say(peer->key.id(), peer->address, it->second);
      }
    swarm.run_for(20ms);
    for (const std::string& broken : check_counting(swarm)) FAIL() << broken;
  }
  EXPECT_GT(said, 20u);
  ends_as_if_nobody_had_lied();
}

// It is a member of stage 0: what stage 0 and stage 2 compute on, others hold.
TEST_F(ForgedWordsTest, AForwardOfWhoIsNoHolderOfTheStageBeforeMakesNoEntry) {
  ASSERT_TRUE(is_member());
  constexpr std::uint64_t kAhead = 450;  // the run ends before these
  const Session self = Session::of(liar->id(), 1);
  swarm.run_for(5s);  // until every stage has somebody
  const MemberList list = swarm.launch()->authority().members();
  std::optional<StageId> own;
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members)
      if (member.peer == liar->id()) own = stage.stage;
  ASSERT_TRUE(own);
  std::set<Session> of_the_next;
  std::uint64_t serial = kAhead;
  for (const StageMembers& stage : list.stages)
    for (const Member& member : stage.members) {
      if (stage.stage.value == own->value + 1) of_the_next.insert(member.session);
      if (member.peer == liar->id()) continue;
      Forward forward;
      forward.microbatch = {trainer_id_of(swarm.run_key().id()), ++serial};
      forward.lease = {self, serial};
      forward.above = {self};
      forward.stage = stage.stage;
      liar->say(member.peer, member.whereabouts.addresses.front(), forward,
                {Bytes::from_vector(std::vector<std::uint8_t>(64))});
    }
  ASSERT_FALSE(of_the_next.empty()) << "it is of stage " << own->value;
  swarm.run_for(1s);
  std::size_t at_the_next = 0;
  for (const SimEvent& e : swarm.events()) {
    if (e.event != EventKind::kEntry || e.microbatch->serial <= kAhead) continue;
    EXPECT_TRUE(of_the_next.contains(e.entry_name->session));
    ++at_the_next;
  }
  EXPECT_GT(at_the_next, 0u) << "what it may send arrives";
}

// It is a holder of stage 0, so stage 1 takes from it what the trainer issued: nobody would ever decide anything else,
// and while it renews its claims no window that holds such an entry makes its step.
TEST_F(ForgedWordsTest, MicrobatchesThatTheRunNeverIssuedAreRefusedByNameAndHoldNothingUp) {
  ASSERT_TRUE(is_member());
  const HeardLines heard;
  swarm.run_for(3s);
  const Session self = Session::of(liar->id(), 1);
  const std::uint64_t trainer = trainer_id_of(swarm.run_key().id());
  std::uint64_t serial = 0;
  std::vector<Renewal> claims;
  for (int turn = 0; turn < 100 && !swarm.finished(); ++turn) {
    for (const StageMembers& stage : swarm.launch()->authority().members().stages)
      for (const Member& member : stage.members) {
        if (stage.stage.value != 1) continue;
        Forward forward;
        forward.microbatch = turn % 2 == 0 ? MicrobatchId{kForeign, ++serial} : MicrobatchId{trainer, kHuge + ++serial};
        forward.lease = {self, serial};
        forward.above = {self};
        forward.stage = stage.stage;
        claims.push_back({forward.lease, true});
        liar->say(member.peer, member.whereabouts.addresses.front(), forward,
                  {Bytes::from_vector(std::vector<std::uint8_t>(64))});
        liar->say(member.peer, member.whereabouts.addresses.front(), Renew{claims, {}});
      }
    swarm.run_for(20ms);
  }
  EXPECT_GT(serial, 100u);
  for (const SimEvent& e : swarm.events())
    if (e.event == EventKind::kEntry) {
      EXPECT_TRUE(e.microbatch->trainer != kForeign && e.microbatch->serial < kHuge) << *e.microbatch;
    }
  EXPECT_GE(heard.with("the run's trainer issued no such one"), 1u);
  EXPECT_LE(heard.with("the run's trainer issued no such one"), 10u);
  ends_as_if_nobody_had_lied();
}

// Their serials are soon issued, or would be when the run went on for longer: stage 1 cannot know.
TEST_F(ForgedWordsTest, MicrobatchesThatTheRunNeverCameToLeaveAGapThatNamesTheMember) {
  ASSERT_TRUE(is_member());
  swarm.run_for(3s);
  const Session self = Session::of(liar->id(), 1);
  const std::uint64_t trainer = trainer_id_of(swarm.run_key().id());
  std::uint64_t serial = 400;
  for (const StageMembers& stage : swarm.launch()->authority().members().stages)
    for (const Member& member : stage.members) {
      if (stage.stage.value != 1) continue;
      Forward forward;
      forward.microbatch = {trainer, ++serial};
      forward.lease = {self, serial};
      forward.above = {self};
      forward.stage = stage.stage;
      liar->say(member.peer, member.whereabouts.addresses.front(), forward,
                {Bytes::from_vector(std::vector<std::uint8_t>(64))});
      forward.kind = ForwardKind::kEvaluate;  // under an id that training alone has
      forward.lease.serial = serial + 1000;
      forward.microbatch.serial += 1000;
      liar->say(member.peer, member.whereabouts.addresses.front(), forward,
                {Bytes::from_vector(std::vector<std::uint8_t>(64))});
    }
  ends_as_if_nobody_had_lied();
  const AuditReport report = audit_texts(evidence);
  std::ostringstream name;
  name << self;
  EXPECT_THAT(report.violations, testing::IsEmpty());
  EXPECT_THAT(report.incomplete, testing::Contains(testing::HasSubstr("session " + name.str() + " sent microbatch")));
  EXPECT_THAT(report.incomplete, testing::Each(testing::HasSubstr(name.str())));
}

TEST_F(ForgedWordsTest, ABeatOfAVersionThatNobodyMadeEndsItsSessionByNameAndFrightensNobody) {
  ASSERT_TRUE(is_member());
  const HeardLines heard;
  Beat beat;
  beat.stage = StageId(0);
  beat.version = Version(~std::uint64_t{0});
  beat.serving = true;
  liar->say(swarm.run_key().id(), kSimLaunchAddress, beat);
  swarm.run_for(1s);
  EXPECT_FALSE(is_member());
  EXPECT_EQ(heard.with("is ended: it says that it holds version 18446744073709551615"), 1u);
  EXPECT_EQ(heard.with("authority.log"), 0u);
  ends_as_if_nobody_had_lied();
  EXPECT_THAT(audit_texts(evidence).violations, testing::IsEmpty());
}

// One line for what a member does, and not one for every time it does it.
TEST_F(ForgedWordsTest, FramesThatItMayNotSendAreSaidOnceAnInterval) {
  ASSERT_TRUE(is_member());
  const HeardLines heard;
  const auto& peer = swarm.peers().front();
  for (int i = 0; i < 60; ++i) {
    liar->say(peer->key.id(), peer->address, Gradient{}, {Bytes::from_vector(std::vector<std::uint8_t>(100'000))});
    swarm.run_for(10ms);
  }
  EXPECT_GE(heard.with("bytes of frames from"), 1u);
  EXPECT_LE(heard.with("bytes of frames from"), 2u);
}

}  // namespace
}  // namespace shoal
