// A backward in two halves beside one pass back of the tensor library over the same layers: the same bits, and no
// matrix's gradient is made before that of the stage's input is handed on.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <set>
#include <tuple>

#include "stages/adapters.h"
#include "stages/chunked_loss.h"
#include "stages/torch_family.h"
#include "stages/torch_tensors.h"
#include "tests/torch/family_models.h"
#include "tests/torch/torch_maker.h"

namespace shoal {
namespace {

struct Way {
  ComputeType compute = ComputeType::kFp32;
  Recompute recompute = Recompute::kNone;
  std::uint32_t lora_rank = 0;
};

ExecutorMaker maker_of(const Way& way) {
  return {"", [way](const StageSpec& base) -> std::unique_ptr<StageExecutor> {
            StageSpec spec = base;
            spec.model.lora_rank = way.lora_rank;
            auto executor =
                *make_torch_executor(spec, {.device = "cpu", .compute = way.compute, .recompute = way.recompute});
            if (way.lora_rank > 0) {
              initialise(base, executor->arena().span(ArenaRole::kBase));
              executor->arena().push(ArenaRole::kBase);
            }
            return executor;
          }};
}

at::Tensor columns(const HostTensor& tokens, std::int64_t first) {
  return ids_of(tokens).narrow(1, first, tokens.shape[1] - 1).contiguous();
}

struct Gradients {
  std::vector<float> weights;  // in arena order
  HostTensor input;            // undefined on the first stage
};

// All from one call of the tensor library.
Gradients at_once(Chain& chain, std::size_t k, const Way& way, const HostTensor& tokens) {
  const StageSpec& spec = chain.at(k).spec();
  const ModelSpec& model = spec.model;
  TorchArena& arena = arena_of(chain, k);
  const StageWeights weights(spec, way.compute);
  const TorchFamily& family = layers_of(model.family);
  const auto part = [&](std::uint32_t number) { return weights.of_part(arena, ArenaRole::kCurrent, number); };
  const TokenPlaces places = family.places(model, 0, model.positions, arena.flat(ArenaRole::kCurrent).options());
  const at::AutoGradMode on(true);
  std::vector<at::Tensor> wanted(arena.leaves(ArenaRole::kCurrent).begin(), arena.leaves(ArenaRole::kCurrent).end());
  at::Tensor x;
  if (spec.is_first()) {
    x = columns(tokens, 0);
  } else {
    x = on_device(chain.activations[k], arena.device()).requires_grad_(true);
    wanted.push_back(x);
  }
  for (std::uint32_t number = first_part(spec); number < 1 + spec.end_layer; ++number)
    x = family.module(model, number)(model, x, places, part(number), nullptr);
  at::Tensor losses, seed;
  if (spec.is_last()) {
    const auto head = part(1 + model.layers);
    x = chunked_cross_entropy(family.final_norm(model, x, head), head.back(), columns(tokens, 1).view({-1}),
                              loss_rows(model), losses);
    seed = at::ones_like(x);
  } else {
    seed = on_device(chain.gradients[k], arena.device());
  }
  const std::vector<at::Tensor> made = torch::autograd::grad({x}, wanted, {seed});
  Gradients out;
  for (std::size_t i = 0; i < arena.leaves(ArenaRole::kCurrent).size(); ++i) {
    const at::Tensor flat = made[i].contiguous();
    const std::span<const float> values = floats_of(flat);
    out.weights.insert(out.weights.end(), values.begin(), values.end());
  }
  if (!spec.is_first()) out.input = host_tensor_of(made.back());
  return out;
}

// Notes while it lives which of these shapes a product has that the tensor library makes.
class ProductWatch {
 public:
  explicit ProductWatch(std::set<Shape> shapes) : before_(std::exchange(watch_, this)), shapes_(std::move(shapes)) {
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(nullptr, [](const at::RecordFunction& function, at::ObserverContext*) {
          const std::string_view name = function.name();
          if (name != "aten::mm" && name != "aten::addmm") return;
          for (const c10::IValue& value : function.outputs()) watch_->note(value.toTensor().sizes());
        }).needsOutputs(true));
  }
  ~ProductWatch() {
    at::removeCallback(handle_);
    watch_ = before_;
  }
  std::size_t products = 0, seen = 0;  // in all, and of these shapes

