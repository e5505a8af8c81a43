#include "runtime/peer/authority_link.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart = TimePoint{} + 100s;

AuthorityLink patient_link() {
  AuthorityLink link({.first = 60s, .absence = 3600s});
  link.start(kStart);
  return link;
}

TEST(AuthorityLinkTest, DialsEveryHalfSecondAndAsksTheDirectoryOnceTheTicketHadItsChance) {
  AuthorityLink link = patient_link();
  EXPECT_TRUE(link.take_dial(kStart));
  EXPECT_FALSE(link.take_dial(kStart + 499ms));
  EXPECT_TRUE(link.take_dial(kStart + 500ms));
  EXPECT_FALSE(link.take_look_up(kStart + 4999ms));
  EXPECT_TRUE(link.take_look_up(kStart + 5s));
  EXPECT_FALSE(link.take_look_up(kStart + 60s)) << "one is under way";
  link.looked_up();
  EXPECT_TRUE(link.take_look_up(kStart + 60s));
  link.looked_up();
  EXPECT_FALSE(link.take_look_up(kStart + 60s)) << "answered at once, and still one in five seconds";
}

TEST(AuthorityLinkTest, GivesUpWhenNoLinkEverCame) {
  AuthorityLink link = patient_link();
  link.down(kStart + 1s);
  EXPECT_FALSE(link.away()) << "what never was there cannot go";
  EXPECT_TRUE(link.check(kStart + 60s, "").ok());
  const Status over = link.check(kStart + 60s + 1ms, "connection refused");
  EXPECT_EQ(over.code(), ErrorCode::kUnreachable);
  EXPECT_NE(over.error().message.find("for 60 s: connection refused"), std::string::npos) << over.error().message;
  EXPECT_NE(over.error().message.find("--patience"), std::string::npos);
}

TEST(AuthorityLinkTest, AnAbsenceCountsFromItsFirstMomentAndIsToldOnceEach) {
  AuthorityLink link = patient_link();
  EXPECT_FALSE(link.up()) << "it was not away before";
  const TimePoint gone = kStart + 10s;
  link.down(gone);
  link.down(gone + 1s);  // a dial that failed
  EXPECT_FALSE(link.absence_line(gone + 1999ms, "why").has_value());
  EXPECT_TRUE(link.absence_line(gone + 2s, "why").has_value());
  EXPECT_FALSE(link.absence_line(gone + 3s, "why").has_value());
  EXPECT_TRUE(link.check(gone + 3600s, "why").ok());
  EXPECT_EQ(link.check(gone + 3600s + 1ms, "why").code(), ErrorCode::kUnreachable);
  EXPECT_TRUE(link.up());
  EXPECT_TRUE(link.check(gone + 9000s, "").ok());
  link.down(gone + 9000s);
  EXPECT_TRUE(link.absence_line(gone + 9002s, "why").has_value()) << "another absence";
}

TEST(AuthorityLinkTest, NobodyIsBackOfWhomNothingSaidThatHeWasAway) {
  AuthorityLink link = patient_link();
  link.up();
  link.down(kStart + 10s);
  EXPECT_FALSE(link.absence_line(kStart + 11s, "why").has_value());
  EXPECT_FALSE(link.up());
  EXPECT_FALSE(link.away());
}

TEST(AuthorityLinkTest, ATimeInWhichNothingWasTriedUsesUpNoPatience) {
  for (const bool was_up : {false, true}) {
    AuthorityLink link = patient_link();
    link.start(kStart);
    if (was_up) link.up();
    if (was_up) link.down(kStart);
    const TimePoint resumed = kStart + std::chrono::hours(1000);
    EXPECT_FALSE(link.check(resumed, "why").ok());
    link.resume(resumed);
    EXPECT_TRUE(link.check(resumed, "why").ok());
    EXPECT_EQ(link.away(), was_up);
    EXPECT_FALSE(link.check(resumed + std::chrono::hours(1000), "why").ok()) << "its patience begins anew";
  }
}

TEST(AuthorityLinkTest, OnlyRefusalsInARowAreForGoodAndOnlyBeforeItWasThere) {
  AuthorityLink link = patient_link();
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kRefused));
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kRefused));
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kUnreachable));
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kRefused));
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kRefused));
  EXPECT_TRUE(link.refused_for_good(ErrorCode::kRefused));
  AuthorityLink known = patient_link();
  known.up();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(known.refused_for_good(ErrorCode::kRefused)) << "its state is kept";
}

// Waiting would not help: the process that knows the run's key says that ours is not in its list.
TEST(AuthorityLinkTest, AKeyThatIsNotAdmittedEndsAlsoWhoWasAMember) {
  AuthorityLink link = patient_link();
  link.up();
  link.down(kStart);
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kNotAdmitted));
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kNotAdmitted));
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kRefused)) << "another program at its port: the row is broken";
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kNotAdmitted));
  EXPECT_FALSE(link.refused_for_good(ErrorCode::kNotAdmitted));
  EXPECT_TRUE(link.refused_for_good(ErrorCode::kNotAdmitted));
}

TEST(AuthorityLinkTest, AnotherVersionOrRunIsForGoodAtOnce) {
  EXPECT_TRUE(patient_link().refused_for_good(ErrorCode::kVersion));
  EXPECT_TRUE(patient_link().refused_for_good(ErrorCode::kForeign));
  EXPECT_FALSE(patient_link().refused_for_good(ErrorCode::kTimeout));
}

}  // namespace
}  // namespace shoal
