#pragma once
// Which device to compute on. libtorch's CUDA half is opened at run time, so that one program serves machines with and
// without a GPU. Thread: any, but choose_device before the first tensor on a GPU.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"

namespace shoal {

// `wish`: "auto" (the first GPU when everything for it is there, else the CPU), "cpu", "cuda" or "cuda:N".
// Returns the tensor library's name of the device: "cpu" or "cuda:N".
// ERRORS: kInput (not such a text), kUnsupported (no driver, no CUDA half of libtorch, no such GPU; the message says
// which).
Result<std::string> choose_device(const std::string& wish);

// What the arrays of the tensor library took at most on a GPU since the call before, which begins anew; 0 on the CPU.
std::uint64_t take_device_peak(const std::string& device);

// Bytes that this process may come to on a GPU: what is free there, and what its tensor library has of it. The first
// call makes a context, in seconds. None: the CPU, or the driver does not say.
std::optional<std::uint64_t> device_memory_left(const std::string& device);

// Gives back what the tensor library and malloc keep of freed memory for later, on `device`. Thread: the one that used
// the device.
void free_device_caches(const std::string& device);

// (name, value) pairs for people: library version, CPU capability, GPUs or why there is none.
std::vector<std::pair<std::string, std::string>> device_facts();

}  // namespace shoal
