#pragma once
// The floating type in which a stage's layers compute. Weights, moments, sums of gradients, norms, softmax and loss are
// fp32 in both; bf16 is the matrix products and attention, as in Micikevicius et al. 2018 (arXiv 1710.03740) and
// Kalamkar et al. 2019 (arXiv 1905.12322), which need no scaling of the loss.
#include <cstdint>
#include <string_view>

namespace shoal {

enum class ComputeType : std::uint8_t { kFp32 = 0, kBf16 = 1 };
inline constexpr std::string_view kComputeNames[] = {"fp32", "bf16"};

}  // namespace shoal
