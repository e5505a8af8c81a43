#include "runtime/peer/kept_state.h"

#include <gtest/gtest.h>

#include "stages/integer_executor.h"
#include "state/state_image.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal {
namespace {

using test::fill;
using test::payload_of;
using test::tiny_spec;

// A session that reached version 5 and has prepared version 6.
struct EndedSession {
  std::shared_ptr<StageExecutor> executor = std::make_shared<IntegerExecutor>(tiny_spec());
  std::shared_ptr<OuterRule> rule = make_diloco_rule({.outer_lr = 1, .outer_momentum = 0, .sum = true});
  Digest anchor, candidate;

  EndedSession() {
    fill(*executor, ArenaRole::kAnchor, 1, 2);
    executor->arena().tag(ArenaRole::kAnchor) = 11;
    RoundContext context;
    context.base = Version(5);
    context.weight = 4;
    const std::vector<float> delta(executor->arena().size(), 3.0f);
    anchor = state_digest(*executor, *rule);
    candidate = rule->prepare(*executor, context, payload_of(delta, 4, 7)).value();
  }
  KeptState::Source source(bool prepared) const {
    KeptState::Source source{.executor = executor, .version = Version(5), .rule = rule};
    if (prepared) source.candidate = {.version = Version(6), .rule = rule};
    return source;
  }
};

StageMembers stage_at(std::uint64_t version, const Digest& digest) {
  StageMembers stage;
  stage.stage = StageId(0);
  stage.version = Version(version);
  stage.digest = digest;
  return stage;
}

TEST(KeptStateTest, KeepsTheAnchorAndTheCandidateUnderTheDigestsThatMembersAgreeOn) {
  const EndedSession session;
  KeptState kept;
  kept.replace(KeptState::take(session.source(true)));
  const KeptState::Image* anchor = kept.newest_of(stage_at(5, session.anchor));
  const KeptState::Image* candidate = kept.newest_of(stage_at(6, session.candidate));
  ASSERT_NE(anchor, nullptr);
  ASSERT_NE(candidate, nullptr);
  EXPECT_EQ(digest_of_image(anchor->bytes), session.anchor);
  EXPECT_EQ(digest_of_image(candidate->bytes), session.candidate);
  EXPECT_EQ(kept.newest(), (std::pair{StageId(0), Version(6)}));
}

TEST(KeptStateTest, AStageThatWentBackHasTheContentOfAnEarlierVersion) {
  const EndedSession session;
  KeptState kept;
  kept.replace(KeptState::take(session.source(false)));
  const KeptState::Image* back = kept.newest_of(stage_at(8, session.anchor));
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->version, Version(5));
  EXPECT_EQ(kept.held(StageId(0)), (HeldState{Version(5), session.anchor}));
  EXPECT_FALSE(kept.held(StageId(1)));
}

TEST(KeptStateTest, AnImageLoadsAsTheStateThatItWasMadeOf) {
  const EndedSession session;
  const KeptState::Images images = KeptState::take(session.source(true));
  ASSERT_EQ(images.size(), 2u);
  IntegerExecutor next(tiny_spec());
  ASSERT_TRUE(
      load_state_image(next, images.back().bytes, StateLoad::kFresh, [&](RuleId) { return session.rule.get(); }).ok());
  EXPECT_EQ(state_digest(next, *session.rule), session.candidate);
  EXPECT_EQ(next.arena().tag(ArenaRole::kCurrent), 18u);
}

TEST(KeptStateTest, WhatTheAuthorityDecidedOtherwiseIsNotTaken) {
  const EndedSession session;
  KeptState kept;
  kept.replace(KeptState::take(session.source(true)));
  Digest other_state = session.anchor;
  other_state.bytes[0] ^= 1;
  EXPECT_EQ(kept.newest_of(stage_at(6, other_state)), nullptr) << "another digest of that version";
  EXPECT_EQ(kept.newest_of(stage_at(7, other_state)), nullptr) << "the stage went on";
  EXPECT_EQ(kept.newest_of(stage_at(4, session.anchor)), nullptr) << "a state of before it was made";
  StageMembers other = stage_at(5, session.anchor);
  other.stage = StageId(1);
  EXPECT_EQ(kept.newest_of(other), nullptr);
}

TEST(KeptStateTest, WhatItNamesIsTheAnchorWhichIsSurelyCommitted) {
  const EndedSession session;
  KeptState kept;
  EXPECT_FALSE(kept.stage());
  EXPECT_FALSE(kept.held(StageId(0)));
  kept.replace(KeptState::take(session.source(true)));
  EXPECT_EQ(kept.stage(), StageId(0));
  EXPECT_EQ(kept.held(StageId(0)), (HeldState{Version(5), session.anchor}));
}

TEST(KeptStateTest, ASessionThatHeldNothingLeavesWhatTheOneBeforeItKept) {
  const EndedSession session;
  KeptState kept;
  kept.replace(KeptState::take(session.source(false)));
  kept.replace({});
  EXPECT_EQ(kept.newest(), (std::pair{StageId(0), Version(5)}));
  kept.clear();
  EXPECT_TRUE(kept.empty());
  EXPECT_FALSE(kept.newest().has_value());
}

TEST(KeptStateTest, VersionZeroIsOnlyWorthKeepingForItsCandidate) {
  const EndedSession session;
  KeptState::Source source = session.source(false);
  source.version = Version(0);
  EXPECT_FALSE(source.worth_keeping());
  EXPECT_TRUE(KeptState::take(source).empty());
  source.candidate = {.version = Version(6), .rule = session.rule};
  EXPECT_TRUE(source.worth_keeping());
  KeptState kept;
  kept.replace(KeptState::take(source));
  ASSERT_TRUE(kept.held(StageId(0)));
  EXPECT_EQ(kept.held(StageId(0))->version, Version(6));
}

}  // namespace
}  // namespace shoal
