#pragma once
// Run files that name every section.
#include <array>
#include <string_view>

namespace shoal::fuzz {

inline constexpr std::array<std::string_view, 2> kRunTexts = {
    R"([run]
name = "tide.pool-1"
seed = 7
[model]
layers = 4
dim = 32
heads = 4
positions = 64
[data]
path = "text.bin"
sequences = 2
[optimizer]
lr = 0.001
look_ahead = "auto"
[pipeline]
stages = 3
layers_per_stage = [2, 1, 1]
in_flight_ramp = [0.1, 0.5]
[sync]
rule = "diloco"
inner_steps = 8
[wire]
forward = ["int8", "raw"]
backward = "int8"
[timing]
lease_s = 5
[admission]
mode = "keys"
keys = ["8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"]
[end]
steps = 10
)",
    R"(model = {layers = 2, dim = 8, heads = 2, positions = 4, vocabulary = 70000}
data = {path = 'text\n.bin', width = "u32"}
sync = {rule = "allreduce", mode = "drain", microbatches_per_step = 5}
executor = {kind = "paced", forward_ms = 2.5}
)"};

}  // namespace shoal::fuzz
