#include <gmock/gmock.h>

#include "bench/convergence_means.h"
#include "runtime/config/config.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr auto kTrain = ConvergencePhase::kTrain, kFineTune = ConvergencePhase::kFineTune;

TEST(ConvergenceGridTest, ACodecIsOfBothDirectionsOrOfOne) {
  EXPECT_EQ(*codec_pair("int4-hadamard"), (CodecPair{"int4-hadamard", "int4-hadamard"}));
  EXPECT_EQ(*codec_pair("aq2/int4"), (CodecPair{"aq2", "int4"}));
  for (const char* wrong : {"", "aq3/int8", "int4/", "/int4", "auto", "int8/auto", "int8/int8/int8", "aq4", "int8/aq2"})
    EXPECT_EQ(codec_pair(wrong).code(), ErrorCode::kInput) << wrong;
  EXPECT_THAT(codec_pair("aq4").error().message, HasSubstr("--codec aq4/int8"));
}

TEST(ConvergenceGridTest, ATableIsWholeAfterEachSeed) {
  ConvergenceSetting setting;
  const std::vector<CodecPair> codecs = {kUncoded, {"int8", "int8"}};
  EXPECT_EQ(convergence_arms(setting, codecs, {1, 2}).size(), 4u);
  setting.tune_text = "/second";
  const auto arms = convergence_arms(setting, codecs, {1, 2});
  ASSERT_EQ(arms.size(), 8u);
  EXPECT_EQ(arms[1].seed, 1u);
  EXPECT_EQ(arms[1].codecs, codecs[1]);
  EXPECT_EQ(arms[2].seed, 2u);
  EXPECT_EQ(arms[3].phase, kTrain);
  EXPECT_EQ(arms[4].phase, kFineTune);
}

TEST(ConvergenceGridTest, ItsRunFilesAreThoseThatShoalReads) {
  ConvergenceSetting setting;
  setting.text = "/a \"quoted\" place/text";
  setting.tune_text = "/second";
  setting.sets = {"optimizer.beta1=0.95", "wire.forward=\"raw\"", "model.layers=8"};
  const auto toml = convergence_toml(setting, {kTrain, {"aq2", "int4"}, 3}, "");
  ASSERT_TRUE(toml.ok());
  const auto config = parse_config(*toml, "convergence");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->data.paths.front(), setting.text);
  EXPECT_EQ(config->run.seed, 3u);
  EXPECT_EQ(config->optimizer.beta1, 0.95);
  EXPECT_EQ(config->model.layers, 8u);
  EXPECT_EQ(config->pipeline.replicas, 1u);
  EXPECT_EQ(config->end.tokens, setting.tokens);
  EXPECT_EQ(config->wire.forward.named(), std::vector{CodecId::kAq2}) << "what the cell is about";
  EXPECT_EQ(config->wire.backward.named(), std::vector{CodecId::kInt4});
  EXPECT_EQ(config->data.validate_every, setting.tokens / setting.inner_batch / setting.points);

  const auto tuned = convergence_toml(setting, {kFineTune, {"int8", "int8"}, 3}, "/models/\"one\"");
  ASSERT_TRUE(tuned.ok());
  EXPECT_THAT(*tuned, AllOf(HasSubstr(R"(from = "/models/\"one\"")"), HasSubstr("path = \"/second\""),
                            HasSubstr("tokens = 500000\n"), HasSubstr("lr = 0.001\n"), Not(HasSubstr("layers")),
                            Not(HasSubstr("dim = ")), Not(HasSubstr("heads"))));
  setting.sets = {"layers=8"};
  EXPECT_EQ(convergence_toml(setting, {kTrain, kUncoded, 1}, "").code(), ErrorCode::kInput);
}

