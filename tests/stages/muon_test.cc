// Muon's step of the layers' matrices: the iteration, the formula, and what is left to AdamW.
#include "stages/muon.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/rng.h"
#include "stages/adamw.h"

namespace shoal {
namespace {

using Values = std::vector<double>;

std::vector<float> draw(std::uint64_t seed, double scale, std::size_t size) {
  Rng rng(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(scale * rng.normal());
  return values;
}

// The iteration on one singular value, of a matrix whose norm is `norm`.
double iterated(double value, double norm) {
  double s = value / norm;
  for (int step = 0; step < kNewtonSchulzSteps; ++step)
    s = kNewtonSchulz[0] * s + kNewtonSchulz[1] * s * s * s + kNewtonSchulz[2] * s * s * s * s * s;
  return s;
}

// I - 2 v v^T / |v|^2: orthogonal, (n, n).
Values reflection(std::uint64_t seed, std::size_t n) {
  const std::vector<float> v = draw(seed, 1, n);
  double squares = 0;
  for (const float x : v) squares += static_cast<double>(x) * x;
  Values q(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) q[i * n + j] = (i == j ? 1.0 : 0.0) - 2.0 * v[i] * v[j] / squares;
  return q;
}

// U diag(s) V with U, V reflections: (rows, cols).
Values composed(const Values& s, std::size_t rows, std::size_t cols) {
  const Values u = reflection(1, rows), v = reflection(2, cols);
  Values all(rows * cols);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j)
      for (std::size_t k = 0; k < s.size(); ++k) all[i * cols + j] += u[i * rows + k] * s[k] * v[k * cols + j];
  return all;
}

TEST(MuonTest, TheIterationActsOnSingularValuesAlone) {
  const std::pair<std::size_t, std::size_t> shapes[] = {{6, 6}, {4, 11}, {11, 4}, {1, 5}, {19, 17}};
  for (const auto& [rows, cols] : shapes) {
    Values s(std::min(rows, cols));
    double squares = 0;
    for (std::size_t k = 0; k < s.size(); ++k) {
      s[k] = 3.0 / static_cast<double>(1 + k);
      squares += s[k] * s[k];
    }
    const Values start = composed(s, rows, cols);
    std::vector<float> got(start.begin(), start.end());
    orthogonalise(got, rows, cols, serial_for());
    for (double& value : s) {
      value = iterated(value, std::sqrt(squares));
      EXPECT_GT(value, 0.6);
      EXPECT_LT(value, 1.3);
    }
    const Values wanted = composed(s, rows, cols);
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-4) << rows << " x " << cols;
  }
}

TEST(MuonTest, ZerosStayZeros) {
  std::vector<float> none(12);
  orthogonalise(none, 3, 4, serial_for());
  EXPECT_EQ(none, std::vector<float>(12));
}

// One of each kind; the fused projections are three matrices.
constexpr std::int64_t kDim = 5;
std::vector<ParameterSpec> tensors() {
  std::vector<ParameterSpec> list = {
      {"wte.weight", {7, kDim}, 0, true},
      {"h.0.ln_1.weight", {kDim}, 0, false},
      {.name = "h.0.attn.c_attn.weight", .shape = {kDim, 3 * kDim}, .decays = true, .matrices = 3},
      {.name = "h.0.mlp.c_proj.weight", .shape = {4 * kDim, kDim}, .decays = true, .matrices = 1},
      {"lm_head.weight", {7, kDim}, 0, true}};
  std::size_t offset = 0;
  for (ParameterSpec& tensor : list) {
    tensor.offset = offset;
    offset += static_cast<std::size_t>(element_count(tensor.shape));
  }
  return list;
}
std::size_t size_of_all() {
  const ParameterSpec last = tensors().back();
  return last.offset + static_cast<std::size_t>(element_count(last.shape));
}

struct State {
  std::vector<float> p, m, v;
};
State fresh() {
  return {draw(1, 1, size_of_all()), std::vector<float>(size_of_all()), std::vector<float>(size_of_all())};
}

InnerStep step_of(std::uint64_t number, bool muon, double look_ahead = 0) {
  InnerStep step;
  step.lr = 3e-3;
  step.targets = 8;
  step.step = number;
  step.clip_norm = 0.5;
  step.look_ahead = look_ahead;
  step.look_ahead_before = number > 1 ? look_ahead : 0;
  step.muon = muon;
  return step;
}

Result<double> take(State& s, const std::vector<float>& sum, const InnerStep& step, std::span<const float> shift = {},
                    const ParallelFor& parallel = serial_for()) {
  return adamw_step(tensors(), step, {s.p, sum, s.m, s.v, shift, s.p, s.m, s.v}, parallel);
}

TEST(MuonTest, StepsTheMatricesOfLayersAndLeavesTheRestToAdamW) {
  State muon = fresh(), adamw = fresh();
  for (std::uint64_t number = 1; number <= 3; ++number) {
    const std::vector<float> sum = draw(10 + number, 1, size_of_all());
    ASSERT_TRUE(take(muon, sum, step_of(number, true, 1)).ok());
    ASSERT_TRUE(take(adamw, sum, step_of(number, false, 1)).ok());
  }
  for (const ParameterSpec& tensor : tensors()) {
    const bool matrix = tensor.name.starts_with("h.") && tensor.shape.size() == 2;
    for (std::size_t i = tensor.offset; i < tensor.offset + static_cast<std::size_t>(element_count(tensor.shape));
         ++i) {
      EXPECT_FLOAT_EQ(muon.m[i], adamw.m[i]) << tensor.name << ": the momentum is the same";
      EXPECT_EQ(muon.p[i] == adamw.p[i] && muon.v[i] == adamw.v[i], !matrix) << tensor.name << ", element " << i;
    }
  }
}

// The update of one matrix, all in double; the orthogonal part as in the product, which the first test judges.
void expect_formula(const ParameterSpec& tensor, std::size_t matrices, double look_ahead) {
  const auto rows = static_cast<std::size_t>(tensor.shape[0]), all = static_cast<std::size_t>(tensor.shape[1]);
  const std::size_t cols = all / matrices;
  State state = fresh();
  Values p(state.p.begin(), state.p.end()), m(p.size()), before(p.size());
  for (std::uint64_t t = 1; t <= 4; ++t) {
    const std::vector<float> sum = draw(10 + t, 3, p.size()), shift = draw(30 + t, 0.1, p.size());
    const InnerStep step = step_of(t, true, look_ahead);
    const Result<double> norm = take(state, sum, step, shift);
    ASSERT_TRUE(norm.ok());
    const double clip = *norm > 0.5 ? 0.5 / *norm : 1;
    for (std::size_t matrix = 0; matrix < matrices; ++matrix) {
      const auto at = [&](std::size_t i) { return tensor.offset + i / cols * all + matrix * cols + i % cols; };
      std::vector<float> update(rows * cols);
      for (std::size_t i = 0; i < update.size(); ++i) {
        const double g = sum[at(i)] / 8.0 * clip;
        m[at(i)] = 0.9 * m[at(i)] + 0.1 * g;
        update[i] = static_cast<float>(0.9 * m[at(i)] + 0.1 * g);
      }
      orthogonalise(update, rows, cols, serial_for());
      const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(rows, cols)));
      for (std::size_t i = 0; i < update.size(); ++i) {
        const double ahead = (1 + step.look_ahead) * update[i] - step.look_ahead_before * before[at(i)];
        before[at(i)] = update[i];
        p[at(i)] = (1 - step.lr * step.weight_decay) * p[at(i)] - step.lr * scale * ahead + shift[at(i)];
        ASSERT_NEAR(state.p[at(i)], p[at(i)], 2e-5) << tensor.name << " element " << i << " step " << t;
        ASSERT_NEAR(state.v[at(i)], update[i], 2e-3) << tensor.name << " element " << i << " step " << t;
      }
    }
  }
}

