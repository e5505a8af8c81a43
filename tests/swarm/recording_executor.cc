#include "tests/swarm/recording_executor.h"

#include "stages/windowed_executor.h"
#include "tests/stages/host_passes.h"

namespace shoal {

void GradientRecord::add(std::uint64_t step, StageId stage, StepPart part) {
  const std::lock_guard lock(mutex_);
  parts_[{step, stage}].push_back(std::move(part));
}

std::vector<StepPart> GradientRecord::parts(std::uint64_t step, StageId stage) const {
  const std::lock_guard lock(mutex_);
  const auto found = parts_.find({step, stage});
  return found == parts_.end() ? std::vector<StepPart>{} : found->second;
}

namespace {

class RecordingExecutor final : public StageExecutor {
 public:
  RecordingExecutor(std::unique_ptr<StageExecutor> inner, GradientRecord& record, ForwardHooks hooks, Changes changes)
      : inner_(std::move(inner)), record_(record), hooks_(std::move(hooks)), changes_(std::move(changes)) {}

  const StageSpec& spec() const override { return inner_->spec(); }
  Arena& arena() override { return inner_->arena(); }
  WeightStamp stamp() const override { return inner_->stamp(); }
  Result<ForwardOutput> forward(const ForwardInput& input, FrameCoder& coder) override {
    if (hooks_.before) hooks_.before();
    ChangingCoder changing(coder, changes_.handed_on);
    auto output = inner_->forward(input, changing);
    if (hooks_.after) hooks_.after();
    return output;
  }
  std::unique_ptr<TextStage> begin_text() override { return inner_->begin_text(); }
  Result<ForwardOutput> evaluate(const ForwardInput& input, FrameCoder& coder) override {
    return inner_->evaluate(input, coder);
  }
  Status backward_input(EntrySerial entry, FrameCoder& coder) override {
    ChangingCoder changing(coder, changes_.handed_on);
    return inner_->backward_input(entry, changing);
  }
  Result<BackwardOutput> backward_weights(EntrySerial entry, std::optional<WindowSlot> window) override {
    auto output = inner_->backward_weights(entry, window);
    if (output.ok() && window) {
      ++entries_[index(*window)];
      window_of_[entry] = *window;
      if (changes_.gathered) change(accumulator_of(*window));
    }
    return output;
  }
  Result<ReplayedPass> replay(const StageInput& input, const KeptTensor& gradient, WeightStamp stamp) override {
    return inner_->replay(input, gradient, stamp);
  }
  Result<bool> undo(EntrySerial entry) override {
    auto exact = inner_->undo(entry);
    if (exact.ok()) --entries_[index(window_of_.at(entry))];
    return exact;
  }
  void settle(EntrySerial entry) override { inner_->settle(entry); }
  void drop(EntrySerial entry) override { inner_->drop(entry); }
  std::uint64_t unsettled_at_other() const override { return inner_->unsettled_at_other(); }
  Result<InnerStepResult> inner_step(WindowSlot window, const InnerStep& step) override {
    return inner_->inner_step(window, step);
  }
  std::uint64_t begin_write() override { return inner_->begin_write(); }
  InnerStepResult flip() override {
    StepPart part;
    for (const WindowSlot slot : {WindowSlot::kA, WindowSlot::kB}) add(slot, part);
    record_.add(inner_->stamp() + 1, spec().stage, std::move(part));
    return inner_->flip();
  }
  void set_shift() override { inner_->set_shift(); }
  bool shift_pending() const override { return inner_->shift_pending(); }
  InnerStepResult apply_shift() override { return inner_->apply_shift(); }
  void clear_window(WindowSlot window) override {
    entries_[index(window)] = 0;
    inner_->clear_window(window);
  }

 private:
  static std::size_t index(WindowSlot slot) { return static_cast<std::size_t>(slot); }
  void change(ArenaRole role) {
    arena().pull(role);
    changes_.gathered(arena().span(role));
    arena().push(role);
  }

  // Mode drain: at a step's end the other window is empty.
  void add(WindowSlot slot, StepPart& part) {
    if (entries_[index(slot)] == 0) return;
    const ArenaRole role = accumulator_of(slot);
    arena().pull(role);
    const std::span<const float> sum = arena().span(role);
    part.entries += entries_[index(slot)];
    part.tag += arena().tag(role);
    part.gradient.assign(sum.begin(), sum.end());
  }

  std::unique_ptr<StageExecutor> inner_;
  GradientRecord& record_;
  ForwardHooks hooks_;
  Changes changes_;
  std::uint64_t entries_[2] = {0, 0};
  std::map<EntrySerial, WindowSlot> window_of_;
};

}  // namespace

std::unique_ptr<StageExecutor> make_recording_executor(std::unique_ptr<StageExecutor> inner, GradientRecord& record,
                                                       ForwardHooks hooks, Changes changes) {
  return std::make_unique<RecordingExecutor>(std::move(inner), record, std::move(hooks), std::move(changes));
}

}  // namespace shoal
