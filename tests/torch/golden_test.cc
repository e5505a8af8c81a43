// The model against plain PyTorch: golden_FAMILY.txt is written by make_golden.py beside it, which also states the
// formula of the weights.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "stages/torch_boundary.h"
#include "stages/torch_executor.h"
#include "stages/torch_family.h"
#include "tests/stages/boundary_model.h"
#include "tests/stages/host_passes.h"
#include "tests/torch/family_models.h"

namespace shoal {
namespace {

constexpr std::int64_t kB = 2, kT = 16, kD = 32, kV = 29;
constexpr double kBound = 1e-5;

struct Golden {
  double loss = 0;
  std::vector<double> logits;
  std::map<std::string, double> gradient_norms, stepped_norms;
  std::vector<std::pair<double, double>> steps;  // loss, norm before clipping
};

Golden read_golden(const std::string& family) {
  Golden golden;
  std::ifstream in(SHOAL_SOURCE_DIR "/tests/torch/golden_" + family + ".txt");
  std::string kind, name;
  std::size_t index = 0;
  double value = 0, second = 0;
  while (in >> kind) {
    if (kind == "loss") {
      in >> golden.loss;
    } else if (kind == "logit") {
      in >> index >> value;
      EXPECT_EQ(index, golden.logits.size());
      golden.logits.push_back(value);
    } else if (kind == "step") {
      in >> index >> value >> second;
      golden.steps.emplace_back(value, second);
    } else {
      in >> name >> value;
      (kind == "gradient_norm" ? golden.gradient_norms : golden.stepped_norms)[name] = value;
    }
  }
  return golden;
}

class GoldenTest : public ::testing::TestWithParam<FamilyModel> {
 protected:
  GoldenTest() {
    spec =
        split_model(GetParam().of({.layers = 2, .dim = kD, .heads = 4, .positions = kT, .vocabulary = kV}), 1)->front();
    parameters = parameters_of(spec);
    TorchOptions options;
    options.device = "cpu";
    executor = std::move(*make_torch_executor(spec, options));
    const std::span<float> weights = executor->arena().span(ArenaRole::kCurrent);
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const ParameterSpec& parameter = parameters[k];
      const bool norm_weight = !parameter.decays && parameter.name.ends_with(".weight");
      for (std::int64_t i = 0; i < element_count(parameter.shape); ++i) {
        const double wave = std::sin(0.11 * static_cast<double>((i + 1) * (i + 1)) + 1.7 * static_cast<double>(k + 1));
        const double value = parameter.shape.size() == 2 ? 0.3 * wave : norm_weight ? 1 + 0.05 * wave : 0.05 * wave;
        weights[parameter.offset + static_cast<std::size_t>(i)] = static_cast<float>(value);
      }
    }
    Buffer buffer(kB * (kT + 1));
    for (std::int64_t b = 0; b < kB; ++b) {
      for (std::int64_t t = 0; t <= kT; ++t) {
        buffer.data()[b * (kT + 1) + t] = static_cast<std::uint8_t>((7 * t + 11 * b + 3 * t * t) % kV);
      }
    }
    tokens = make_host_tensor(DType::kU8, {kB, kT + 1}, std::move(buffer));
  }
  double norm_of_tensor(ArenaRole role, const ParameterSpec& parameter) {
    return norm_of(executor->arena().span(role).subspan(parameter.offset,
                                                        static_cast<std::size_t>(element_count(parameter.shape))));
  }

