#pragma once
// What CUDA devices this process can use. Any error of the CUDA runtime means "no GPU", with its text kept for people.
// Thread-safe.   Cost: the first call may take a second where a driver is present; it makes no CUDA context.
#include <cstdint>
#include <string>
#include <vector>

namespace shoal {

struct CudaDevice {
  std::string name;                // "NVIDIA H100 80GB HBM3"
  std::uint64_t memory_bytes = 0;  // in all, not what is free
  int capability_major = 0;
  int capability_minor = 0;
};

struct CudaReport {
  std::vector<CudaDevice> devices;
  std::string reason;  // why there are none; empty when there is one
  bool usable() const { return !devices.empty(); }
};

CudaReport probe_cuda();

// For people: that this build has CUDA kernels, or what does their work on a GPU in one that has none.
std::string cuda_kernels_text();

}  // namespace shoal
