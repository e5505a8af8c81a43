// A narrow boundary's parameters, where they begin, and splits that meet at its cuts.
#include "stages/boundary.h"

#include <gtest/gtest.h>

#include <map>

#include "common/bytes.h"
#include "common/check.h"
#include "stages/stage_file.h"
#include "stages/stage_spec.h"

namespace shoal {
namespace {

constexpr std::uint32_t kD = 16, kK = 6, kV = 23;

ModelSpec model_of(std::uint32_t table = 4, ModelFamily family = ModelFamily::kGpt2) {
  return {.layers = 4,
          .dim = kD,
          .heads = 2,
          .positions = 8,
          .vocabulary = kV,
          .seed = 5,
          .family = family,
          .context = 12,
          .boundary = kK,
          .boundary_table = table,
          .cuts = {1, 3}};
}

std::vector<StageSpec> split(const ModelSpec& model, std::uint16_t stages) {
  auto specs = split_model(model, stages);
  SHOAL_CHECK(specs.ok());
  return *std::move(specs);
}
StageSpec whole_of(const ModelSpec& model) { return split(model, 1).front(); }

std::map<std::string, ParameterSpec> parameters_by_name(const ModelSpec& model) {
  std::map<std::string, ParameterSpec> found;
  for (const ParameterSpec& parameter : parameters_of(whole_of(model))) found[parameter.name] = parameter;
  return found;
}

// The first values of each tensor.
std::map<std::string, std::vector<float>> first_values(const ModelSpec& model) {
  const StageSpec spec = whole_of(model);
  std::vector<float> arena(parameter_count(spec));
  initialise(spec, arena);
  std::map<std::string, std::vector<float>> found;
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const auto first = arena.begin() + static_cast<std::ptrdiff_t>(parameter.offset);
    found[parameter.name] = {first, first + element_count(parameter.shape)};
  }
  return found;
}

ErrorCode refused(const ModelSpec& model, std::uint16_t stages = 1, const std::vector<std::uint32_t>& layers = {}) {
  const auto specs = split_model(model, stages, layers);
  return specs.ok() ? ErrorCode::kTimeout : specs.code();
}

TEST(BoundaryTest, BothHalvesStandInThePartsBesideTheirCut) {
  std::vector<std::string> names;
  for (const ParameterSpec& one : parameters_of(whole_of(model_of())))
    if (one.name.starts_with("boundary.") || one.name.ends_with("ln_1.weight")) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"h.0.ln_1.weight", "boundary.1.down", "boundary.1.up", "boundary.1.table",
                                             "boundary.1.table_up", "boundary.1.places", "h.1.ln_1.weight",
                                             "h.2.ln_1.weight", "boundary.3.down", "boundary.3.up", "boundary.3.table",
                                             "boundary.3.table_up", "boundary.3.places", "h.3.ln_1.weight"}));
  const auto found = parameters_by_name(model_of());
  EXPECT_EQ(found.at("boundary.3.down").part, 3u);  // of layer 2
  EXPECT_EQ(found.at("boundary.3.up").part, 4u);
  EXPECT_EQ(found.at("boundary.3.down").shape, (Shape{kK, kD}));
  EXPECT_EQ(found.at("boundary.3.up").shape, (Shape{kD, kK}));
  EXPECT_EQ(found.at("boundary.3.table").shape, (Shape{kV, 4}));
  EXPECT_EQ(found.at("boundary.3.table_up").shape, (Shape{kD, 4}));
  EXPECT_EQ(found.at("boundary.3.places").shape, (Shape{12, kD}));
}

TEST(BoundaryTest, NarrowTablesAloneNeedAnUpAndLearntPlacesATable) {
  EXPECT_TRUE(parameters_by_name(model_of()).contains("boundary.1.table_up"));
  EXPECT_FALSE(parameters_by_name(model_of(kD)).contains("boundary.1.table_up"));
  EXPECT_TRUE(parameters_by_name(model_of(kD)).contains("boundary.1.table"));
  EXPECT_FALSE(parameters_by_name(model_of(0)).contains("boundary.1.table"));
  EXPECT_FALSE(parameters_by_name(model_of(0)).contains("boundary.1.table_up"));
  EXPECT_FALSE(parameters_by_name(model_of(4, ModelFamily::kLlama)).contains("boundary.1.places"));
}

