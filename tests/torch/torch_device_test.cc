#include "stages/torch_device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "stages/torch_executor.h"
#include "tests/stages/chain.h"

namespace shoal {
namespace {

bool driver_present() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr; }
bool gpu_usable() { return choose_device("cuda").ok(); }

TEST(TorchDeviceTest, RefusesTextsThatNameNoDevice) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "CPU"}) {
    EXPECT_EQ(choose_device(text).code(), ErrorCode::kInput) << text;
  }
}

TEST(TorchDeviceTest, AutoTakesWhatIsThere) {
  EXPECT_EQ(*choose_device("cpu"), "cpu");
  EXPECT_EQ(*choose_device("auto"), gpu_usable() ? "cuda:0" : "cpu");
}

TEST(TorchDeviceTest, WithoutADriverAGpuIsRefusedWithItsReason) {
  if (driver_present()) GTEST_SKIP() << "this machine has an NVIDIA driver";
  const Result<std::string> device = choose_device("cuda:0");
  EXPECT_EQ(device.code(), ErrorCode::kUnsupported);
  EXPECT_NE(device.error().message.find("driver"), std::string::npos) << device.error().message;
  const StageSpec spec = split_model(contract_model(), 1)->front();
  EXPECT_EQ(make_torch_executor(spec, "cuda", 1).code(), ErrorCode::kUnsupported);
}

TEST(TorchDeviceTest, AGpuBeyondTheLastIsRefused) {
  if (!gpu_usable()) GTEST_SKIP() << choose_device("cuda").error().message;
  EXPECT_EQ(choose_device("cuda:999").code(), ErrorCode::kUnsupported);
}

TEST(TorchDeviceTest, RefusesImpossibleThreads) {
  EXPECT_EQ(make_torch_executor(split_model(contract_model(), 1)->front(), "cpu", 0).code(), ErrorCode::kInput);
}

TEST(TorchDeviceTest, AModelBeyondMemoryIsRefusedNotFatal) {
  ModelSpec model = contract_model();
  model.dim = 1 << 20;
  model.layers = 64;
  const auto executor = make_torch_executor(split_model(model, 1)->front(), "cpu", 1);
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.code(), ErrorCode::kTooLarge) << executor.error().message;
}

TEST(TorchDeviceTest, FactsNameTheLibrary) {
  const auto facts = device_facts();
  ASSERT_FALSE(facts.empty());
  EXPECT_EQ(facts[0].first, "libtorch");
  EXPECT_EQ(facts[0].second.substr(0, 2), "2.");
  for (const auto& [name, value] : facts) EXPECT_FALSE(value.empty()) << name;
}

// Passes, an undo and a step on a GPU, where there is one, by kernels and by tensors.
TEST(TorchGpuTest, AStepOnTheGpuEqualsTheOneOnTheCpu) {
  if (!gpu_usable()) GTEST_SKIP() << choose_device("cuda").error().message;
  const auto maker = [](const char* device, StepPath path) {
    return ExecutorMaker{device,
                         [=](const StageSpec& spec) {
                           return std::move(*make_torch_executor(spec, {.device = device, .step_path = path}));
                         },
                         1e-4};
  };
  Chain host(maker("cpu", StepPath::kBest), contract_model(), 3),
      gpu(maker("cuda", StepPath::kBest), contract_model(), 3),
      tensors(maker("cuda", StepPath::kTensors), contract_model(), 3);
  for (Chain* chain : {&host, &gpu, &tensors}) {
    for (const std::uint64_t serial : {1, 2, 3}) chain->count(serial, kA);
    for (std::size_t k = 0; k < chain->size(); ++k) {
      ASSERT_TRUE(*chain->at(k).undo(2));
      ASSERT_TRUE(chain->at(k).inner_step(kA, contract_step()).ok());
    }
  }
  for (std::size_t k = 0; k < host.size(); ++k) {
    for (Chain* chain : {&gpu, &tensors}) {
      expect_near(chain->read(k, ArenaRole::kCurrent), host.read(k, ArenaRole::kCurrent), 1e-4);
      expect_near(chain->read(k, ArenaRole::kMoment1), host.read(k, ArenaRole::kMoment1), 1e-4);
    }
  }
}

}  // namespace
}  // namespace shoal