TEST(MuonTest, AgreesWithItsFormulaInDouble) {
  for (const double look_ahead : {0.0, 1.0}) {
    expect_formula(tensors()[2], 3, look_ahead);
    expect_formula(tensors()[3], 1, look_ahead);
  }
}

// y = x - c u, where x takes plain steps and u is its last one: the gradients here do not depend on either.
TEST(MuonTest, LookingAheadIsThePlainStepSeenFromWhereItGoes) {
  State plain = fresh(), ahead = fresh();
  std::vector<float> last;
  for (std::uint64_t number = 1; number <= 5; ++number) {
    const std::vector<float> sum = draw(10 + number, 1, size_of_all());
    InnerStep step = step_of(number, true);
    step.weight_decay = 0;
    last = plain.p;
    ASSERT_TRUE(take(plain, sum, step).ok());
    step.look_ahead = 1;
    step.look_ahead_before = number > 1 ? 1 : 0;
    ASSERT_TRUE(take(ahead, sum, step).ok());
  }
  for (const std::size_t tensor : {2u, 3u}) {
    const ParameterSpec spec = tensors()[tensor];
    for (std::size_t i = spec.offset; i < spec.offset + static_cast<std::size_t>(element_count(spec.shape)); ++i)
      EXPECT_NEAR(ahead.p[i], plain.p[i] + (plain.p[i] - last[i]), 5e-6) << spec.name << " element " << i;
  }
}

TEST(MuonTest, TheResultDoesNotDependOnHowTheWorkIsCut) {
  State one = fresh(), other = fresh();
  const ParallelFor backwards = [](std::size_t count, std::size_t, const auto& body) {
    for (std::size_t i = count; i > 0; --i) body(i - 1, i);
  };
  for (std::uint64_t number = 1; number <= 2; ++number) {
    const std::vector<float> sum = draw(10 + number, 1, size_of_all());
    ASSERT_TRUE(take(one, sum, step_of(number, true, 1)).ok());
    ASSERT_TRUE(take(other, sum, step_of(number, true, 1), {}, backwards).ok());
  }
  EXPECT_EQ(one.p, other.p);
  EXPECT_EQ(one.m, other.m);
  EXPECT_EQ(one.v, other.v);
}

TEST(MuonTest, TheProjectionsOfAttentionAreSteppedOneByOne) {
  const ParameterSpec fused = tensors()[2];
  State small = fresh(), large = fresh();
  std::vector<float> sum = draw(4, 1, size_of_all()), louder = sum;
  for (std::size_t row = 0; row < kDim; ++row)  // the first of the three alone
    for (std::size_t col = 0; col < kDim; ++col) louder[fused.offset + row * 3 * kDim + col] *= 100;
  InnerStep step = step_of(1, true);
  step.clip_norm = 0;
  ASSERT_TRUE(take(small, sum, step).ok());
  ASSERT_TRUE(take(large, louder, step).ok());
  for (std::size_t row = 0; row < kDim; ++row)
    for (std::size_t col = kDim; col < 3 * kDim; ++col) {
      const std::size_t i = fused.offset + row * 3 * kDim + col;
      EXPECT_EQ(small.p[i], large.p[i]) << "another's size is nothing to it";
    }
}

}  // namespace
}  // namespace shoal
