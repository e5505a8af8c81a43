#pragma once
// Computes one stage: forward, backward, undo, inner step. Knows entries, windows and stamps; knows nothing of peers or
// messages. Activations and gradients cross its border through the coder of each pass (stages/frame_coder.h), so that
// nobody outside knows where they lie. Implementations: stages/torch_executor.h (product), stages/integer_executor.h
// (exact integers, for proofs), stages/paced_executor.h (integers with a settable duration and real frame sizes). All
// pass tests/stages/executor_contract.h.
//
// Thread: one thread at a time (the peer's device thread), but for arrays of its arena that a round has for itself
// (sync/outer_rule.h); every call computes and returns. Owns its arena and whatever entries keep.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/ids.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "stages/arena.h"
#include "stages/frame_coder.h"
#include "stages/inner_step.h"
#include "stages/kept_tensor.h"
#include "stages/stage_spec.h"
#include "stages/text_stage.h"

namespace shoal {

struct ForwardInput {
  EntrySerial entry = 0;
  MicrobatchId microbatch;
  HostTensor tokens;  // (B, T + 1) ids (holds_ids): inputs are columns [0, T), targets columns [1, T]
};

struct ForwardOutput {
  double loss_sum = 0;        // last stage: sum over targets of the cross entropy, nats
  std::uint64_t targets = 0;  // B * T
  WeightStamp stamp = 0;
};

// What a microbatch is computed from at a stage, as an entry keeps it.
struct StageInput {
  MicrobatchId microbatch;
  HostTensor tokens;      // as ForwardInput's
  KeptTensor activation;  // (B, T, d) kF32, finite; undefined on the first stage
};

// Whatever a backward needs from a forward. Its destructor frees everything that reads the parameters.
struct StageGraph {
  virtual ~StageGraph() = default;
};

// A pass that was computed once more.
struct ReplayedPass {
  ForwardOutput output;
  KeptTensor activation;              // as the forward made it; undefined on the last stage
  KeptTensor input_gradient;          // as the backward made it; undefined on the first stage
  std::unique_ptr<StageGraph> graph;  // whose gradients of the weights are not made
  bool exact = false;                 // at the weights that were asked for: else they are gone, and the current ones
};

struct BackwardOutput {
  WeightStamp stamp = 0;    // weights the gradient was made at
  bool recomputed = false;  // forward ran again: the kept graph was gone, or the weights of the forward are
};

struct InnerStepResult {
  double gradient_norm = 0;  // before clipping
  WeightStamp stamp = 0;     // the new current stamp
  std::uint64_t graphs_dropped = 0;
};

class StageExecutor {
 public:
  virtual ~StageExecutor() = default;
  virtual const StageSpec& spec() const = 0;
  virtual Arena& arena() = 0;
  virtual WeightStamp stamp() const = 0;

  // Decodes the activation (B, T, d) kF32 (none on the first stage), computes, encodes the activation for the next
  // stage (none on the last one). Keeps input and graph under `entry`. ERRORS: kMalformed (tokens of another shape or
  // dtype than the spec's, token id >= V), kNonFinite (input or output, by microbatch and role), kTooLarge (device
  // memory), the coder's. On error nothing is kept.
  virtual Result<ForwardOutput> forward(const ForwardInput& input, FrameCoder& coder) = 0;

  // Forward only, at the anchor; keeps nothing.
  virtual Result<ForwardOutput> evaluate(const ForwardInput& input, FrameCoder& coder) = 0;

  // A text at the anchor, for as long as it stands.
  virtual std::unique_ptr<TextStage> begin_text() = 0;

  // A backward is two calls, so that what another stage waits for is there before the larger half of the work. Both run
  // forward again at the current stamp when graph and weights are gone. ERRORS of both: kNonFinite (microbatch, role),
  // kGone (no entry), kTooLarge (device memory): nothing was added, nor is what was encoded to be sent.
  //
  // The first decodes the gradient of the stage's output (B, T, d) kF32 (none on the last stage), and makes and encodes
  // that of its input: d(sum of losses)/d(input activation), (B, T, d) (none on the first stage). ERRORS: the coder's,
  // too.
  virtual Status backward_input(EntrySerial entry, FrameCoder& coder) = 0;
  // The second makes the gradients of the weights, one scratch gradient, and adds it, screened, and the microbatch's
  // tag to the window. Keeps both inputs as tensors, so that undo can repeat it. Without a window nothing is made, and
  // the entry is forgotten: its gradient came too late here, what it hands on may still be of use. REQUIRES: the first.
  // Where this one fails, the first may come again.
  virtual Result<BackwardOutput> backward_weights(EntrySerial entry, std::optional<WindowSlot> window) = 0;

  // Forward and backward once more, from the same inputs and at the weights of that stamp. `gradient`: of the output,
  // (B, T, d) kF32, finite; undefined on the last stage. Nothing is kept, added or coded. ERRORS: kNonFinite,
  // kTooLarge.
  virtual Result<ReplayedPass> replay(const StageInput& input, const KeptTensor& gradient, WeightStamp stamp) = 0;

  // Takes a counted entry out of its window: its replay's gradient, with the sign flipped; then forgets the entry.
  // REQUIRES: counted, not settled. Returns whether the replay was exact.
  virtual Result<bool> undo(EntrySerial entry) = 0;

  // A counted entry became final: its graph, input and gradient are freed; what it added stays.
  virtual void settle(EntrySerial entry) = 0;
  // Forgets an entry that was never counted.
  virtual void drop(EntrySerial entry) = 0;

  // How many counted, unsettled entries were made at the buffer that the next write would overwrite. Writes wait until
  // it is 0.
  virtual std::uint64_t unsettled_at_other() const = 0;

  // kOther := AdamW(kCurrent, window's accumulator) (+ the pending shift, if any), then flip(); the accumulator and its
  // tag are zeroed, the tag goes to the parameters. Moments are updated in place. REQUIRES: unsettled_at_other() == 0.
  // ERRORS: kNonFinite (the sum overflowed: the window is zeroed, parameters unchanged).
  virtual Result<InnerStepResult> inner_step(WindowSlot window, const InnerStep& step) = 0;

  // For rules that write kOther themselves: begin_write, write, then flip (or nothing: an abandoned write leaves kOther
  // as garbage that nobody reads). begin_write drops the graphs made at kOther and returns how many; REQUIRES:
  // unsettled_at_other() == 0.
  virtual std::uint64_t begin_write() = 0;
  // Makes kOther the current parameters: stamp + 1. REQUIRES: begin_write() since the last flip.
  virtual InnerStepResult flip() = 0;

  // A round's result: kCandidateShift, the new anchor less the snapshot, becomes kShift, which is added to the
  // parameters together with the next write. Adds up when one is pending. Tags likewise.
  virtual void set_shift() = 0;
  virtual bool shift_pending() const = 0;
  // Writes kOther = kCurrent + shift and flips. REQUIRES: unsettled_at_other() == 0 and shift_pending().
  virtual InnerStepResult apply_shift() = 0;

  // Zeroes a window whose entries were all undone or that is abandoned with its session; its tag too.
  virtual void clear_window(WindowSlot window) = 0;
};

// How the program makes an executor; cli/ decides on which library and device.
using ExecutorFactory = std::function<Result<std::unique_ptr<StageExecutor>>(const StageSpec& spec)>;

}  // namespace shoal
