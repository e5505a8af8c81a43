// What fit_cut() finds in activations that are made of what it looks for.
#include "stages/boundary_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "stages/boundary.h"

namespace shoal {
namespace {

constexpr std::int64_t kDim = 12, kPlaces = 8, kSequences = 400;
constexpr std::uint32_t kCut = 1;

ModelSpec model_of(ModelFamily family, std::uint32_t values, std::uint32_t table) {
  ModelSpec model{.layers = 2, .dim = kDim, .heads = 2, .positions = kPlaces, .vocabulary = 6};
  model.family = family;
  model.boundary = values;
  model.boundary_table = table;
  model.cuts = {kCut};
  return model;
}

// Activations x = m[token] + q[place] + W c, c normal: W of `directions` columns.
struct Parts {
  double token = 0, place = 0, free = 0;  // deviations
  int directions = 0;
};

SentText made_of(const Parts& parts, std::uint32_t vocabulary) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto drawn = [&](std::int64_t rows, double deviation) {
    std::vector<float> values(static_cast<std::size_t>(rows * kDim));
    for (float& value : values) value = static_cast<float>(deviation) * normal(random);
    return values;
  };
  const auto by_token = drawn(vocabulary, parts.token), by_place = drawn(kPlaces, parts.place),
             basis = drawn(parts.directions, parts.free);
  SentText made;
  for (int s = 0; s < kSequences; ++s) {
    std::vector<std::uint8_t> ids(kPlaces + 1);
    for (std::uint8_t& id : ids) id = static_cast<std::uint8_t>(random() % vocabulary);
    std::vector<float> x(kPlaces * kDim);
    for (std::int64_t p = 0; p < kPlaces; ++p) {
      for (std::int64_t i = 0; i < kDim; ++i) x[p * kDim + i] = by_token[ids[p] * kDim + i] + by_place[p * kDim + i];
      for (int c = 0; c < parts.directions; ++c) {
        const float along = normal(random);
        for (std::int64_t i = 0; i < kDim; ++i) x[p * kDim + i] += along * basis[c * kDim + i];
      }
    }
    made.tokens.push_back({DType::kU8, {1, kPlaces + 1}, Bytes::from_vector(std::move(ids))});
    made.activations.push_back({DType::kF32, {1, kPlaces, kDim}, Bytes::copy_of(bytes_of(std::span<const float>(x)))});
  }
  return made;
}

double distance(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].f32().size(); ++j) sum += std::pow(a[i].f32()[j] - b[i].f32()[j], 2);
  return sum;
}

CutParameters fitted(const ModelSpec& model, const SentText& made) {
  auto cut = fit_cut(model, kCut, made);
  EXPECT_TRUE(cut.ok()) << cut.error().message;
  return *std::move(cut);
}

double kept(const ModelSpec& model, SentText made) { return *cross_cut(model, kCut, fitted(model, made), made); }

TEST(BoundaryFitTest, TokensAndAsManyDirectionsAsCrossAreAllThatThereIs) {
  for (const ModelFamily family : {ModelFamily::kGpt2, ModelFamily::kLlama}) {
    for (const std::uint32_t table : {12u, 6u}) {  // means of six tokens lie in six directions
      const double places = family == ModelFamily::kGpt2 ? 2 : 0;
      SentText made = made_of({.token = 1, .place = places, .free = 1, .directions = 3}, 6);
      const std::vector<HostTensor> before = made.activations;
      const ModelSpec model = model_of(family, 3, table);
      EXPECT_GT(*cross_cut(model, kCut, fitted(model, made), made), 0.999)
          << table << ": places are known by 400 sequences";
      double all = 0;
      for (const HostTensor& x : before)
        for (const float value : x.f32()) all += value * value;
      EXPECT_LT(distance(before, made.activations), 1e-3 * all) << "what the next layer reads stands there";
    }
  }
}

