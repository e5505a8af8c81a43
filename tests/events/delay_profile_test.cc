#include "events/delay_profile.h"

#include <gmock/gmock.h>

#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

DelayHistogram histogram(const std::vector<std::uint64_t>& counts) { return DelayHistogram::of(counts); }

DelayProfile example() {
  return {.rule = "diloco",
          .replicas = 2,
          .inner_batch = 2048,
          .tokens = 1000,
          .stages = {histogram({100, 800, 100}), histogram({500, 500})}};
}

// The example's text with one piece replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = delay_profile_text(example());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(DelayProfileTest, IsReadAsItWasWritten) {
  const std::string text = delay_profile_text(example());
  EXPECT_EQ(text, R"({"schema":"shoal.delay/1","rule":"diloco","replicas":2,"inner_batch":2048,"tokens":1000,)"
                  R"("stages":[{"stage":0,"counts":[100,800,100]},{"stage":1,"counts":[500,500]}]})"
                  "\n");
  const auto read = parse_delay_profile(text, "here");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, example());
}

TEST(DelayProfileTest, GoesThroughAFile) {
  const ScratchFolder folder;
  ASSERT_TRUE(save_delay_profile(folder / "delays.json", example()).ok());
  const auto read = load_delay_profile(folder / "delays.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, example());
  EXPECT_EQ(load_delay_profile(folder / "absent.json").code(), ErrorCode::kMissing);
  EXPECT_EQ(save_delay_profile(folder / "no/such/delays.json", example()).code(), ErrorCode::kOutput);
  folder.write("large.json", std::string(kDelayProfileBytesMax + 1, ' '));
  EXPECT_EQ(load_delay_profile(folder / "large.json").code(), ErrorCode::kTooLarge);
}

TEST(DelayProfileTest, AKeyThatStandsTwiceIsRefusedByName) {
  const auto refused = [](const std::string& text, const std::string& key) {
    const auto read = parse_delay_profile(text, "here");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.error().message, HasSubstr("here: \"" + key + "\" stands twice"));
  };
  refused(edited("\"replicas\":2", "\"replicas\":1,\"replicas\":2"), "replicas");
  refused(edited("\"counts\":[500,500]", "\"counts\":[1],\"counts\":[500,500]"), "counts");
}

TEST(DelayProfileTest, NamesFileAndKeyOfWhatItRefuses) {
  std::string many = "[1";
  for (std::size_t i = 0; i < DelayHistogram::kBins; ++i) many += ",1";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "no JSON object"},
      {"[]", "no JSON object"},
      {delay_profile_text(example()).substr(0, 80), "no JSON object"},
      {edited("shoal.delay/1", "shoal.delay/2"), "\"schema\""},
      {edited("\"replicas\":2,", ""), "\"replicas\" is missing"},
      {edited("\"tokens\"", "\"more\":1,\"tokens\""), "\"more\" is no key"},
      {edited("diloco", "gossip"), "\"rule\""},
      {edited("2048", "-1"), "\"inner_batch\""},
      {edited("2048", "1.5"), "\"inner_batch\""},
      {edited("1000", "9007199254740993"), "\"tokens\""},
      {edited("\"stage\":1", "\"stage\":2"), "\"stages[1].stage\" must be 1"},
      {edited("[500,500]", "[]"), "\"stages[1].counts\""},
      {edited("[500,500]", "[0,0]"), "\"stages[1].counts\" must hold a count above 0"},
      {edited("[500,500]", "[500,\"x\"]"), "\"stages[1].counts\""},
      {edited("[500,500]", "[9007199254740992,1]"), "\"stages[1].counts\" add up"},
      {edited("[500,500]", many + "]"), "\"stages[1].counts\" must be a list of 1 to 64"},
      {edited(",\"counts\":[500,500]", ""), "\"stages[1].counts\" is missing"},
      {edited("{\"stage\":1,\"counts\":[500,500]}", "7"), "\"stages[1]\""},
  };
  for (const auto& [text, key] : wrong) {
    const auto read = parse_delay_profile(text, "swarm.json");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.code(), ErrorCode::kInput) << text;
    EXPECT_THAT(read.error().message, AllOf(HasSubstr("swarm.json: "), HasSubstr(key), HasSubstr("HINT"))) << text;
  }
  DelayProfile none = example();
  none.stages.clear();
  EXPECT_FALSE(parse_delay_profile(delay_profile_text(none), "swarm.json").ok());
  none.stages.assign(kDelayStagesMax + 1, histogram({1}));
  EXPECT_FALSE(parse_delay_profile(delay_profile_text(none), "swarm.json").ok());
}

TEST(DelayProfileTest, CutAnywhereItIsRefused) {
  const std::string text = delay_profile_text(example());
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(parse_delay_profile(text.substr(0, length), "cut").ok()) << length;
}

TEST(DelayAtTest, DividesTheSharesAsTheCountsSay) {
  const DelayHistogram delays = histogram({1, 0, 3});
  EXPECT_EQ(largest_delay(delays), 2u);
  constexpr std::uint64_t kQuarter = std::uint64_t{1} << 62;
  EXPECT_EQ(delay_at(delays, 0), 0u);
  EXPECT_EQ(delay_at(delays, kQuarter - 1), 0u);
  EXPECT_EQ(delay_at(delays, kQuarter), 2u);
  EXPECT_EQ(delay_at(delays, ~std::uint64_t{0}), 2u);
  EXPECT_EQ(delay_at(histogram({5}), ~std::uint64_t{0}), 0u);
  EXPECT_EQ(largest_delay(DelayHistogram{}), 0u);
}

TEST(DelayAtTest, WhoIsLaterAtOneStageIsNotEarlierAtAnother) {
  const DelayHistogram first = histogram({10, 30, 40, 20}), second = histogram({50, 0, 49, 0, 1});
  std::uint64_t before_first = 0, before_second = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t share = i * (~std::uint64_t{0} / 1000);
    EXPECT_GE(delay_at(first, share), before_first);
    EXPECT_GE(delay_at(second, share), before_second);
    before_first = delay_at(first, share);
    before_second = delay_at(second, share);
  }
  EXPECT_EQ(before_first, 3u);
  EXPECT_EQ(before_second, 4u);
}

}  // namespace
}  // namespace shoal
