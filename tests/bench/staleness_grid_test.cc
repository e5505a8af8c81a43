#include "bench/staleness_grid.h"

#include <gmock/gmock.h>

#include "runtime/config/config.h"

namespace shoal {
namespace {

using testing::HasSubstr;

StalenessArm arm_of(const std::string& delay) {
  return {.delay = delay, .profile = *delays_of_means(delay, 4), .look_ahead = "0", .lr = 2e-3, .seed = 3};
}

TEST(StalenessGridTest, MeansBecomeTheWholeNumbersAroundThem) {
  const auto uniform = delays_of_means("0.25", 2);
  ASSERT_TRUE(uniform.ok());
  ASSERT_EQ(uniform->stages.size(), 2u);
  EXPECT_EQ(uniform->stages[0], DelayHistogram::of(std::vector<std::uint64_t>{750'000, 250'000}));
  EXPECT_EQ(uniform->stages[0], uniform->stages[1]);
  const auto each = delays_of_means("2/1.5/0", 3);
  ASSERT_TRUE(each.ok());
  EXPECT_EQ(each->stages[0], DelayHistogram::of(std::vector<std::uint64_t>{0, 0, 1'000'000}));
  EXPECT_DOUBLE_EQ(each->stages[1].mean(), 1.5);
  EXPECT_EQ(largest_delay(each->stages[2]), 0u);
  for (const char* wrong : {"", "x", "1/2", "-1", "63", "nan", "inf", "1/2/x", "1,5"})
    EXPECT_EQ(delays_of_means(wrong, 3).code(), ErrorCode::kInput) << wrong;
}

TEST(StalenessGridTest, ItsRunFileIsOneThatShoalReads) {
  StalenessSetting setting;
  setting.text = "/a \"quoted\" place/text";
  setting.sets = {"optimizer.beta1=0.95", "run.name=\"mine\"", "sync.inner_batch=4096"};
  const auto toml = staleness_toml(setting, arm_of("1"));
  ASSERT_TRUE(toml.ok());
  EXPECT_THAT(*toml, HasSubstr("look_ahead = 0\n"));  // left out, it would follow the delays
  const auto config = parse_config(*toml, "staleness");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->data.paths.front(), setting.text);
  EXPECT_EQ(config->run.name, "mine");
  EXPECT_EQ(config->run.seed, 3u);
  EXPECT_EQ(config->optimizer.lr, 2e-3);
  EXPECT_EQ(config->optimizer.beta1, 0.95);
  EXPECT_EQ(config->sync.inner_batch, 4096u);
  EXPECT_EQ(config->end.tokens, setting.tokens);
  StalenessArm ahead = arm_of("1");
  ahead.look_ahead = "1";
  EXPECT_THAT(*staleness_toml(setting, ahead), HasSubstr("look_ahead = 1\n"));
  for (const char* wrong : {"beta1=1", "optimizer.beta1", ".x=1", "optimizer.=1", "a=b.c"}) {
    setting.sets = {wrong};
    EXPECT_EQ(staleness_toml(setting, arm_of("1")).code(), ErrorCode::kInput) << wrong;
  }
}

TEST(StalenessGridTest, AKeyNamesWhatIsTrained) {
  StalenessSetting setting;
  const auto key = [&](const StalenessArm& arm) { return staleness_key(*staleness_toml(setting, arm), arm.profile); };
  const std::string one = key(arm_of("1"));
  EXPECT_EQ(one.size(), 16u);
  EXPECT_EQ(one, key(arm_of("1.0")));
  EXPECT_NE(one, key(arm_of("2")));
  StalenessArm other = arm_of("1");
  other.seed = 4;
  EXPECT_NE(one, key(other));
  setting.dim = 128;
  EXPECT_NE(one, key(arm_of("1")));
}

TEST(StalenessGridTest, ARowIsReadAsItWasWritten) {
  const StalenessRow row{.key = "0123456789abcdef",
                         .delay = "2/1",
                         .look_ahead = "1",
                         .lr = 2e-3,
                         .seed = 7,
                         .validation = 2.3456,
                         .seconds = 12.5};
  const std::string text = row_text(row);
  const auto read = parse_row(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(row_text(*read), text);
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(parse_row(text.substr(0, length)).has_value()) << length;
  EXPECT_FALSE(parse_row(R"({"schema":"shoal.staleness/2"})").has_value());
  EXPECT_NE(find_row({row}, row.key), nullptr);
  EXPECT_EQ(find_row({row}, "f123456789abcdef"), nullptr);
}

StalenessRow row_of(const std::string& delay, const std::string& look_ahead, double lr, double validation) {
  return {
      .key = {}, .delay = delay, .look_ahead = look_ahead, .lr = lr, .seed = 1, .validation = validation, .seconds = 1};
}

TEST(StalenessGridTest, TheBestRateOfEachArmCountsAndTheShareIsOfTheGap) {
  const std::vector<StalenessRow> rows = {row_of("0", "0", 1e-3, 2.2), row_of("0", "0", 1e-3, 2.4),
                                          row_of("0", "0", 2e-3, 2.0), row_of("0", "0", 2e-3, 2.2),
                                          row_of("0", "0", 4e-3, 3.0), row_of("0", "0", 4e-3, 3.0),
                                          row_of("2", "0", 1e-3, 2.9), row_of("2", "0", 2e-3, 3.5),
                                          row_of("2", "1", 1e-3, 2.5), row_of("9", "1", 1e-3, 2.5)};
  const auto arms = best_of_arms(rows);
  ASSERT_EQ(arms.size(), 4u);
  EXPECT_EQ(arms[0].lr, 2e-3);
  EXPECT_DOUBLE_EQ(arms[0].validation, 2.1);
  EXPECT_EQ(arms[0].lowest, 2.0);
  EXPECT_EQ(arms[0].highest, 2.2);
  EXPECT_EQ(arms[0].seeds, 2u);
  EXPECT_FALSE(arms[0].at_edge);
  EXPECT_FALSE(arms[0].recovered.has_value());  // nothing to recover
  EXPECT_TRUE(arms[1].at_edge);
  EXPECT_DOUBLE_EQ(arms[1].recovered.value(), 0);
  EXPECT_FALSE(arms[2].at_edge);  // one rate was tried
  EXPECT_NEAR(arms[2].recovered.value(), 0.5, 1e-9);
  EXPECT_FALSE(arms[3].recovered.has_value());  // nobody trained it without look-ahead
  const std::string table = staleness_table(arms);
  EXPECT_THAT(table, HasSubstr("50 %"));
  EXPECT_THAT(table, HasSubstr("0.001*"));
  EXPECT_THAT(staleness_json(arms), HasSubstr(R"("delay":"9","look_ahead":"1")"));
}

}  // namespace
}  // namespace shoal