TEST(ConvergenceGridTest, AKeyNamesWhatIsTrainedAndWhatWasLearntBefore) {
  ConvergenceSetting setting;
  setting.tune_text = "/second";
  const ConvergenceArm train{kTrain, {"int8", "int8"}, 1}, tune{kFineTune, {"int8", "int8"}, 1};
  const std::string trained = *convergence_key(setting, train), tuned = *convergence_key(setting, tune);
  EXPECT_EQ(trained.size(), 16u);
  EXPECT_NE(trained, tuned);
  EXPECT_NE(trained, *convergence_key(setting, {kTrain, {"int8", "int4"}, 1}));
  EXPECT_NE(tuned, *convergence_key(setting, {kFineTune, {"int8", "int8"}, 2}));
  setting.tune_tokens *= 2;
  EXPECT_EQ(trained, *convergence_key(setting, train));
  EXPECT_NE(tuned, *convergence_key(setting, tune));
  setting = {};
  setting.tune_text = "/second";
  setting.tokens *= 2;
  EXPECT_NE(tuned, *convergence_key(setting, tune)) << "its model learnt more";
}

ConvergenceRow row_of(ConvergencePhase phase, const CodecPair& codecs, std::uint64_t seed, double validation) {
  return {.key = "0123456789abcdef",
          .text = "text",
          .arm = {phase, codecs, seed},
          .tokens = 100,
          .validation = validation,
          .train_loss = 2,
          .forward_bytes = 60,
          .backward_bytes = 40,
          .key_frames = 1,
          .delta_frames = 3,
          .curve = {{50, validation + 1, 4}, {100, validation, 3}},
          .seconds = 1.5};
}

TEST(ConvergenceGridTest, ARowIsReadAsItWasWritten) {
  const std::string text = convergence_row_text(row_of(kFineTune, {"aq4", "int8"}, 7, 2.5));
  const auto read = parse_convergence_row(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->arm.phase, kFineTune);
  EXPECT_EQ(convergence_row_text(*read), text);
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_FALSE(parse_convergence_row(text.substr(0, length)).has_value()) << length;
  EXPECT_FALSE(parse_convergence_row(R"({"schema":"shoal.convergence/2"})").has_value());
  std::string renamed = text;
  renamed.replace(renamed.find("fine-tune"), 9, "rough-run");
  EXPECT_FALSE(parse_convergence_row(renamed).has_value());
}

TEST(ConvergenceGridTest, ARowIsWhatSoloPrintedAndItsEvents) {
  const std::string printed =
      R"({"tokens":200,"val_loss":2.5,"loss_end":2.25,"wire":{"forward_bytes":400,"backward_bytes":100,"key_frames":4,)"
      R"("delta_frames":12}})";
  const std::string events =
      "{\"event\":\"start\"}\n"
      "{\"event\":\"train\",\"step\":1,\"loss\":5,\"targets\":50}\n"
      "{\"event\":\"train\",\"step\":2,\"loss\":4,\"targets\":100}\n"
      "{\"event\":\"estimate\",\"step\":2,\"loss\":3,\"targets\":64}\n"
      "{\"event\":\"train\",\"step\":3,\"loss\":2,\"targets\":200}\n"
      "{\"event\":\"validation\",\"loss\":2.5,\"targets\":64}\n"
      "{\"event\":\"end\",\"targets\":200}\n";
  const auto row = convergence_row(printed, events);
  ASSERT_TRUE(row.ok()) << row.error().message;
  EXPECT_EQ(row->validation, 2.5);
  EXPECT_EQ(row->train_loss, 2.25);
  EXPECT_EQ(row->forward_bytes, 2);
  EXPECT_EQ(row->backward_bytes, 0.5);
  EXPECT_EQ(row->delta_frames, 12u);
  ASSERT_EQ(row->curve.size(), 2u);
  EXPECT_EQ(row->curve[0].tokens, 100);
  EXPECT_EQ(row->curve[0].validation, 3);
  EXPECT_EQ(row->curve[0].train, 4.5);
  EXPECT_EQ(row->curve[1].tokens, 200);
  EXPECT_EQ(row->curve[1].validation, 2.5);
  for (const char* wrong : {"", "{}", R"({"tokens":200,"val_loss":2.5,"loss_end":2.25})"})
    EXPECT_EQ(convergence_row(wrong, events).code(), ErrorCode::kMalformed) << wrong;
}

