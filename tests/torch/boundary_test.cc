// A narrow boundary in the product's executor: cut or not, made again or kept, undone: the same bits; derivatives; and
// no place sees a token behind it.
#include "stages/torch_boundary.h"
#include "tests/stages/boundary_model.h"
#include "tests/torch/differences.h"
#include "tests/torch/family_models.h"
#include "tests/torch/torch_maker.h"

namespace shoal {
namespace {

constexpr std::int64_t kSequences = 2, kT = 5, kD = 8;

ExecutorMaker maker_of(Recompute recompute = Recompute::kNone, ComputeType compute = ComputeType::kFp32) {
  return {"", [=](const StageSpec& spec) -> std::unique_ptr<StageExecutor> {
            return std::move(*make_torch_executor(spec, {.device = "cpu", .compute = compute, .recompute = recompute}));
          }};
}

// Of all stages, one behind the other.
std::vector<float> joined(Chain& chain, ArenaRole role) {
  std::vector<float> all;
  for (std::size_t k = 0; k < chain.size(); ++k) {
    const std::vector<float> part = chain.read(k, role);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class BoundaryTest : public ::testing::TestWithParam<std::tuple<FamilyModel, std::uint32_t>> {
 protected:
  const FamilyModel& family = std::get<0>(GetParam());
  // Tables of no, half and full width.
  std::uint32_t table_of(const ModelSpec& model) const { return std::get<1>(GetParam()) * model.dim / 2; }
  ModelSpec narrow(const ModelSpec& plain) const {
    const ModelSpec model = family.of(plain);
    return with_boundary(model, 3, table_of(model));
  }
  // Of the contract, four layers.
  const ModelSpec model = narrow(four_layer_model());
  // For differences in double.
  const ModelSpec small = narrow({.layers = 3, .dim = kD, .heads = 2, .positions = kT, .vocabulary = kIds});
  const at::TensorOptions doubles = at::TensorOptions().dtype(at::kDouble);
  TokenPlaces places_of(std::int64_t first, std::int64_t count) const {
    return layers_of(small.family).places(small, first, count, doubles);
  }
};

TEST_P(BoundaryTest, CutIntoStagesItComputesTheSameBits) {
  Chain whole(maker_of(), model, 1);
  whole.count(1, kA);
  const std::vector<float> expected = joined(whole, ArenaRole::kAccumulatorA);
  const double loss = whole.forward(2);
  for (const std::uint16_t stages : {2, 3, 4}) {
    Chain split(maker_of(), model, stages);
    split.count(1, kA);
    EXPECT_EQ(split.activations.back().shape, (Shape{2, 8, 3}));
    EXPECT_EQ(joined(split, ArenaRole::kAccumulatorA), expected) << stages;
    EXPECT_EQ(split.forward(2), loss);
  }
}

TEST_P(BoundaryTest, MadeAgainOrKeptItComputesTheSameBits) {
  for (const ComputeType compute : {ComputeType::kFp32, ComputeType::kBf16}) {
    for (const std::uint16_t stages : {1, 4}) {
      Chain kept(maker_of(Recompute::kNone, compute), model, stages);
      kept.count(1, kA);
      for (const Recompute recompute : {Recompute::kBlock, Recompute::kStage}) {
        Chain again(maker_of(recompute, compute), model, stages);
        again.count(1, kA);
        EXPECT_EQ(joined(again, ArenaRole::kAccumulatorA), joined(kept, ArenaRole::kAccumulatorA)) << stages;
      }
    }
  }
}

TEST_P(BoundaryTest, AnUndoneMicrobatchLeavesZeros) {
  Chain chain(maker_of(), model, 3);
  chain.count(1, kA);
  const std::vector<float> counted = joined(chain, ArenaRole::kAccumulatorA);
  for (std::size_t k = 0; k < chain.size(); ++k) EXPECT_TRUE(*chain.at(k).undo(1));
  EXPECT_EQ(joined(chain, ArenaRole::kAccumulatorA), std::vector<float>(counted.size(), 0.0f));
  EXPECT_NE(counted, std::vector<float>(counted.size(), 0.0f));
}

// A table that read the next token would tell the stages behind what they are to guess.
TEST_P(BoundaryTest, NoPlaceSeesATokenBehindIt) {
  Chain chain(maker_of(), model, 4);
  chain.forward(1);
  const HostTensor tokens = contract_tokens(1);
  const std::size_t columns = model.positions + 1;
  const auto made_of = [&](EntrySerial serial, const HostTensor& of) {
    const HostTensor made =
        pass_forward(chain.at(2), {serial, microbatch(serial), of}, chain.activations[2])->activation;
    return std::vector<float>(made.f32().begin(), made.f32().end());
  };
  const std::vector<float> before = made_of(2, tokens);
  for (std::size_t place = 1; place < columns; ++place) {
    Buffer changed(tokens.bytes.size());
    std::memcpy(changed.data(), tokens.bytes.data(), changed.size());
    changed.data()[place] = static_cast<std::uint8_t>((changed.data()[place] + 1) % model.vocabulary);
    const std::vector<float> after = made_of(2 + place, make_host_tensor(DType::kU8, tokens.shape, std::move(changed)));
    const auto until = static_cast<std::ptrdiff_t>(place * model.boundary);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + until, after.begin())) << place;
    EXPECT_EQ(before == after, model.boundary_table == 0 || place + 1 == columns) << "it sees the token at " << place;
  }
}

TEST_P(BoundaryTest, DerivativesAreThoseOfDifferences) {
  Rng rng(1);
  const at::Tensor ids = draw_tokens(rng, {kSequences, kT}), z = draw(rng, {kSequences, kT, 3}, 0, 1);
  const std::vector<at::Tensor> weights = draw_part(rng, small, 2);  // both halves
  std::vector<at::Tensor> inputs{z};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const TokenPlaces places = places_of(0, kT);
  const auto loss_of = [&](const std::vector<Weight>& read) {
    return weighed(run_part(small, 2, z, ids, places, read, nullptr));
  };
  expect_gradients(inputs, [&] { return loss_of(plain_weights(weights)); });
  // Those that are made late are the same, but for float's bits.
  const std::vector<at::Tensor> wanted = torch::autograd::grad({loss_of(plain_weights(weights))}, inputs);
  LateGradients late;
  std::vector<Weight> noted = plain_weights(weights);
  for (std::size_t i = 0; i < noted.size(); ++i) {
    noted[i].late = &late;
    noted[i].place = i;
  }
  const at::Tensor loss = loss_of(noted);
  std::vector<at::Tensor> made(weights.size());
  std::size_t tables = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) tables += late.has(i) && weights[i].size(0) == kIds ? 1 : 0;
  EXPECT_EQ(tables, small.boundary_table > 0 ? 1u : 0u);
  const std::vector<at::Tensor> of_z = late.pass_back(loss, at::empty({}, doubles).fill_(1), std::vector{z});
  late.make(made);
  EXPECT_LT(of_z[0].sub(wanted[0]).abs().max().item<double>(), 1e-12);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!made[i].defined()) continue;
    EXPECT_LT(made[i].sub(wanted[1 + i]).abs().max().item<double>(),
              1e-6 * (1 + wanted[1 + i].abs().max().item<double>()))
        << i;
  }
}

