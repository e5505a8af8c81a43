#include "runtime/config/config.h"

#include <gmock/gmock.h>

#include "runtime/config/config_table.h"
#include "tests/common/irregular_files.h"
#include "tests/common/scratch_folder.h"
#include "transport/envelope.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kSmall = R"([model]
layers = 4
dim = 32
heads = 4
positions = 64
[data]
path = "text.bin"
)";

std::string with(const std::string& more) { return std::string(kSmall) + more; }

std::string message_of(const std::string& text) {
  const auto config = parse_config(text, "run.toml");
  return config.ok() ? "ok" : config.error().message;
}

TEST(ConfigTest, FillsDefaultsAndReadsEverySection) {
  const auto config = parse_config(with(R"(sequences = 2
[run]
name = "tide.pool-1"
seed = 7
[pipeline]
stages = 3
layers_per_stage = [2, 1, 1]
[sync]
rule = "allreduce"
mode = "drain"
microbatches_per_step = 5
[wire]
forward = "int8"
[executor]
kind = "paced"
forward_ms = 2.5
[end]
steps = 10
)"),
                                   "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->run.name, "tide.pool-1");
  EXPECT_EQ(config->model_spec(), (ModelSpec{4, 32, 4, 64, 256, 7}));
  EXPECT_EQ(config->pipeline.layers_per_stage, (std::vector<std::uint32_t>{2, 1, 1}));
  EXPECT_EQ(config->sync.rule, RuleId::kAllreduce);
  EXPECT_EQ(config->sync.mode, SyncMode::kDrain);
  EXPECT_EQ(config->wire.forward.at(StageId(0)), CodecId::kInt8);
  EXPECT_EQ(config->wire.backward.at(StageId(0)).given, std::nullopt) << "auto";
  EXPECT_EQ(config->executor.kind, ExecutorKind::kPaced);
  EXPECT_EQ(config->executor.forward_ms, 2.5);
  EXPECT_EQ(config->timing.lease_s, 4);
  EXPECT_EQ(config->timing.membership_s, 10);
  EXPECT_EQ(config->targets_per_microbatch(), 128u);
  EXPECT_EQ(config->end_targets(), 10u * 5 * 128);
  EXPECT_EQ(config->schedule_targets(), config->end_targets());
}

TEST(ConfigTest, NamesTheLineOfAnUnknownKeyAndWhatWasMeant) {
  EXPECT_EQ(message_of(with("sequencs = 2\n")),
            "run.toml:8: unknown key \"sequencs\" in [data]; did you mean \"sequences\"?");
  EXPECT_EQ(message_of(with("[optimiser]\nlr = 1.0\n")),
            "run.toml:8: unknown section [optimiser]; did you mean [optimizer]?");
  EXPECT_THAT(message_of(with("lr = 1.0\n")), HasSubstr("did you mean [optimizer] lr?"));
  EXPECT_THAT(message_of(with("completely_else = 1\n")), HasSubstr("known are: path weights"));
}

TEST(ConfigTest, RefusesWrongTypesAndBounds) {
  EXPECT_EQ(message_of(with("sequences = \"two\"\n")),
            "run.toml:8: [data] sequences = \"two\" is not known: it is \"auto\", or 1 to 4096");
  EXPECT_EQ(message_of(with("sequences = 2.0\n")), "run.toml:8: [data] sequences must be auto or integer");
  EXPECT_EQ(message_of(with("sequences = 0\n")),
            "run.toml:8: [data] sequences = 0 is out of bounds: allowed is 1 to 4096, or \"auto\"");
  EXPECT_THAT(message_of(with("sequences = -1\n")), HasSubstr("out of bounds"));
  EXPECT_THAT(message_of(with("[optimizer]\nlr = nan\n")), HasSubstr("must be auto or number"));
  EXPECT_THAT(message_of(with("[sync]\nrule = \"dilocco\"\n")),
              HasSubstr("one of allreduce, diloco; did you mean \"diloco\"?"));
  EXPECT_THAT(message_of(with("[pipeline]\nlayers_per_stage = [1.5]\n")), HasSubstr("list of integers"));
  EXPECT_THAT(message_of(with("[admission]\nkeys = [\"12\"]\n")), HasSubstr("64 hex digits"));
  EXPECT_THAT(message_of("model = 3\n"), HasSubstr("[model] must be a section"));
}

TEST(ConfigTest, NamesWhatIsMissingAndWhatIsNotToml) {
  EXPECT_THAT(message_of("[model]\nlayers = 4\n"), HasSubstr("run.toml: [model] dim is missing"));
  EXPECT_THAT(message_of("[model\n"), HasSubstr("run.toml:1: not TOML"));
  const auto absent = load_config("/nonexistent/run.toml");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.code(), ErrorCode::kMissing);
}