 private:
  void note(at::IntArrayRef sizes) {
    ++products;
    if (shapes_.contains(Shape(sizes.begin(), sizes.end()))) ++seen;
  }
  static inline thread_local ProductWatch* watch_ = nullptr;
  ProductWatch* before_;
  std::set<Shape> shapes_;
  at::CallbackHandle handle_ = 0;
};

// The matrices of the stage's layers, both ways round; with Recompute::kBlock those of the first alone.
std::pair<std::set<Shape>, std::size_t> matrices_of(const StageSpec& spec, bool first_layer_alone) {
  std::set<Shape> shapes;
  std::size_t count = 0;
  for (const ParameterSpec& parameter : parameters_of(spec)) {
    const std::uint32_t last = first_layer_alone ? spec.first_layer : spec.end_layer - 1;
    if (parameter.shape.size() != 2 || parameter.part < 1 + spec.first_layer || parameter.part > 1 + last) continue;
    shapes.insert(parameter.shape);
    shapes.insert({parameter.shape[1], parameter.shape[0]});
    ++count;
  }
  return {shapes, count};
}

class SplitBackwardTest
    : public testing::TestWithParam<std::tuple<FamilyModel, ComputeType, Recompute, std::uint32_t>> {
 protected:
  Way way{std::get<1>(GetParam()), std::get<2>(GetParam()), std::get<3>(GetParam())};
  ModelSpec model = [this] {
    ModelSpec model = four_layer_model();
    model.dim = 24;  // so that no product of the 16 rows has a matrix's shape
    model = std::get<0>(GetParam()).of(model);
    model.inner = 40;
    return model;
  }();
};

TEST_P(SplitBackwardTest, GivesTheBitsOfOnePassAtEveryStage) {
  Chain chain(maker_of(way), model, 2);
  for (const std::uint64_t step : {1, 2}) {  // with adapters the first one's gradients are zeros for half of them
    chain.forward(step);
    const std::vector<Backwarded> made = chain.backward(step, kA);
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const Gradients expected = at_once(chain, k, way, contract_tokens(step));
      EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorA), expected.weights) << "stage " << k;
      const HostTensor& input = made[chain.size() - 1 - k].gradient;
      ASSERT_EQ(input.defined(), expected.input.defined());
      EXPECT_TRUE(!input.defined() || std::ranges::equal(input.f32(), expected.input.f32())) << "stage " << k;
      chain.at(k).settle(step);
      ASSERT_TRUE(chain.at(k).inner_step(kA, contract_step()).ok());
    }
  }
}

// Behind a step that a graph waited through, and one that moved the parameters by a round's shift.
TEST_P(SplitBackwardTest, GivesTheSameBitsBehindAStepThatLooksAheadAndAShift) {
  Chain chain(maker_of(way), model, 2), still(maker_of(way), model, 2);
  for (Chain* each : {&chain, &still}) {
    each->count(1, kA);
    for (std::size_t k = 0; k < each->size(); ++k) {
      StageExecutor& stage = each->at(k);
      stage.settle(1);
      InnerStep step = contract_step();
      step.look_ahead = 1;
      ASSERT_TRUE(stage.inner_step(kA, step).ok());
      subtract_roles(stage.arena(), ArenaRole::kCurrent, ArenaRole::kAnchor, ArenaRole::kCandidateShift);
      stage.set_shift();
    }
    each->forward(2);
    if (each == &still) each->backward(2, kB);
    for (std::size_t k = 0; k < each->size(); ++k) {
      if (each == &still) each->at(k).settle(2);
      each->at(k).apply_shift();
    }
  }
  for (const Backwarded& out : chain.backward(2, kB)) EXPECT_FALSE(out.recomputed) << "its weights still stand";
  for (std::size_t k = 0; k < chain.size(); ++k)
    EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorB), still.read(k, ArenaRole::kAccumulatorB));
}

TEST_P(SplitBackwardTest, HandsTheInputsGradientOnBeforeAMatrixsGradientIsMade) {
  Chain chain(maker_of(way), model, 2);
  chain.forward(1);
  chain.backward(1, kA);
  const std::size_t k = 1;
  const StageSpec& spec = chain.at(k).spec();
  const auto [shapes, count] = matrices_of(spec, way.recompute == Recompute::kBlock);
  ASSERT_TRUE(pass_forward(chain.at(k), {2, microbatch(1), contract_tokens(1)}, chain.activations[k]).ok());
  HostCoder coder;
  const std::vector<float> before = chain.read(k, ArenaRole::kAccumulatorA);
  {
    ProductWatch watch(shapes);
    ASSERT_TRUE(chain.at(k).backward_input(2, coder).ok());
    ASSERT_TRUE(coder.output().defined());
    EXPECT_GT(watch.products, 0u);
    EXPECT_EQ(watch.seen, way.recompute == Recompute::kBlock ? count : 0u) << "by block: the second layer's alone";
  }
  EXPECT_EQ(chain.read(k, ArenaRole::kAccumulatorA), before);
  ProductWatch watch(shapes);
  ASSERT_TRUE(chain.at(k).backward_weights(2, kA).ok());
  EXPECT_EQ(watch.seen, count) << "each is made now, once";
}

std::string name_of_way(const testing::TestParamInfo<SplitBackwardTest::ParamType>& info) {
  return std::get<0>(info.param).name + "_" +
         std::string(kComputeNames[static_cast<std::size_t>(std::get<1>(info.param))]) + "_" +
         std::string(name_of(std::get<2>(info.param))) + (std::get<3>(info.param) > 0 ? "_adapters" : "");
}
INSTANTIATE_TEST_SUITE_P(All, SplitBackwardTest,
                         testing::Combine(testing::ValuesIn(family_models()),
                                          testing::Values(ComputeType::kFp32, ComputeType::kBf16),
                                          testing::Values(Recompute::kNone, Recompute::kStage, Recompute::kBlock),
                                          testing::Values(0u, 2u)),
                         name_of_way);

}  // namespace
}  // namespace shoal