TEST(ConvergenceGridTest, NoiseIsTheSpreadOfTheUncodedSeeds) {
  const CodecPair int8{"int8", "int8"}, int2{"int2", "int2"};
  const std::vector<ConvergenceRow> rows = {row_of(kTrain, kUncoded, 1, 2.0), row_of(kTrain, int8, 1, 2.1),
                                            row_of(kTrain, int2, 1, 2.3),     row_of(kTrain, kUncoded, 2, 2.2),
                                            row_of(kTrain, int8, 2, 2.2),     row_of(kTrain, int2, 2, 2.7),
                                            row_of(kTrain, kUncoded, 3, 2.4), row_of(kTrain, int8, 3, 2.35),
                                            row_of(kTrain, int2, 3, 2.9),     row_of(kFineTune, int8, 1, 1.5)};
  const auto means = convergence_means(rows);
  ASSERT_EQ(means.size(), 4u);
  ASSERT_TRUE(means[1].beside && means[2].beside);
  EXPECT_NEAR(means[0].validation, 2.2, 1e-12);
  EXPECT_EQ(means[0].lowest, 2.0);
  EXPECT_EQ(means[0].highest, 2.4);
  EXPECT_EQ(means[0].seeds, 3u);
  EXPECT_EQ(means[0].delta_share, 0.75);
  EXPECT_NEAR(means[0].curve[0].validation, 3.2, 1e-12);
  EXPECT_NEAR(means[1].beside->apart, 0.05 / 3, 1e-12);
  EXPECT_NEAR(means[1].beside->apart_least, -0.05, 1e-12);
  EXPECT_NEAR(means[1].beside->apart_most, 0.1, 1e-12);
  EXPECT_NEAR(means[1].beside->sigmas.value(), 0.05 / 3 / 0.2, 1e-9);  // raw's deviation is 0.2
  EXPECT_TRUE(means[1].beside->within_noise.value());
  EXPECT_NEAR(means[2].beside->ratio, 7.9 / 6.6, 1e-12);
  EXPECT_NEAR(means[2].beside->sigmas.value(), 1.3 / 3 / 0.2, 1e-9);
  EXPECT_FALSE(means[2].beside->within_noise.value());
  EXPECT_FALSE(means[3].beside.has_value()) << "nothing was fine-tuned uncoded";
  const std::string table = convergence_table(means);
  EXPECT_THAT(table, AllOf(HasSubstr("train: text, 100 tokens, 3 seeds"), HasSubstr("+0.4333    +2.2     no"),
                           HasSubstr("fine-tune: text, 100 tokens, 1 seed\n"), HasSubstr("75 %")));
  EXPECT_THAT(convergence_json(means), HasSubstr(R"("within_noise":false,"curve":[[50.0,)"));
}

TEST(ConvergenceGridTest, OneSeedHasNoNoiseAndOtherSeedsAreNotCompared) {
  const CodecPair int8{"int8", "int8"};
  const auto one = convergence_means({row_of(kTrain, kUncoded, 1, 2.0), row_of(kTrain, int8, 1, 2.1)});
  ASSERT_TRUE(one[1].beside.has_value());
  EXPECT_NEAR(one[1].beside->apart, 0.1, 1e-12);
  EXPECT_FALSE(one[1].beside->sigmas || one[1].beside->within_noise);
  const auto other = convergence_means({row_of(kTrain, kUncoded, 1, 2.0), row_of(kTrain, int8, 2, 2.1)});
  EXPECT_FALSE(other[1].beside.has_value());
}

}  // namespace
}  // namespace shoal
