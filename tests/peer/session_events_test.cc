#include "runtime/peer/session_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/events/kept_events.h"

namespace shoal {
namespace {

using enum EventKind;
using testing::ElementsAre;

std::vector<EventKind> written(const std::vector<EventKind>& said) {
  test::KeptEvents kept;
  SessionEvents events(kept);
  for (const EventKind kind : said) {
    if (kind == kStart) events.set_session(Session{1, kept.kinds.size()});
    events.write({.event = kind});
  }
  return kept.kinds;
}

TEST(SessionEventsTest, BehindFencedOnlyTheProcessSpeaksUntilTheNextSession) {
  EXPECT_THAT(written({kStart, kEntry, kFenced, kDrop, kForwardSent, kBytes, kFenced, kStart, kEntry, kDrop}),
              ElementsAre(kStart, kEntry, kFenced, kBytes, kStart, kEntry, kDrop));
}

TEST(SessionEventsTest, BehindTheEndOfTheProcessNothingIsWritten) {
  EXPECT_THAT(written({kStart, kFenced, kDrop, kEnd, kBytes, kEnd}), ElementsAre(kStart, kFenced, kEnd));
  EXPECT_THAT(written({kStart, kEntry, kEnd, kDrop, kFenced}), ElementsAre(kStart, kEntry, kEnd));
}

}  // namespace
}  // namespace shoal