  StageSpec spec;
  std::vector<ParameterSpec> parameters;
  std::unique_ptr<TorchExecutor> executor;
  HostTensor tokens;
  Golden golden = read_golden(GetParam().name);
};

TEST_P(GoldenTest, LossAndGradientNorms) {
  const Result<Forwarded> out = pass_forward(*executor, {1, {1, 1}, tokens});
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR(out->loss_sum, golden.loss, kBound * golden.loss);
  ASSERT_TRUE(pass_backward(*executor, 1, {}, WindowSlot::kA).ok());
  ASSERT_EQ(golden.gradient_norms.size(), parameters.size());
  for (const ParameterSpec& parameter : parameters) {
    const double expected = golden.gradient_norms.at(parameter.name);
    EXPECT_NEAR(norm_of_tensor(ArenaRole::kAccumulatorA, parameter), expected, kBound * expected) << parameter.name;
  }
}

TEST_P(GoldenTest, Logits) {
  const at::NoGradGuard no_grad;
  auto& arena = dynamic_cast<TorchArena&>(executor->arena());
  std::vector<std::int64_t> inputs;
  for (std::int64_t b = 0; b < kB; ++b) {
    for (std::int64_t t = 0; t < kT; ++t) inputs.push_back(tokens.bytes.data()[b * (kT + 1) + t]);
  }
  const at::Tensor columns = at::from_blob(inputs.data(), {kB, kT}, at::TensorOptions().dtype(at::kLong));
  const TorchFamily& family = layers_of(spec.model.family);
  const StageWeights weights(spec, ComputeType::kFp32);
  const auto part = [&](std::uint32_t number) { return weights.of_part(arena, ArenaRole::kCurrent, number); };
  const TokenPlaces places = family.places(spec.model, 0, kT, at::TensorOptions().dtype(at::kFloat));
  at::Tensor x = columns;
  for (std::uint32_t number = 0; number < 3; ++number)
    x = run_part(spec.model, number, x, columns, places, part(number), nullptr);
  const at::Tensor logits = family.final_norm(spec.model, x, part(3)).matmul((*part(3).back()).t()).contiguous();
  ASSERT_EQ(static_cast<std::size_t>(logits.numel()), golden.logits.size());
  ASSERT_EQ(golden.logits.size(), static_cast<std::size_t>(kB * kT * kV));
  for (std::size_t i = 0; i < golden.logits.size(); ++i) {
    const double value = static_cast<const float*>(logits.const_data_ptr())[i];
    EXPECT_NEAR(value, golden.logits[i], kBound * (1 + std::abs(golden.logits[i]))) << i;
  }
}

TEST_P(GoldenTest, ThreeClippedOptimiserSteps) {
  ASSERT_EQ(golden.steps.size(), 3u);
  InnerStep step;
  step.lr = 0.01;
  step.eps = 1e-3;
  step.targets = kB * kT;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    const auto& [loss, norm] = golden.steps[number - 1];
    const Result<Forwarded> out = pass_forward(*executor, {number, {1, number}, tokens});
    ASSERT_TRUE(out.ok());
    EXPECT_NEAR(out->loss_sum, loss, 3 * kBound * loss) << "step " << number;
    ASSERT_TRUE(pass_backward(*executor, number, {}, WindowSlot::kA).ok());
    executor->settle(number);
    step.step = number;
    const Result<InnerStepResult> result = executor->inner_step(WindowSlot::kA, step);
    ASSERT_TRUE(result.ok());
    EXPECT_NEAR(result->gradient_norm, norm, 3 * kBound * norm) << "step " << number;
  }
  for (const ParameterSpec& parameter : parameters) {
    const double expected = golden.stepped_norms.at(parameter.name);
    EXPECT_NEAR(norm_of_tensor(ArenaRole::kCurrent, parameter), expected, kBound * expected) << parameter.name;
  }
}

FamilyModel bounded(const FamilyModel& model, std::uint32_t table) {
  return {model.name + "_boundary", [change = model.change, table](ModelSpec& spec) {
            change(spec);
            spec = with_boundary(spec, 8, table);
          }};
}

std::vector<FamilyModel> golden_models() {
  std::vector<FamilyModel> models = family_models();
  const FamilyModel gpt2 = models[0], llama = models[1];
  models.push_back(bounded(gpt2, kD / 2));
  models.push_back(bounded(llama, kD));
  return models;
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenTest, ::testing::ValuesIn(golden_models()), FamilyModel::name_of);

}  // namespace
}  // namespace shoal