TEST(BoundaryTest, ProductsDoNotDecayTablesDoAndAreNeverAFactor) {
  const auto found = parameters_by_name(model_of());
  for (const std::string word : {"down", "up", "table_up", "table", "places"}) {
    const ParameterSpec& one = found.at("boundary.1." + word);
    const bool table = word == "table" || word == "places";
    EXPECT_EQ(one.decays, table) << word;
    EXPECT_EQ(one.is_factor(), !table) << word;
    EXPECT_EQ(one.matrices, 0u) << word;
  }
  EXPECT_FALSE(found.at("wte.weight").is_factor() || found.at("wpe.weight").is_factor());
  EXPECT_TRUE(found.at("lm_head.weight").is_factor());
}

TEST(BoundaryTest, ACutBeginsAsAProjection) {
  ModelSpec model = model_of();
  model.dim = 96;
  model.boundary = 48;
  const auto values = first_values(model);
  for (const std::string cut : {"boundary.1", "boundary.3"}) {
    const std::vector<float>&down = values.at(cut + ".down"), &up = values.at(cut + ".up");
    for (std::size_t i = 0; i < 48; ++i) {
      for (std::size_t j = 0; j < 96; ++j) EXPECT_EQ(down[i * 96 + j], up[j * 48 + i]);
      for (std::size_t k = 0; k <= i; ++k) {
        double dot = 0;
        for (std::size_t j = 0; j < 96; ++j) dot += double{up[j * 48 + i]} * up[j * 48 + k];
        EXPECT_NEAR(dot, i == k ? 1 : 0, 1e-7) << "within a float's rounding";
      }
    }
  }
  EXPECT_NE(values.at("boundary.1.up"), values.at("boundary.3.up"));
}

TEST(BoundaryTest, TablesBeginAsTheFirstColumnsOfTheTokenTable) {
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kLlama}) {
    const auto narrow = first_values(model_of(4, family)), wide = first_values(model_of(kD, family));
    const std::vector<float>& tokens =
        narrow.at(family == ModelFamily::kGpt2 ? "wte.weight" : "model.embed_tokens.weight");
    EXPECT_EQ(wide.at("boundary.3.table"), tokens);
    for (std::size_t i = 0; i < kV; ++i)
      for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(narrow.at("boundary.1.table")[i * 4 + j], tokens[i * kD + j]);
    for (std::size_t i = 0; i < kD; ++i)
      for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(narrow.at("boundary.1.table_up")[i * 4 + j], i == j ? 1 : 0);
  }
  EXPECT_EQ(first_values(model_of()).at("boundary.1.places"), std::vector<float>(std::size_t{12} * kD, 0));
}

TEST(BoundaryTest, TheRestBeginsAsInThePlainModel) {
  const auto plain = first_values(without_boundary(model_of())), narrow = first_values(model_of());
  for (const auto& [name, values] : plain) EXPECT_EQ(narrow.at(name), values) << name;
}

TEST(BoundaryTest, AnySplitConcatenatesToTheWholeAndTheSameNumbers) {
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kLlama}) {
    const StageSpec whole = whole_of(model_of(4, family));
    std::vector<float> expected(parameter_count(whole));
    initialise(whole, expected);
    for (const std::uint16_t stages : {2, 3}) {
      std::vector<float> joined;
      for (const StageSpec& spec : split(whole.model, stages)) {
        std::vector<float> part(parameter_count(spec));
        initialise(spec, part);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      EXPECT_EQ(joined, expected) << stages;
    }
  }
}

// Replicas on different machines must draw the same bits.
TEST(BoundaryTest, GoldenBits) {
  EXPECT_EQ(crc32c(bytes_of(std::span<const float>(first_values(model_of()).at("boundary.3.up")))), 2948795401u);
}

TEST(BoundaryTest, StagesMeetAtCuts) {
  ModelSpec model = model_of();
  model.layers = 9;
  model.cuts = {1, 6, 8};
  const auto ends = [&](std::uint16_t stages) {
    std::vector<std::uint32_t> found;
    for (const StageSpec& spec : split(model, stages)) found.push_back(spec.end_layer);
    return found;
  };
  EXPECT_EQ(ends(4), (std::vector<std::uint32_t>{1, 6, 8, 9}));
  EXPECT_EQ(ends(2), (std::vector<std::uint32_t>{6, 9}));
  EXPECT_EQ(refused(model, 5), ErrorCode::kInput) << "there is no fourth cut";
  EXPECT_EQ(refused(model, 2, {6, 3}), ErrorCode::kTimeout);
  const auto elsewhere = split_model(model, 2, {5, 4});
  ASSERT_EQ(elsewhere.code(), ErrorCode::kInput);
  EXPECT_NE(elsewhere.error().message.find("in front of layer 5, the model has cuts in front of layers 1 6 8"),
            std::string::npos)
      << elsewhere.error().message;
}

