#pragma once
// What "auto" stands for where the value belongs into the manifest: peak learning rate, warm-up, the batches and the
// size of a microbatch (microbatch_size.h), of which a given [data] validation_samples then counts as many as hold its
// number of the usual ones. They are worked out once, when RUN.toml is read, from the model, the length of the schedule
// and the expected replicas, and are plain numbers afterwards. Pure; thread-safe.
//
// Batch of a step of all replicas, in targets of a run of D: 0.58 D^0.571 (Step Law, Li et al. 2025, arXiv:2503.04715),
// rounded to whole microbatches, at least one a replica: 1546 of 1e6, 80,000 of 1e9. No D is known: 8192 a replica.
//
// Peak rate for N parameters of the layers: 6e-4 (85e6 / N)^(1/4), within 1e-5 and 4e-3: 6e-4 is GPT-3's and nanoGPT's
// for the 124 M model, and the power lies between what GPT-3's table (Brown et al. 2020, 2.1) and Llama's rates fall
// by. A model that was trained already ([model] from) takes a fifth of it; adapters take all of their base's.
//
// Warm-up: 2 / (1 - beta2) steps, as long as Adam's second moment needs (Ma and Yarats 2021, arXiv:1910.04209), at
// least a fiftieth of the run and at most a tenth; without a schedule those steps.
//
// A narrow boundary (stages/boundary.h): cuts in front of the layers at which the stages of the plain model meet, and
// its usual_boundary_table().
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "runtime/config/config.h"

namespace shoal {

// Text tokens of a sequence at most, where the model of a folder has more places and nobody says how many.
inline constexpr std::uint32_t kPositionsOfFolder = 1024;

// What such an option has until derive_options() has been there; out of bounds for one that is given.
template <class Number>
inline constexpr Number kAuto = std::numeric_limits<Number>::max();

inline constexpr std::uint64_t kInnerStepsWanted = 300;  // fewer learn visibly less from the same tokens

// Replaces what is at "auto" and leaves the rest. A model that cannot be split gets any rate: check_config refuses it.
void derive_options(RunConfig& config);

CodecId codec_of(PayloadCodec payload);
// What a member's part of a round travels as: [sync] payload, or raw where every gradient or whole numbers go.
CodecId payload_codec(const RunConfig& config);

// Inner steps of one replica to the end of the run, each of the size that it has behind a warm start; 0: there is no
// end.
std::uint64_t inner_steps_of_run(const RunConfig& config);

// "1536 targets a step of all replicas, 3 sequences a microbatch, 651 steps, peak rate 0.0027, warm-up of 61440
// tokens".
std::string training_line(const RunConfig& config);
// What is said of a run with fewer than kInnerStepsWanted steps.
std::optional<std::string> few_steps_warning(const RunConfig& config);

}  // namespace shoal