TEST(ConfigTest, RefusesOptionsThatExcludeEachOther) {
  for (const std::string rule : {"diloco", "allreduce"})
    EXPECT_EQ(message_of(with("[sync]\nrule = \"" + rule + "\"\nmode = \"drain\"\n")), "ok");
  EXPECT_THAT(message_of(with("[admission]\nmode = \"keys\"\n")), HasSubstr("would admit nobody"));
  for (const std::string mode : {"", "mode = \"open\"\n"}) {
    EXPECT_THAT(message_of(with("[admission]\n" + mode + "keys = [\"" + std::string(64, 'a') + "\"]\n")),
                AllOf(HasSubstr("[admission] keys lists 1 keys"), HasSubstr("give mode = \"keys\"")));
  }
  EXPECT_THAT(message_of(with("[timing]\nmembership_s = 1\n")), HasSubstr("at least lease_s"));
  EXPECT_THAT(message_of(with("[pipeline]\nstages = 9\n")), Not(testing::StrEq("ok")));
  EXPECT_THAT(message_of(with("[sync]\ninner_batch = 1000000000\n")), HasSubstr("allowed are 131072"));
  EXPECT_THAT(message_of(with("[schedule]\ntokens = 10\nwarmup_tokens = 11\n")),
              HasSubstr("[schedule] warmup_tokens = 11 is more than the schedule's 10 tokens"));
  EXPECT_THAT(message_of(with("[run]\nname = \"a b\"\n")), HasSubstr("only letters"));
}

TEST(ConfigTest, RefusesWhatComesToMoreThanCanBeCounted) {
  EXPECT_THAT(message_of(with("[end]\nsteps = 1000000000000\n[sync]\ninner_batch = 10000000000\n")),
              HasSubstr("[end] steps = 1000000000000 of 10000000000 tokens each are more than 1e+18"));
  EXPECT_THAT(message_of(with("[schedule]\nsteps = 1000000000000\n[sync]\ninner_batch = 10000000000\n")),
              HasSubstr("[schedule] steps"));
  EXPECT_THAT(message_of(with("[sync]\ninner_batch = 1000000000000000000\n")), HasSubstr("is out of bounds"));
  EXPECT_THAT(message_of(with("[end]\nsteps = 1000000000000000000\n")), HasSubstr("is out of bounds"));
  // The largest that the bounds allow comes to a number that is refused by name, and not to a small one.
  EXPECT_THAT(
      message_of(with("[sync]\ninner_batch = 10000000000\ninner_steps = 1000000\n[pipeline]\nreplicas = 256\n")),
      HasSubstr("allowed are 131072"));
}

TEST(ConfigTest, RefusesAStepWhosePathsDoNotFitOneMessage) {
  const std::string wide = R"([model]
layers = 256
dim = 2
heads = 1
positions = 4
[data]
path = "text.bin"
[pipeline]
stages = 256
[sync]
rule = "allreduce"
microbatches_per_step = )";
  const std::size_t room = RunConfig::paths_in_message(256);
  EXPECT_EQ(message_of(wide + std::to_string(room) + "\n"), "ok");
  EXPECT_THAT(
      message_of(wide + std::to_string(room + 1) + "\n"),
      HasSubstr("microbatches_per_step = " + std::to_string(room + 1) + " is too large for [pipeline] stages = 256"));
}

