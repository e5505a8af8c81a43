#pragma once
// How a stage computes. The floating type of its layers: Weights, moments, sums of gradients, norms, softmax and loss
// are fp32 in both; bf16 is the matrix products and attention, as in Micikevicius et al. 2018 (arXiv 1710.03740) and
// Kalamkar et al. 2019 (arXiv 1905.12322), which need no scaling of the loss. And what of a forward waits for its
// backward: its graph; the input of each layer, whose graphs are made again one after the other; or the stage's input,
// and all of its graph is made again. At the same weights (Chen et al. 2016, arXiv 1604.06174), so that each gives the
// same bits as the others.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shoal {

enum class ComputeType : std::uint8_t { kFp32 = 0, kBf16 = 1 };
inline constexpr std::string_view kComputeNames[] = {"fp32", "bf16"};

// kAuto: as memory allows (runtime/plan/memory_fit.h); where nobody chose, it is kNone.
enum class Recompute : std::uint8_t { kNone = 0, kStage = 1, kBlock = 2, kAuto = 3 };
inline constexpr std::string_view kRecomputeNames[] = {"none", "stage", "block", "auto"};
constexpr std::string_view name_of(Recompute recompute) { return kRecomputeNames[static_cast<std::size_t>(recompute)]; }

}  // namespace shoal