TEST(BoundaryFitTest, WithFewerDirectionsTheLargestCross) {
  const SentText made = made_of({.token = 1, .free = 1, .directions = 3}, 6);
  const double two = kept(model_of(ModelFamily::kLlama, 2, 12), made);
  EXPECT_GT(two, 0.6);
  EXPECT_LT(two, 0.98);
  EXPECT_GT(kept(model_of(ModelFamily::kLlama, 3, 12), made), 0.9999);
}

TEST(BoundaryFitTest, WithoutATableTheDirectionsCarryAllThatTheyCan) {
  EXPECT_GT(kept(model_of(ModelFamily::kLlama, 3, 0), made_of({.token = 0, .free = 1, .directions = 3}, 6)), 0.9999);
  EXPECT_GT(kept(model_of(ModelFamily::kLlama, 6, 0), made_of({.token = 1}, 6)), 0.9999);
}

// Means of tokens lie in six directions: what the table leaves of them is for the directions that cross.
TEST(BoundaryFitTest, AWiderTableKeepsNoLess) {
  const SentText made = made_of({.token = 2, .free = 0.5, .directions = 12}, 6);
  double before = 0;
  for (const std::uint32_t table : {0u, 1u, 2u, 4u, 6u, 12u}) {
    const double now = kept(model_of(ModelFamily::kLlama, 3, table), made);
    EXPECT_GT(now, before - 1e-3) << table;
    before = now;
  }
  EXPECT_GT(before, kept(model_of(ModelFamily::kLlama, 3, 0), made) + 0.05);
}

TEST(BoundaryFitTest, TheParametersAreThoseOfTheHalvesAndTheirProductIsAProjection) {
  for (const std::uint32_t table : {12u, 6u, 0u}) {
    const ModelSpec model = model_of(ModelFamily::kGpt2, 3, table);
    const CutParameters cut = fitted(model, made_of({.token = 1, .place = 1, .free = 1, .directions = 5}, 6));
    std::size_t known = 0;
    for (const auto& half : {down_of(model, kCut - 1), up_of(model, kCut)}) {
      for (const ParameterSpec& parameter : half) {
        ASSERT_TRUE(cut.contains(parameter.name)) << parameter.name;
        EXPECT_EQ(cut.at(parameter.name).size(), static_cast<std::size_t>(element_count(parameter.shape)));
        ++known;
      }
    }
    EXPECT_EQ(known, cut.size());
    const std::vector<float>&down = cut.at("boundary.1.down"), &up = cut.at("boundary.1.up");
    for (std::int64_t a = 0; a < 3; ++a) {
      for (std::int64_t b = 0; b < 3; ++b) {
        double sum = 0;
        for (std::int64_t i = 0; i < kDim; ++i) sum += down[a * kDim + i] * up[i * 3 + b];
        EXPECT_NEAR(sum, a == b, 1e-5);
      }
    }
  }
}

// Tokens tell nothing here: one that was seen once is no worse known than all.
TEST(BoundaryFitTest, AMeanOfFewIsDrawnToThatOfAll) {
  SentText made = made_of({.token = 0, .free = 1, .directions = 12}, 5);
  std::vector<std::uint8_t> ids(made.tokens[0].bytes.data(), made.tokens[0].bytes.data() + kPlaces + 1);
  ids[0] = 5;
  made.tokens[0].bytes = Bytes::from_vector(std::move(ids));
  const std::vector<float> x(made.activations[0].f32().begin(), made.activations[0].f32().begin() + kDim);
  const CutParameters cut = fitted(model_of(ModelFamily::kLlama, 1, 12), made);
  const std::vector<float>& table = cut.at("boundary.1.table");
  double of_once = 0, of_sample = 0;
  for (std::int64_t i = 0; i < kDim; ++i) {
    of_once += std::pow(table[5 * kDim + i], 2);
    of_sample += std::pow(x[i], 2);
  }
  EXPECT_LT(of_once, 0.05 * of_sample);
}

}  // namespace
}  // namespace shoal
