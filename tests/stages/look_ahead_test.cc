// Looking ahead: what it does to plain AdamW, and that without it every bit is plain AdamW's.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "common/rng.h"
#include "stages/adamw.h"

namespace shoal {
namespace {

constexpr std::size_t kSize = 337;
constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-8;

std::vector<ParameterSpec> flat(std::size_t size, bool decays) {
  return {{"a", {static_cast<std::int64_t>(size)}, 0, decays}};
}

std::vector<float> draw(std::uint64_t seed, double scale, std::size_t size = kSize) {
  Rng rng(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(scale * rng.normal());
  return values;
}

InnerStep step_of(std::uint64_t number, double look_ahead, double look_ahead_before) {
  InnerStep step;
  step.lr = 3e-3;
  step.targets = 8;
  step.step = number;
  step.clip_norm = 0.5;
  step.look_ahead = look_ahead;
  step.look_ahead_before = look_ahead_before;
  return step;
}

struct State {
  std::vector<float> p, m, v;
};

Result<double> take(State& state, const std::vector<float>& sum, const InnerStep& step, bool decays,
                    std::span<const float> shift = {}, const ParallelFor& parallel = serial_for()) {
  return adamw_step(flat(state.p.size(), decays), step,
                    {state.p, sum, state.m, state.v, shift, state.p, state.m, state.v}, parallel);
}

// AdamW as it was before it could look ahead, one element after the other.
void plain_adamw(State& s, const std::vector<float>& sum, const InnerStep& step, double norm, bool decays,
                 const std::vector<float>& shift) {
  const double clip = step.clip_norm > 0 && norm > step.clip_norm ? step.clip_norm / norm : 1.0;
  const double number = static_cast<double>(step.step);
  const auto scale = static_cast<float>(clip / static_cast<double>(step.targets));
  const auto beta1 = static_cast<float>(step.beta1), beta2 = static_cast<float>(step.beta2);
  const auto rate = static_cast<float>(step.lr / (1 - std::pow(step.beta1, number)));
  const auto root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(step.beta2, number)));
  const auto eps = static_cast<float>(step.eps);
  const float keep = decays ? static_cast<float>(1 - step.lr * step.weight_decay) : 1.0f;
  const float rest1 = 1 - beta1, rest2 = 1 - beta2;
  for (std::size_t i = 0; i < s.p.size(); ++i) {
    const float g = sum[i] * scale;
    const float m = beta1 * s.m[i] + rest1 * g;
    const float v = beta2 * s.v[i] + rest2 * g * g;
    s.m[i] = m;
    s.v[i] = v;
    s.p[i] = keep * s.p[i] - rate * m / (std::sqrt(v) * root_scale + eps);
  }
  if (shift.empty()) return;
  for (std::size_t i = 0; i < s.p.size(); ++i) s.p[i] += shift[i];
}

::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return ::testing::AssertionFailure() << "element " << i << " of " << a.size() << ": " << a[i] << ", " << b[i];
  }
  return ::testing::AssertionSuccess();
}

// Sizes around those of vectors, so that every tail is met; among the values zeros of both signs and a denormal.
TEST(LookAheadTest, OfZeroIsPlainAdamWToTheBit) {
  for (const std::size_t size : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 33u, 1000u, 70001u}) {
    for (const std::uint64_t number : {1u, 2u, 50u}) {
      for (const bool decays : {false, true}) {
        State got{draw(size, 1, size), draw(size + 1, 0.1, size), draw(size + 2, 0.1, size)};
        for (float& value : got.v) value *= value;
        const float special[] = {0.0f, -0.0f, 1e-40f};
        std::vector<float> sum = draw(size + 3, 5, size);
        for (std::size_t i = 0; i < size; i += 2) got.p[i] = special[i % 3];
        for (std::size_t i = 0; i < size; i += 3) got.m[i] = special[i / 3 % 3];
        for (std::size_t i = 0; i < size; i += 5) sum[i] = special[i / 5 % 2];
        const std::vector<float> shift = number == 2 ? draw(size + 4, 0.2, size) : std::vector<float>{};
        State plain = got;
        const InnerStep step = step_of(number, 0, 0);
        const Result<double> norm = take(got, sum, step, decays, shift);
        ASSERT_TRUE(norm.ok());
        plain_adamw(plain, sum, step, *norm, decays, shift);
        EXPECT_TRUE(same_bits(got.p, plain.p)) << "step " << number;
        EXPECT_TRUE(same_bits(got.m, plain.m)) << "step " << number;
        EXPECT_TRUE(same_bits(got.v, plain.v)) << "step " << number;
      }
    }
  }
}

// c(t) of the test: constant, and one that changes and rests at 0 for a while.
double constant_one(std::uint64_t number) { return number == 0 ? 0.0 : 1.0; }
double changing(std::uint64_t number) { return number == 0 ? 0.0 : 0.75 * static_cast<double>(number / 2 % 4); }