TEST(ConfigTest, AMessageHasTheRoomThatIsSaid) {
  for (const std::size_t stages : {1u, 2u, 8u, 64u, 256u}) {
    Step step{StepId(UINT64_MAX), UINT64_MAX, UINT64_MAX, {}};
    const EntryName entry{{UINT64_MAX, UINT64_MAX}, UINT32_MAX};
    const std::size_t room = std::min(RunConfig::paths_in_message(stages), limits::kListMax);
    step.winners.assign(room, {{UINT64_MAX, UINT32_MAX}, std::vector<EntryName>(stages, entry)});
    const auto packed = pack_envelope(step, std::nullopt);
    ASSERT_TRUE(packed.ok()) << stages << ": " << packed.error().message;
    EXPECT_LE(packed->size(), limits::kControlBytesMax) << stages;
  }
}

TEST(ConfigTest, AVocabularyBeyondTheWidthAsksForWiderTokens) {
  for (const auto& [vocabulary, too_narrow, width] :
       {std::tuple("257", "u8", "u16"), {"65537", "u16", "u32"}, {"65537", "u8", "u32"}, {"262144", "u8", "u32"}}) {
    std::string text = kSmall;
    text.replace(text.find("[data]"), 0, std::string("vocabulary = ") + vocabulary + "\n");
    const auto of_width = [&](std::string name) { return message_of(text + "width = \"" + name + "\"\n"); };
    EXPECT_THAT(of_width(too_narrow), HasSubstr(std::string("did you mean width = \"") + width + "\"?"));
    EXPECT_EQ(of_width(width), "ok");
  }
}

TEST(ConfigTest, ACodecIsChosenForAllEdgesOrForEach) {
  const auto config = parse_config(
      with("[pipeline]\nstages = 3\n[wire]\nforward = [\"int8\", \"raw\"]\nbackward = \"int8\"\n"), "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->wire.forward.at(StageId(0)), CodecId::kInt8);
  EXPECT_EQ(config->wire.forward.at(StageId(1)), CodecId::kRaw);
  EXPECT_EQ(config->wire.backward.at(StageId(0)), CodecId::kInt8);
  EXPECT_EQ(config->wire.backward.at(StageId(1)), CodecId::kInt8);
  const auto manifest = canonical_text(*config);
  ASSERT_TRUE(manifest.ok());
  EXPECT_THAT(*manifest, HasSubstr("forward = [\"int8\", \"raw\"]\nbackward = \"int8\"\n"));
  const auto again = parse_manifest(*manifest);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->wire.forward.at(StageId(1)), CodecId::kRaw);
  EXPECT_THAT(message_of(with("[pipeline]\nstages = 3\n[wire]\nforward = [\"int8\"]\n")),
              HasSubstr("[wire] forward lists 1 codecs, but 3 stages have 2 edges"));
  EXPECT_THAT(message_of(with("[wire]\nbackward = [\"raw\"]\n")), HasSubstr("1 stages have 0 edges"));
  EXPECT_THAT(message_of(with("[wire]\nbackward = []\n")), HasSubstr("out of bounds"));
  EXPECT_THAT(message_of(with("[wire]\nforward = [\"int9\"]\n")), HasSubstr("did you mean \"int8\"?"));
  EXPECT_THAT(message_of(with("[wire]\nforward = 8\n")),
              AllOf(HasSubstr("must be one of raw, int8"), HasSubstr("or a list of them")));
}

