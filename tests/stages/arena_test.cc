#include <gtest/gtest.h>

#include "stages/host_arena.h"

namespace shoal {
namespace {

TEST(HostArenaTest, RolesAreAlignedZeroedAndApart) {
  HostArena arena(100);
  EXPECT_EQ(arena.allocated_bytes(), 0u) << "nothing before the first use";
  for (const ArenaRole role : {ArenaRole::kCurrent, ArenaRole::kAccumulatorA, ArenaRole::kRuleState}) {
    const std::span<float> values = arena.span(role);
    ASSERT_EQ(values.size(), 100u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data()) % kBufferAlignment, 0u);
    for (float& value : values) {
      EXPECT_EQ(value, 0.0f);
      value = 1.0f;
    }
  }
  EXPECT_EQ(arena.allocated_bytes(), 1200u);
}

TEST(HostArenaTest, SwappingTradesBuffersAndTagsWithoutCopies) {
  HostArena arena(4);
  float* current = arena.span(ArenaRole::kCurrent).data();
  float* other = arena.span(ArenaRole::kOther).data();
  arena.tag(ArenaRole::kCurrent) = 3;
  arena.swap_parameters();
  EXPECT_EQ(arena.span(ArenaRole::kOther).data(), current);
  EXPECT_EQ(arena.span(ArenaRole::kCurrent).data(), other);
  EXPECT_EQ(arena.tag(ArenaRole::kOther), 3u);
  EXPECT_EQ(arena.tag(ArenaRole::kCurrent), 0u);
}

TEST(HostArenaTest, AReleasedRoleIsFreedAndComesBackAsZeros) {
  HostArena arena(4);
  arena.span(ArenaRole::kSnapshot)[0] = 7;
  arena.tag(ArenaRole::kSnapshot) = 7;
  arena.release(ArenaRole::kSnapshot);
  EXPECT_EQ(arena.allocated_bytes(), 0u);
  EXPECT_EQ(arena.tag(ArenaRole::kSnapshot), 0u);
  EXPECT_EQ(arena.span(ArenaRole::kSnapshot)[0], 0.0f);
}

TEST(HostArenaTest, MovesAnArrayWithItsTagAndCopiesOne) {
  HostArena arena(2);
  arena.span(ArenaRole::kCandidate)[1] = 3;
  arena.tag(ArenaRole::kCandidate) = 5;
  const float* const made = arena.span(ArenaRole::kCandidate).data();
  arena.move(ArenaRole::kCandidate, ArenaRole::kAnchor);
  EXPECT_EQ(arena.span(ArenaRole::kAnchor).data(), made) << "nothing is copied";
  EXPECT_EQ(arena.tag(ArenaRole::kAnchor), 5u);
  EXPECT_EQ(arena.allocated_bytes(), 8u);
  EXPECT_EQ(arena.tag(ArenaRole::kCandidate), 0u);
  arena.copy(ArenaRole::kAnchor, ArenaRole::kOther);
  EXPECT_EQ(arena.span(ArenaRole::kOther)[1], 3.0f);
  EXPECT_EQ(arena.tag(ArenaRole::kOther), 5u);
  arena.span(ArenaRole::kSnapshot)[1] = 1;
  arena.tag(ArenaRole::kSnapshot) = 2;
  subtract_roles(arena, ArenaRole::kAnchor, ArenaRole::kSnapshot, ArenaRole::kSnapshot);
  EXPECT_EQ(arena.span(ArenaRole::kSnapshot)[1], 2.0f);
  EXPECT_EQ(arena.tag(ArenaRole::kSnapshot), 3u);
  add_role(arena, ArenaRole::kSnapshot, ArenaRole::kAnchor);
  EXPECT_EQ(arena.span(ArenaRole::kAnchor)[1], 5.0f);
  EXPECT_EQ(arena.tag(ArenaRole::kAnchor), 8u);
}

TEST(HostArenaTest, TheRuleChoosesTheSizeOfItsState) {
  HostArena arena(4, 9);
  EXPECT_EQ(arena.span(ArenaRole::kRuleState).size(), 9u);
  EXPECT_EQ(arena.span(ArenaRole::kCandidate).size(), 4u);
}

}  // namespace
}  // namespace shoal
