#pragma once
// What every executor shares: entries, stamps, the two parameter buffers, windows, tags and the pending shift. An
// implementation adds arithmetic only (the protected hooks), so the exact executor of the proofs and the product's keep
// the books with the same code.
//
// Life of an entry:   forward -> waiting --backward_input--> handed on --backward_weights--> counted --settle-->
// forgotten
//                                   \--drop--> forgotten         \--drop, or without a window--> forgotten
//                                                                        counted --undo--> forgotten, out of its window
// A graph belongs to an entry that is not counted and to the stamp it was made at. It is dropped before the buffer it
// reads is overwritten; where graphs are not kept it is made for the backward, at the same weights while they stand.
// Where memory ends in a backward or an undo, the kept ones are dropped for it, which is tried once more. Parameters
// start as zeros: the caller writes kCurrent and kAnchor (initialise() or fetched state) and calls push().
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stages/compute.h"
#include "stages/executor.h"
#include "stages/host_arena.h"

namespace shoal {

class WindowedExecutor : public StageExecutor {
 public:
  const StageSpec& spec() const override { return spec_; }
  WeightStamp stamp() const override { return stamp_; }
  Result<ForwardOutput> forward(const ForwardInput& input, FrameCoder& coder) override;
  Result<ForwardOutput> evaluate(const ForwardInput& input, FrameCoder& coder) override;
  Status backward_input(EntrySerial entry, FrameCoder& coder) override;
  Result<BackwardOutput> backward_weights(EntrySerial entry, std::optional<WindowSlot> window) override;
  Result<ReplayedPass> replay(const StageInput& input, const KeptTensor& gradient, WeightStamp stamp) override;
  Result<bool> undo(EntrySerial entry) override;
  void settle(EntrySerial entry) override;
  void drop(EntrySerial entry) override;
  std::uint64_t unsettled_at_other() const override;
  Result<InnerStepResult> inner_step(WindowSlot window, const InnerStep& step) override;
  std::uint64_t begin_write() override;
  InnerStepResult flip() override;
  void set_shift() override;
  bool shift_pending() const override { return shift_pending_; }
  InnerStepResult apply_shift() override;
  void clear_window(WindowSlot window) override;

  // For tests and metrics.
  std::size_t entry_count() const { return entries_.size(); }
  std::uint64_t graph_count() const;

 protected:
  // `recompute`: kStage, and an entry keeps no graph. On the last stage its backward follows at once, so that it keeps
  // one. What kBlock leaves of a graph is the implementation's own matter.
  explicit WindowedExecutor(const StageSpec& spec, Recompute recompute = Recompute::kNone)
      : spec_(spec), keeps_graphs_(recompute != Recompute::kStage || spec.is_last()) {}

  using Graph = StageGraph;
  struct Computed {
    ForwardOutput output;
    KeptTensor activation;         // (B, T, d) kF32, finite; undefined on the last stage
    std::unique_ptr<Graph> graph;  // null unless asked for
  };

  virtual SwappableArena& swappable_arena() = 0;
  // Memory where the implementation computes, for what comes in. ERRORS: kTooLarge.
  virtual Result<KeptSpace> take_space(const Shape& shape);
  // Forward at the parameters of `weights` (kCurrent, kOther or kAnchor).
  // ERRORS: kNonFinite, kTooLarge, kMalformed (the content is not what this stage expects).
  virtual Result<Computed> compute(const StageInput& input, ArenaRole weights, bool keep_graph) = 0;
  // The gradient of the input, (B, T, d) kF32, finite; undefined on the first stage. `gradient`: that of the output,
  // likewise; undefined on the last stage.
  virtual Result<KeptTensor> differentiate_input(Graph& graph, const StageInput& input, const KeptTensor& gradient) = 0;
  // The other half, after that one: screens the parameters' gradients and adds sign times them to the accumulator. On
  // error, or when it throws, nothing was added. Consumes the graph.
  virtual Status differentiate_weights(Graph& graph, const StageInput& input, ArenaRole accumulator, float sign) = 0;
  // Norm of the window's mean gradient; writes nothing. ERRORS: kNonFinite.
  virtual Result<double> window_norm(ArenaRole accumulator, const InnerStep& step) = 0;
  // kOther := step from kCurrent, + shift unless empty; moments in place.
  virtual void write_step(ArenaRole accumulator, const InnerStep& step, double norm, std::span<const float> shift) = 0;
  // kOther := kCurrent + shift.
  virtual void write_shift(std::span<const float> shift) = 0;
  virtual void zero(ArenaRole role) = 0;
  // Called when the graphs that read kOther are gone and kOther is about to be written.
  virtual void about_to_overwrite() {}

 private:
  enum class Phase : std::uint8_t { kWaiting, kHandedOn, kCounted };
  struct Entry {
    StageInput input;
    KeptTensor gradient;           // of its output, from backward_input on
    std::unique_ptr<Graph> graph;  // of one that is not counted, while its buffer stands
    WeightStamp stamp = 0;         // of the graph, then of the gradient
    WindowSlot window = WindowSlot::kA;
    Phase phase = Phase::kWaiting;
    bool recomputed = false;
    bool counted() const { return phase == Phase::kCounted; }
  };

  // A pass of this entry that may run again: where memory ends the graphs are dropped for it.
  template <class Pass>
  auto with_memory(const char* name, EntrySerial entry, const Pass& pass) -> decltype(pass(std::declval<Entry&>()));
  // The gradient of the input, from the entry's graph or one made anew, which is left to the second half.
  Result<KeptTensor> differentiate_input(Entry& entry, const KeptTensor& gradient);
  // Those of all waiting entries, whose backwards make them again.
  std::uint64_t drop_graphs();
  Result<StageInput> take_input(const ForwardInput& input, FrameCoder& coder);
  // (B, T, d). `role` names it where a value is not finite.
  Result<KeptTensor> decode(FrameCoder& coder, const StageInput& input, std::string_view role);
  // The buffer whose weights have this stamp; none: they were overwritten.
  std::optional<ArenaRole> weights_at(WeightStamp stamp) const;
  InnerStepResult swap_and_count(double norm, std::uint64_t graphs_dropped);
  std::span<const float> shift();  // empty: none
  CountTag take_shift();           // it is written: its tag, which the parameters have now

  StageSpec spec_;
  bool keeps_graphs_;
  std::unordered_map<EntrySerial, Entry> entries_;
  WeightStamp stamp_ = 0;
  bool writing_ = false;  // between begin_write and the flip: kOther is being overwritten
  bool shift_pending_ = false;
};

ArenaRole accumulator_of(WindowSlot window);

// Shape, dtype and range, as executor.h says. ERRORS: kMalformed.
Status check_tokens(const StageSpec& spec, const ForwardInput& input);
// Names the microbatch, the role and the first offending element.
Status check_finite(std::span<const float> values, const MicrobatchId& microbatch, std::string_view role);

// As TextStage::extend says, of a text that has seen `places`. ERRORS: kMalformed.
Status check_text(const StageSpec& spec, const HostTensor& tokens, std::uint64_t places);

// B. REQUIRES: the tokens passed check_tokens.
std::int64_t sequences_of(const StageInput& input);

}  // namespace shoal