TEST(ConfigTest, EveryCodecHasItsNameAndASlipOfThePenIsNamed) {
  for (const CodecId codec : kCodecs) {
    const std::string name(codec_for(codec).name());
    const auto config = parse_config(with("[wire]\nforward = \"" + name + "\"\n"), "run.toml");
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->wire.forward.at(StageId(0)), codec);
  }
  EXPECT_THAT(message_of(with("[wire]\nbackward = \"aq4\"\n")), HasSubstr("give int8 or bf16"));
  EXPECT_THAT(message_of(with("[wire]\nbackward = \"int4-hadamar\"\n")), HasSubstr("did you mean \"int4-hadamard\"?"));
  EXPECT_THAT(message_of(with("[wire]\nforward = \"bfp16\"\n")), HasSubstr("did you mean \"bf16\"?"));
}

TEST(ConfigTest, ManifestKeepsEverythingButTheLocalPath) {
  const std::string key(64, 'a');
  auto config = parse_config(with("sequences = 2\nvalidation_samples = 9\n[optimizer]\nlr = 0.00123\n[admission]\nmode "
                                  "= \"keys\"\nkeys = [\"" +
                                  key + "\"]\n[pipeline]\nstages = 2\nlayers_per_stage = [3, 1]\n"),
                             "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto body = canonical_text(*config);
  ASSERT_TRUE(body.ok());
  EXPECT_THAT(*body, Not(HasSubstr("text.bin")));
  const auto again = parse_manifest(*body);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->optimizer.lr, 0.00123);
  EXPECT_EQ(again->data.validation_samples, 9u);
  EXPECT_EQ(again->admission.keys, config->admission.keys);
  EXPECT_EQ(again->pipeline.layers_per_stage, config->pipeline.layers_per_stage);
  EXPECT_EQ(*canonical_text(*again), *body);
}

// So that the manifests of runs that began before there were families stay what they are.
TEST(ConfigTest, TheFirstFamilyIsNotWrittenIntoAManifest) {
  const std::string model = "[model]\n", named = model + "family = \"gpt2\"\n";
  const std::string body = *canonical_text(*parse_config(kSmall, "run.toml"));
  EXPECT_EQ(*canonical_text(*parse_config(named + with("").substr(model.size()), "run.toml")), body);
  std::string other = body;
  other.replace(other.find(model), model.size(), named);
  EXPECT_EQ(parse_manifest(other).code(), ErrorCode::kMalformed);
  EXPECT_THAT(message_of("[model]\nfamily = \"gpt\"\n"), HasSubstr("did you mean \"gpt2\"?"));
}