TEST(BoundaryTest, CostsCountBothHalves) {
  for (const std::uint32_t table : {0u, 4u, kD}) {
    const ModelSpec model = model_of(table), plain = without_boundary(model);
    const double products = kK + kK + (table < kD ? table : 0);
    const double wanted = forward_cost(whole_of(plain)) + 2 * 2.0 * kD * products;
    EXPECT_DOUBLE_EQ(forward_cost(whole_of(model)), wanted);
    double sum = 0;
    for (const StageSpec& spec : split(model, 3)) sum += forward_cost(spec);
    EXPECT_DOUBLE_EQ(sum, wanted);
  }
}

TEST(BoundaryTest, RefusesWhatIsNoBoundary) {
  const auto changed = [](const std::function<void(ModelSpec&)>& change) {
    ModelSpec model = model_of();
    change(model);
    return refused(model);
  };
  EXPECT_EQ(changed([](ModelSpec&) {}), ErrorCode::kTimeout);
  EXPECT_EQ(changed([](ModelSpec& model) { model.boundary = kD; }), ErrorCode::kInput);
  EXPECT_EQ(changed([](ModelSpec& model) { model.boundary_table = kD + 1; }), ErrorCode::kInput);
  EXPECT_EQ(changed([](ModelSpec& model) { model.lora_rank = 2; }), ErrorCode::kInput);
  for (const std::vector<std::uint32_t>& cuts :
       std::vector<std::vector<std::uint32_t>>{{}, {0, 2}, {2, 2}, {3, 1}, {1, 4}})
    EXPECT_EQ(changed([&](ModelSpec& model) { model.cuts = cuts; }), ErrorCode::kInput) << cuts.size();
  EXPECT_EQ(changed([](ModelSpec& model) { model.boundary = 0; }), ErrorCode::kInput) << "cuts without values";
}

TEST(BoundaryTest, TheUsualTableIsATwentiethOfAStagesLayers) {
  const ModelSpec tiny_llama{.layers = 22,
                             .dim = 2048,
                             .heads = 32,
                             .positions = 512,
                             .vocabulary = 32000,
                             .family = ModelFamily::kLlama,
                             .kv_heads = 4,
                             .inner = 5632};
  EXPECT_EQ(usual_boundary_table(tiny_llama, 4), 320u);
  EXPECT_EQ(usual_boundary_table(tiny_llama, 22), 64u) << "the least";
  ModelSpec bytes = tiny_llama;
  bytes.vocabulary = 256;
  EXPECT_EQ(usual_boundary_table(bytes, 4), 2048u);
  EXPECT_EQ(usual_boundary_table(model_of(), 3), kD) << "narrower than the least";
}

TEST(BoundaryTest, AStageFileCarriesTheCuts) {
  const ModelSpec model = model_of();
  const auto file_of = [](const StageSpec& spec) {
    std::vector<float> values(parameter_count(spec));
    initialise(spec, values);
    std::string text;
    for (const Bytes& part : stage_file_parts(spec, values))
      text.append(reinterpret_cast<const char*>(part.data()), part.size());
    return text;
  };
  const StageSpec middle = split(model, 3).at(1);
  const std::string file = file_of(middle);
  const auto parsed = [](const std::string& text) { return parse_stage_file(Bytes::copy_of(std::string_view(text))); };
  const auto loaded = parsed(file);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_TRUE(loaded->spec == middle);
  EXPECT_EQ(file_of(split(without_boundary(model), 3).at(1)).find("shoal.boundary"), std::string::npos);
  // Edits keep the length, which stands in front of the header.
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = file;
    text.replace(text.find(from), from.size(), to);
    return parsed(text).code();
  };
  EXPECT_EQ(edited("\"shoal.cuts\":\"1,3\"", "\"shoal.cuts\":\"1,x\""), ErrorCode::kMalformed);
  EXPECT_EQ(edited("\"shoal.cuts\":\"1,3\"", "\"shoal.cuts\":\"2,3\""), ErrorCode::kMalformed) << "it begins elsewhere";
  EXPECT_EQ(edited("\"shoal.cuts\":\"1,3\"", "\"shoal.cuts\":\"1,2\""), ErrorCode::kMalformed) << "it ends elsewhere";
  EXPECT_EQ(edited("\"shoal.boundary\":\"6\"", "\"shoal.boundary\":\"7\""), ErrorCode::kMalformed);
}

}  // namespace
}  // namespace shoal
