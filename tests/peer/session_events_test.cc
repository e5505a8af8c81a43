#include "runtime/peer/session_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace shoal {
namespace {

using enum EventKind;
using testing::ElementsAre;

class Kept final : public EventLog {
 public:
  void write(const EventRecord& record) override { kinds.push_back(record.event); }
  void set_session(const Session&) override {}
  void set_stage(StageId) override {}
  std::vector<EventKind> kinds;
};

std::vector<EventKind> written(const std::vector<EventKind>& said) {
  Kept kept;
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