TEST(ConfigTest, ANegativeZeroIsZeroAndItsManifestIsRead) {
  const auto text = [](const std::string& zero) {
    return with("[optimizer]\nweight_decay = " + zero + "\nlook_ahead = " + zero + "\n[pipeline]\nin_flight_ramp = [" +
                zero + ", 0.5]\n[end]\ntokens = 100000\n");
  };
  const auto config = parse_config(text("-0.0"), "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const std::string body = *canonical_text(*config);
  EXPECT_EQ(body, *canonical_text(*parse_config(text("0"), "run.toml")));
  const auto again = parse_manifest(body);
  EXPECT_TRUE(again.ok()) << again.error().message;
}

TEST(ConfigTest, RefusesADamagedManifestAtEveryLength) {
  const auto config = parse_config(kSmall, "run.toml");
  const std::string body = *canonical_text(*config);
  for (std::size_t size = 0; size < body.size(); ++size) {
    const auto cut = parse_manifest(body.substr(0, size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.code(), ErrorCode::kMalformed);
  }
  EXPECT_FALSE(parse_manifest(body + "# more\n").ok());
  EXPECT_EQ(parse_manifest(std::string(kManifestBytesMax + 1, ' ')).code(), ErrorCode::kTooLarge);
}

TEST(ConfigTest, RefusesAManifestThatWouldNotFit) {
  auto config = parse_config(kSmall, "run.toml");
  config->admission.keys.assign(200, PeerId{});
  EXPECT_EQ(canonical_text(*config).code(), ErrorCode::kTooLarge);
}

TEST(ConfigTest, PathIsRelativeToTheFileThatNamesIt) {
  const ScratchFolder folder;
  const auto config = load_config(folder.write("run.toml", kSmall));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->data.paths.front(), folder / "text.bin");
}

// None of them is waited for or read without end.
TEST(ConfigTest, AFileThatIsNoneIsNamedAtOnce) {
  const ScratchFolder folder;
  for (const auto& [path, kind] : irregular_files(folder)) {
    const auto config = load_config(path);
    ASSERT_FALSE(config.ok()) << path;
    EXPECT_EQ(config.code(), ErrorCode::kInput);
    EXPECT_THAT(config.error().message, AllOf(HasSubstr(path), HasSubstr(kind), HasSubstr("HINT:")));
  }
  EXPECT_EQ(load_config(folder.write("large.toml", std::string(kConfigBytesMax + 1, ' '))).code(),
            ErrorCode::kTooLarge);
}

TEST(ConfigTest, StepsOfDilocoHoldTheBatchesOfAllReplicas) {
  const auto config =
      parse_config(with("sequences = 4\n[pipeline]\nreplicas = 3\n[sync]\ninner_batch = 400\nwarm_steps = 2\n"
                        "microbatches_per_step = 6\n"),
                   "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->microbatches_of_step(1), 6u);
  EXPECT_EQ(config->microbatches_of_step(2), 5u);  // 1200 targets of 256, rounded up
  EXPECT_EQ(config->targets_of_steps(1), 6u * 256);
  EXPECT_EQ(config->targets_of_steps(4), (2u * 6 + 2 * 5) * 256);
}

TEST(ConfigTest, LearningRateFollowsTheTokens) {
  const auto config = parse_config(
      with("[optimizer]\nlr = 0.01\n[schedule]\ntokens = 1000\nwarmup_tokens = 100\nmin_lr_factor = 0.1\n"),
      "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_NEAR(config->inner_step(1, 10, 100, true).lr, 0.01, 1e-12);
  EXPECT_LT(config->inner_step(1, 10, 50, true).lr, 0.01);
  EXPECT_NEAR(config->inner_step(9, 10, 1000, true).lr, 0.001, 1e-12);
  EXPECT_EQ(config->inner_step(9, 10, 1000, true).step, 9u);
}

TEST(ConfigTest, LookAheadIsANumberOrFollowsFromTheMode) {
  const auto config_of = [](const std::string& more) {
    auto config = parse_config(with(more), "run.toml");
    EXPECT_TRUE(config.ok()) << config.error().message;
    return *config;
  };
  for (const char* same : {"", "[optimizer]\nlook_ahead = \"auto\"\n"}) {
    const RunConfig overlap = config_of(same);
    EXPECT_EQ(overlap.sync.mode, SyncMode::kAuto);
    EXPECT_TRUE(overlap.gradients_late()) << "until somebody takes a mode";
    EXPECT_EQ(overlap.look_ahead_of(overlap.gradients_late()), 1.0);
    EXPECT_EQ(overlap.look_ahead_of(false), 0.0) << "as solo asks";
    const RunConfig drain = config_of(std::string(same) + "[sync]\nrule = \"allreduce\"\nmode = \"drain\"\n");
    EXPECT_FALSE(drain.gradients_late());
    EXPECT_EQ(drain.look_ahead_of(drain.gradients_late()), 0.0);
  }
  for (const bool late : {false, true}) {
    EXPECT_EQ(config_of("[optimizer]\nlook_ahead = 2.5\n").look_ahead_of(late), 2.5);
    EXPECT_EQ(config_of("[optimizer]\nlook_ahead = 0\n").look_ahead_of(late), 0.0);
  }
  const RunConfig given = config_of("[optimizer]\nlook_ahead = 4\n");
  EXPECT_EQ(given.inner_step(1, 10, 10, true).look_ahead, 0) << "a first update says nothing of the next";
  EXPECT_EQ(given.inner_step(1, 10, 10, true).look_ahead_before, 0) << "there is no step before the first";
  EXPECT_EQ(given.inner_step(2, 10, 20, true).look_ahead, 4);
  EXPECT_EQ(given.inner_step(2, 10, 20, true).look_ahead_before, 0) << "the first step did not look ahead";
  EXPECT_EQ(given.inner_step(3, 10, 30, true).look_ahead_before, 4);
}

TEST(ConfigTest, MuonIsOfTheWholeRun) {
  const auto config = parse_config(with("[optimizer]\ninner = \"muon\"\n"), "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_TRUE(config->inner_step(1, 10, 10, true).muon);
  EXPECT_THAT(*canonical_text(*config), HasSubstr("\ninner = \"muon\"\n"));
  EXPECT_FALSE(parse_config(kSmall, "run.toml")->inner_step(1, 10, 10, true).muon);
}

TEST(ConfigTest, ANumberOrAutoIsRefusedByItsBoundsAndKeptInTheManifest) {
  EXPECT_EQ(message_of(with("[optimizer]\nlook_ahead = 5\n")),
            "run.toml:9: [optimizer] look_ahead = 5 is out of bounds: allowed is 0 to 4, or \"auto\"");
  EXPECT_EQ(message_of(with("[optimizer]\nlook_ahead = \"fast\"\n")),
            "run.toml:9: [optimizer] look_ahead = \"fast\" is not known: it is \"auto\", or 0 to 4");
  EXPECT_EQ(message_of(with("[optimizer]\nlook_ahead = true\n")),
            "run.toml:9: [optimizer] look_ahead must be auto or number");
  EXPECT_THAT(message_of(with("[optimizer]\nlook_ahead = nan\n")), HasSubstr("must be auto or number"));
  for (const char* value : {"\"auto\"", "0", "1", "0.3"}) {
    const auto config = parse_config(with(std::string("[optimizer]\nlook_ahead = ") + value + "\n"), "run.toml");
    ASSERT_TRUE(config.ok()) << config.error().message;
    const std::string body = *canonical_text(*config);
    EXPECT_THAT(body, HasSubstr(std::string("look_ahead = ") + value + "\n"));
    const auto again = parse_manifest(body);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->optimizer.look_ahead.given, config->optimizer.look_ahead.given);
  }
  EXPECT_EQ(parse_config(kSmall, "run.toml")->optimizer.look_ahead.given, std::nullopt);
  EXPECT_EQ(message_of(with("[pipeline]\nin_flight = 0\n")),
            "run.toml:9: [pipeline] in_flight = 0 is out of bounds: allowed is 1 to 4096, or \"auto\"");
  EXPECT_EQ(message_of(with("[pipeline]\nin_flight = 2.5\n")),
            "run.toml:9: [pipeline] in_flight must be auto or integer");
  EXPECT_EQ(parse_config(with("[pipeline]\nin_flight = \"auto\"\n"), "run.toml")->pipeline.in_flight.given,
            std::nullopt);
  const std::string help = describe_options();
  EXPECT_THAT(help, testing::ContainsRegex("look_ahead +auto or number +\"auto\" +0 \\.\\. 4"));
  for (const OptionRow& row : option_table()) EXPECT_THAT(help, HasSubstr("  " + std::string(row.key) + " "));
}

TEST(ConfigTest, NearestNameKnowsSlipsAndNothingElse) {
  const std::string_view names[] = {"tokens", "steps", "warmup_tokens"};
  EXPECT_EQ(nearest_name("tokesn", names), "tokens");
  EXPECT_EQ(nearest_name("warmup_token", names), "warmup_tokens");
  EXPECT_EQ(nearest_name("banana", names), "");
}

}  // namespace
}  // namespace shoal
