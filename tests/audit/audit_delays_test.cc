// What the audit hands on of the gradients' delays.
#include "events/audit/measured_delays.h"
#include "tests/audit/audit_story.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Files = std::map<std::string, std::string>;

// Gives every line of `event` that a peer of `stage` wrote these fields instead of those of its delays; returns how
// many there were. No fields: it says nothing of delays.
int say_delays(Files& files, int stage, const std::string& event, const std::string& fields) {
  constexpr std::string_view kFirst = ",\"delay_mean\":", kLast = ",\"settle_wait_ms\":5";
  int count = 0;
  for (int replica = 0; replica < 2; ++replica) {
    std::string& text = files[Story::file_of(Story::peer(stage, replica))];
    const std::string name = "\"event\":\"" + event + "\"";
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + name.size())) {
      const std::size_t first = text.find(kFirst, at), last = text.find(kLast, at);
      if (first < text.find('\n', at)) text.erase(first, last + kLast.size() - first);
      if (!fields.empty()) text.insert(at + name.size(), "," + fields);
      ++count;
    }
  }
  return count;
}

TEST(AuditDelaysTest, AProfileIsTheSumOverTheWindowsOfEachStage) {
  Files files = Story::whole().files();
  ASSERT_EQ(say_delays(files, 0, "stepped", R"("delay_mean":0.75,"delays":[16,48],"settle_wait_ms":1)"), 4);
  ASSERT_EQ(say_delays(files, 1, "stepped", R"("delay_mean":2,"delays":[0,0,64],"settle_wait_ms":1)"), 4);
  // Of warm steps, which are no windows of diloco.
  say_delays(files, 1, "anchor", R"("delay_mean":0,"delays":[9999],"settle_wait_ms":1)");
  const AuditReport report = audit_texts(files);
  EXPECT_EQ(report.verdict(), AuditVerdict::kClean) << audit_table(report);
  const auto profile = measured_delays(report);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->rule, "diloco");
  EXPECT_EQ(profile->replicas, 2u);
  EXPECT_EQ(profile->inner_batch, 64u);
  EXPECT_EQ(profile->tokens, 4u * 64);
  ASSERT_EQ(profile->stages.size(), 2u);
  EXPECT_EQ(profile->stages[0], DelayHistogram::of(std::vector<std::uint64_t>{64, 192}));
  EXPECT_EQ(profile->stages[1], DelayHistogram::of(std::vector<std::uint64_t>{0, 0, 256}));
  const auto read = parse_delay_profile(delay_profile_text(*profile), "written");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, *profile);
}

TEST(AuditDelaysTest, WithoutWindowsTheRoundsAreTheSteps) {
  Files files = Story::whole().files();
  for (int stage = 0; stage < 2; ++stage) {
    say_delays(files, stage, "stepped", "");
    ASSERT_EQ(say_delays(files, stage, "anchor", R"("delay_mean":0.5,"delays":[32,32],"settle_wait_ms":1)"), 4);
  }
  const auto profile = measured_delays(audit_texts(files));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->rule, "allreduce");
  EXPECT_EQ(profile->inner_batch, 64u);
  EXPECT_EQ(profile->stages[1], DelayHistogram::of(std::vector<std::uint64_t>{128, 128}));
}

TEST(AuditDelaysTest, NamesTheStageWhoseDelaysNobodyWrote) {
  Files files = Story::whole().files();
  for (int stage = 0; stage < 2; ++stage) say_delays(files, stage, "stepped", "");
  const auto none = measured_delays(audit_texts(files));
  EXPECT_EQ(none.code(), ErrorCode::kMissing);
  EXPECT_THAT(none.error().message, AllOf(HasSubstr("stage 0"), HasSubstr("--events")));
  say_delays(files, 0, "stepped", R"("delay_mean":0,"delays":[64],"settle_wait_ms":1)");
  EXPECT_THAT(measured_delays(audit_texts(files)).error().message, HasSubstr("stage 1"));
  EXPECT_EQ(measured_delays(AuditReport{}).code(), ErrorCode::kMissing);
}

TEST(AuditDelaysTest, WhatIsNoListOfCountsCannotBeRead) {
  std::string many = "[1";
  for (std::size_t i = 0; i < DelayHistogram::kBins; ++i) many += ",1";
  for (const std::string& delays : {std::string("7"), std::string("[-1]"), std::string("[0.5]"), std::string("[\"1\"]"),
                                    std::string("[[1]]"), std::string("{}"), many + "]"}) {
    Files files = Story::whole().files();
    say_delays(files, 0, "stepped", "\"delay_mean\":1,\"delays\":" + delays + ",\"settle_wait_ms\":1");
    EXPECT_THAT(audit_texts(files).violations, testing::Contains(HasSubstr("cannot be read"))) << delays;
  }
  Files files = Story::whole().files();
  for (int stage = 0; stage < 2; ++stage)
    say_delays(files, stage, "stepped", R"("delay_mean":0,"delays":[18446744073709551615],"settle_wait_ms":1)");
  EXPECT_EQ(measured_delays(audit_texts(files)).code(), ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace shoal