TEST_P(BoundaryTest, PlaceByPlaceATextHasTheOutputsOfThePass) {
  Rng rng(2);
  const at::NoGradGuard no_grad;
  const at::Tensor ids = draw_tokens(rng, {1, kT}), z = draw(rng, {1, kT, 3}, 0, 1);
  const std::vector<at::Tensor> weights = draw_part(rng, small, 2);
  const at::Tensor whole = run_part(small, 2, z, ids, places_of(0, kT), plain_weights(weights), nullptr);
  for (const std::vector<std::int64_t>& pieces : {std::vector<std::int64_t>{2, 1, 2}, {1, 1, 1, 1, 1}}) {
    LayerCache cache;
    std::int64_t first = 0;
    for (const std::int64_t count : pieces) {
      const at::Tensor out = run_part(small, 2, z.narrow(1, first, count), ids.narrow(1, first, count),
                                      places_of(first, count), plain_weights(weights), &cache);
      EXPECT_LT(out.sub(whole.narrow(1, first, count)).abs().max().item<double>(), 1e-12);
      first += count;
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<FamilyModel, std::uint32_t>>& info) {
  constexpr const char* kTables[] = {"_no_table", "_half_table", "_full_table"};
  return std::get<0>(info.param).name + kTables[std::get<1>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Families, BoundaryTest,
                         ::testing::Combine(::testing::ValuesIn(family_models()), ::testing::Values(0, 1, 2)), name_of);

TEST(BoundaryArenaTest, ProductsReadBf16AndTablesAreNeverReadAsBf16) {
  const StageSpec spec = split_model(with_boundary(four_layer_model(), 3, 8), 4)->at(1);
  TorchArena arena(spec, "cpu");
  const std::vector<ParameterSpec> parameters = parameters_of(spec);
  const std::span<const at::Tensor> read = arena.narrow_leaves(ArenaRole::kCurrent);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    if (!name.starts_with("boundary.")) continue;
    const bool table = name.ends_with(".table") || name.ends_with(".places");
    EXPECT_EQ(read[i].scalar_type(), table ? at::kFloat : at::kBFloat16) << name;
  }
}

TEST(BoundaryTrainingTest, ANarrowModelLearnsOneText) {
  Chain chain(maker_of(), with_boundary(four_layer_model(), 3, 8), 4);
  EXPECT_LT(chain.train(30), 0.5);
}

}  // namespace
}  // namespace shoal