TEST(LookAheadTest, AgreesWithItsFormulaInDouble) {
  for (const auto look_ahead : {constant_one, changing}) {
    State state{draw(1, 1), std::vector<float>(kSize), std::vector<float>(kSize)};
    std::vector<double> p(state.p.begin(), state.p.end()), m(kSize), v(kSize);
    for (std::uint64_t t = 1; t <= 10; ++t) {
      const InnerStep step = step_of(t, look_ahead(t), look_ahead(t - 1));
      const std::vector<float> sum = draw(10 + t, t % 2 == 0 ? 0.01 : 5.0), shift = draw(30 + t, 0.1);
      const Result<double> norm = take(state, sum, step, true, shift);
      ASSERT_TRUE(norm.ok());
      const double clip = *norm > 0.5 ? 0.5 / *norm : 1, n = static_cast<double>(t);
      for (std::size_t i = 0; i < kSize; ++i) {
        const double g = sum[i] / 8.0 * clip, before = m[i];
        m[i] = kBeta1 * before + (1 - kBeta1) * g;
        v[i] = kBeta2 * v[i] + (1 - kBeta2) * g * g;
        double ahead = (1 + look_ahead(t)) * m[i] / (1 - std::pow(kBeta1, n));
        if (t > 1) ahead -= look_ahead(t - 1) * before / (1 - std::pow(kBeta1, n - 1));
        const double root = std::sqrt(v[i] / (1 - std::pow(kBeta2, n))) + kEps;
        p[i] = (1 - step.lr * step.weight_decay) * p[i] - step.lr * ahead / root + shift[i];
        ASSERT_NEAR(state.p[i], p[i], 4e-6) << "element " << i << " step " << t;
      }
    }
  }
}

// The derivation: y = x - c u, where x follows plain AdamW, u is its last update, and the gradients are made at y. It
// is exact where rate and v do not change: gradients of one size an element, whose signs alone depend on y.
TEST(LookAheadTest, IsPlainAdamWSeenFromWhereItGoes) {
  for (const auto look_ahead : {constant_one, changing}) {
    const std::vector<float> start = draw(1, 0.05), size = draw(2, 3), goal = draw(3, 0.05);
    State state{start, std::vector<float>(kSize), std::vector<float>(kSize)};
    std::vector<double> x(start.begin(), start.end()), y = x, m(kSize), v(kSize);
    std::size_t turned = 0;
    for (std::uint64_t t = 1; t <= 40; ++t) {
      std::vector<float> sum(kSize);
      for (std::size_t i = 0; i < kSize; ++i) sum[i] = y[i] > goal[i] ? std::abs(size[i]) : -std::abs(size[i]);
      InnerStep step = step_of(t, look_ahead(t), look_ahead(t - 1));
      step.clip_norm = 0;
      ASSERT_TRUE(take(state, sum, step, false).ok());
      for (std::size_t i = 0; i < kSize; ++i) {
        const double g = sum[i] / 8.0;
        turned += t > 1 && g * m[i] < 0 ? 1 : 0;
        m[i] = kBeta1 * m[i] + (1 - kBeta1) * g;
        v[i] = kBeta2 * v[i] + (1 - kBeta2) * g * g;
        const double n = static_cast<double>(t);
        const double u =
            step.lr * (m[i] / (1 - std::pow(kBeta1, n))) / (std::sqrt(v[i] / (1 - std::pow(kBeta2, n))) + kEps);
        x[i] -= u;
        y[i] = x[i] - look_ahead(t) * u;
        ASSERT_NEAR(state.p[i], y[i], 1e-6 * std::max(1.0, std::abs(y[i]))) << "element " << i << " step " << t;
      }
    }
    EXPECT_GT(turned, kSize) << "updates that never change would look ahead as plain steps do";
  }
}

// A session that joined between rounds begins with zeroed moments. Nothing was taken, so nothing is given back.
TEST(LookAheadTest, ZeroedMomentsGiveNothingBackWhateverTheStep) {
  const std::vector<float> start = draw(1, 1), sum = draw(2, 3), zero(kSize);
  State with{start, zero, zero}, without{start, zero, zero};
  ASSERT_TRUE(take(with, sum, step_of(1000, 1, 1), true).ok());
  ASSERT_TRUE(take(without, sum, step_of(1000, 1, 0), true).ok());
  EXPECT_TRUE(same_bits(with.p, without.p));
  EXPECT_NE(with.p, start);
}

TEST(LookAheadTest, TheFirstStepGoesFurtherAndGivesNothingBack) {
  const std::vector<float> start = draw(1, 1), sum = draw(2, 3), zero(kSize);
  State ahead{start, zero, zero}, plain{start, zero, zero};
  ASSERT_TRUE(take(ahead, sum, step_of(1, 2, 0), false).ok());
  ASSERT_TRUE(take(plain, sum, step_of(1, 0, 0), false).ok());
  for (std::size_t i = 0; i < kSize; ++i) EXPECT_NEAR(ahead.p[i] - start[i], 3 * (plain.p[i] - start[i]), 2e-6);
  EXPECT_DEATH(adamw_factors(step_of(1, 1, 1), 1), "look_ahead_before");
}

TEST(LookAheadTest, TheResultDoesNotDependOnHowTheWorkIsCut) {
  const ParallelFor pieces = [](std::size_t count, std::size_t,
                                const std::function<void(std::size_t, std::size_t)>& body) {
    for (std::size_t end = count; end > 0; end -= std::min<std::size_t>(end, 5)) body(end > 5 ? end - 5 : 0, end);
  };
  const std::vector<float> sum = draw(2, 3), shift = draw(5, 0.2);
  State whole{draw(1, 1), draw(3, 0.1), std::vector<float>(kSize, 0.01f)}, cut = whole;
  ASSERT_TRUE(take(whole, sum, step_of(7, 1, 1), true, shift).ok());
  ASSERT_TRUE(take(cut, sum, step_of(7, 1, 1), true, shift, pieces).ok());
  EXPECT_TRUE(same_bits(whole.p, cut.p));
  EXPECT_TRUE(same_bits(whole.m, cut.m));
}

}  // namespace
}  // namespace shoal
