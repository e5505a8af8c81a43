#include "stages/torch_device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>
#include <malloc.h>
#include <torch/headeronly/version.h>

#include <charconv>
#include <filesystem>
#include <mutex>

namespace shoal {
namespace {

struct CudaState {
  std::string reason;  // why there is none; empty when it can be used
  int devices = 0;
};

// The folder that this process took libtorch_cpu from.
std::string library_folder() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &found) == 0 || found.dli_fname == nullptr) return "";
  return std::filesystem::path(found.dli_fname).parent_path().string();
}

CudaState open_cuda() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return {"no NVIDIA driver (libcuda.so.1 does not load)", 0};
  const std::string path = library_folder() + "/libtorch_cuda.so";
  // Never closed: it registers itself with libtorch. The tensor library asks for its hooks once, so this comes before
  // any question.
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    const char* reason = dlerror();
    return {std::string("libtorch's CUDA half does not load: ") + (reason != nullptr ? reason : path) +
                ". HINT: scripts/setup --cuda fetches what it needs",
            0};
  }
  try {
    const int devices = at::detail::getCUDAHooks().hasCUDA() ? at::detail::getCUDAHooks().getNumGPUs() : 0;
    if (devices > 0) return {"", devices};
  } catch (const std::exception& error) {
    return {std::string("the CUDA driver answers: ") + error.what(), 0};
  }
  return {"a driver is there, but it shows no GPU", 0};
}

const CudaState& cuda_state() {
  static const CudaState state = open_cuda();
  return state;
}

}  // namespace

Result<std::string> choose_device(const std::string& wish) {
  if (wish == "cpu") return std::string("cpu");
  if (wish == "auto") return std::string(cuda_state().reason.empty() ? "cuda:0" : "cpu");
  int index = 0;
  if (wish != "cuda") {
    const std::string_view number = wish.starts_with("cuda:") ? std::string_view(wish).substr(5) : std::string_view();
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (number.empty() || error != std::errc() || end != number.data() + number.size() || index < 0) {
      return make_error(ErrorCode::kInput, "device \"" + wish + "\" is not auto, cpu or cuda:N");
    }
  }
  const CudaState& cuda = cuda_state();
  if (!cuda.reason.empty()) return make_error(ErrorCode::kUnsupported, "device " + wish + ": " + cuda.reason);
  if (index >= cuda.devices) {
    return make_error(ErrorCode::kUnsupported,
                      "device " + wish + ": this machine has " + std::to_string(cuda.devices) + " GPU(s)");
  }
  return "cuda:" + std::to_string(index);
}

std::uint64_t take_device_peak(const std::string& device) {
  const c10::Device asked(device);
  if (asked.is_cpu()) return 0;
  at::globalContext().lazyInitDevice(asked.type());  // an allocator that nobody has begun has no figures, and throws
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(asked.type());
  const auto kinds = allocator->getDeviceStats(asked.index()).allocated_bytes;
  allocator->resetPeakStats(asked.index());
  return static_cast<std::uint64_t>(kinds[0].peak);  // of all pools together
}

std::optional<std::uint64_t> device_memory_left(const std::string& device) {
  const c10::Device asked(device);
  if (asked.is_cpu()) return std::nullopt;
  try {
    at::globalContext().lazyInitDevice(asked.type());
    c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(asked.type());
    const auto reserved = allocator->getDeviceStats(asked.index()).reserved_bytes;
    return allocator->getMemoryInfo(asked.index()).first + static_cast<std::uint64_t>(reserved[0].current);
  } catch (const std::exception&) {
    return std::nullopt;  // a tensor library that does not tell, or a device that failed
  }
}

void free_device_caches(const std::string& device) {
  try {
    if (device != "cpu" && cuda_state().reason.empty()) c10::getDeviceAllocator(c10::DeviceType::CUDA)->emptyCache();
  } catch (const std::exception&) {
    // A device that failed has nothing to give back.
  }
  ::malloc_trim(0);
}

std::vector<std::pair<std::string, std::string>> device_facts() {
  std::vector<std::pair<std::string, std::string>> facts;
  facts.emplace_back("libtorch", TORCH_VERSION);
  facts.emplace_back("libtorch folder", library_folder());
  facts.emplace_back("CPU capability", at::get_cpu_capability());
  const CudaState& cuda = cuda_state();
  facts.emplace_back("GPUs", cuda.reason.empty() ? std::to_string(cuda.devices) : "none: " + cuda.reason);
  return facts;
}

}  // namespace shoal
