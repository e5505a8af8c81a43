#pragma once
// The layers of the model as functions over tensors: differentiable, without state, any device and floating type.
// Shapes: B sequences, T positions, d dim, H heads, V vocabulary. Linear weights are (in, out), as GPT-2 stores them.
// Thread: any; exceptions of the tensor library pass through (torch_executor.cc stops them).
#include <cstdint>
#include <span>
#include <vector>

namespace at {
class Tensor;
}

namespace shoal {

inline constexpr std::size_t kTensorsPerLayer = 12;

// (B, T) int64 tokens, (V, d), (T, d) -> (B, T, d).
at::Tensor embed(const at::Tensor& tokens, const at::Tensor& token_table, const at::Tensor& position_table);

// One pre-norm decoder layer, (B, T, d) -> (B, T, d):  x += attention(norm(x));  x += mlp(norm(x)).
// `weights` in the order of parameters_of(): ln_1 w b, c_attn w b, c_proj w b, ln_2 w b, c_fc w b, c_proj w b.
at::Tensor decoder_layer(const at::Tensor& x, std::span<const at::Tensor> weights, std::int64_t heads);

// Final norm and head: (B, T, d), (d), (d), (V, d) -> logits (B * T, V).
at::Tensor head_logits(const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                       const at::Tensor& head);

// Cross entropy of each target in nats: logits (N, V), targets (N) int64 -> (N). Not reduced, so that the sum can be
// taken in double.
at::Tensor target_losses(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace shoal
