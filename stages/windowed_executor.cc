#include "stages/windowed_executor.h"

#include <cmath>
#include <utility>

#include "common/check.h"
#include "common/memory_guard.h"
#include "common/uncleared_memory.h"

namespace shoal {

ArenaRole accumulator_of(WindowSlot window) {
  return window == WindowSlot::kA ? ArenaRole::kAccumulatorA : ArenaRole::kAccumulatorB;
}

Result<KeptSpace> WindowedExecutor::take_space(const Shape& shape) {
  UnclearedMemory memory(static_cast<std::size_t>(element_count(shape)) * sizeof(float));
  const MutableByteView bytes = memory.view();
  return KeptSpace{bytes, HostTensor{DType::kF32, shape, std::move(memory).freeze()}};
}

Result<KeptTensor> WindowedExecutor::decode(FrameCoder& coder, const StageInput& input, std::string_view role) {
  SHOAL_ASSIGN(KeptSpace memory, take_space({sequences_of(input), spec_.model.positions, spec_.model.wire_width()}));
  SHOAL_ASSIGN(const double size, coder.decode(memory.space()));
  if (!std::isfinite(size)) {
    SHOAL_ASSIGN(const HostTensor here, fetched(memory.tensor.view()));
    SHOAL_TRY(check_finite(here.f32(), input.microbatch, role));
  }
  return std::move(memory.tensor);
}

Result<StageInput> WindowedExecutor::take_input(const ForwardInput& input, FrameCoder& coder) {
  SHOAL_TRY(check_tokens(spec_, input));
  StageInput taken{input.microbatch, input.tokens, {}};
  if (spec_.is_first()) return taken;
  SHOAL_ASSIGN(taken.activation, decode(coder, taken, "input activation"));
  return taken;
}

Result<ForwardOutput> WindowedExecutor::forward(const ForwardInput& input, FrameCoder& coder) {
  return guard_memory("a forward", [&]() -> Result<ForwardOutput> {
    SHOAL_CHECK(!entries_.contains(input.entry));
    SHOAL_ASSIGN(StageInput taken, take_input(input, coder));
    SHOAL_ASSIGN(Computed computed, compute(taken, ArenaRole::kCurrent, keeps_graphs_));
    if (!spec_.is_last()) SHOAL_TRY(coder.encode(computed.activation.view()));
    computed.output.stamp = stamp_;
    Entry& entry = entries_[input.entry];
    entry.input = std::move(taken);
    entry.graph = std::move(computed.graph);
    entry.stamp = stamp_;
    return computed.output;
  });
}

Result<ForwardOutput> WindowedExecutor::evaluate(const ForwardInput& input, FrameCoder& coder) {
  return guard_memory("an evaluation", [&]() -> Result<ForwardOutput> {
    SHOAL_ASSIGN(const StageInput taken, take_input(input, coder));
    SHOAL_ASSIGN(Computed computed, compute(taken, ArenaRole::kAnchor, false));
    if (!spec_.is_last()) SHOAL_TRY(coder.encode(computed.activation.view()));
    computed.output.stamp = stamp_;
    return computed.output;
  });
}

template <class Pass>
auto WindowedExecutor::with_memory(const char* name, EntrySerial serial, const Pass& pass)
    -> decltype(pass(std::declval<Entry&>())) {
  const auto found = entries_.find(serial);
  if (found == entries_.end())
    return make_error(ErrorCode::kGone, std::string(name) + ": no entry " + std::to_string(serial));
  const auto guarded = [&] { return guard_memory(name, [&] { return pass(found->second); }); };
  auto result = guarded();
  return !result.ok() && result.error().code == ErrorCode::kTooLarge && drop_graphs() > 0 ? guarded()
                                                                                          : std::move(result);
}

Status WindowedExecutor::backward_input(EntrySerial serial, FrameCoder& coder) {
  return with_memory("a backward", serial, [&](Entry& entry) -> Status {
    SHOAL_CHECK(!entry.counted());
    if (std::exchange(entry.phase, Phase::kWaiting) == Phase::kHandedOn) entry.graph.reset();  // it is half consumed
    KeptTensor gradient;
    if (!spec_.is_last()) {
      SHOAL_ASSIGN(gradient, decode(coder, entry.input, "output gradient"));
    }
    SHOAL_ASSIGN(const KeptTensor made, differentiate_input(entry, gradient));
    entry.gradient = std::move(gradient);
    Status encoded;
    if (!spec_.is_first()) encoded = coder.encode(made.view());
    if (encoded.ok())
      entry.phase = Phase::kHandedOn;
    else
      entry.graph.reset();
    return encoded;
  });
}

Result<BackwardOutput> WindowedExecutor::backward_weights(EntrySerial serial, std::optional<WindowSlot> window) {
  const auto count = [&](Entry& entry) -> Status {
    SHOAL_CHECK(entry.phase == Phase::kHandedOn);
    const ArenaRole accumulator = accumulator_of(*window);
    if (!entry.graph) SHOAL_TRY(differentiate_input(entry, entry.gradient));  // dropped since
    const std::unique_ptr<Graph> graph = std::move(entry.graph);
    SHOAL_TRY(differentiate_weights(*graph, entry.input, accumulator, 1.0f));
    swappable_arena().tag(accumulator) += count_tag(entry.input.microbatch);
    entry.phase = Phase::kCounted;
    entry.window = *window;
    return {};
  };
  if (window) SHOAL_TRY(with_memory("a backward", serial, count));
  const auto found = entries_.find(serial);
  SHOAL_CHECK(found != entries_.end());
  const BackwardOutput output{found->second.stamp, found->second.recomputed};
  if (!window) entries_.erase(found);
  return output;
}

Result<bool> WindowedExecutor::undo(EntrySerial serial) {
  const auto take_out = [&](Entry& entry) -> Result<bool> {
    SHOAL_CHECK(entry.counted());
    const ArenaRole accumulator = accumulator_of(entry.window);
    SHOAL_ASSIGN(const ReplayedPass again, replay(entry.input, entry.gradient, entry.stamp));
    SHOAL_TRY(differentiate_weights(*again.graph, entry.input, accumulator, -1.0f));
    swappable_arena().tag(accumulator) -= count_tag(entry.input.microbatch);
    return again.exact;
  };
  SHOAL_ASSIGN(const bool exact, with_memory("an undo", serial, take_out));
  entries_.erase(serial);
  return exact;
}

std::uint64_t WindowedExecutor::drop_graphs() {
  std::uint64_t dropped = 0;
  for (auto& [serial, entry] : entries_)
    if (std::exchange(entry.graph, nullptr)) ++dropped;
  return dropped;
}

Result<ReplayedPass> WindowedExecutor::replay(const StageInput& input, const KeptTensor& gradient, WeightStamp stamp) {
  const std::optional<ArenaRole> weights = weights_at(stamp);
  SHOAL_ASSIGN(Computed computed, compute(input, weights.value_or(ArenaRole::kCurrent), true));
  SHOAL_ASSIGN(KeptTensor made, differentiate_input(*computed.graph, input, gradient));
  computed.output.stamp = weights ? stamp : stamp_;
  return ReplayedPass{computed.output, std::move(computed.activation), std::move(made), std::move(computed.graph),
                      weights.has_value()};
}

Result<KeptTensor> WindowedExecutor::differentiate_input(Entry& entry, const KeptTensor& gradient) {
  if (std::unique_ptr<Graph> graph = std::move(entry.graph)) {
    SHOAL_ASSIGN(KeptTensor made, differentiate_input(*graph, entry.input, gradient));
    entry.graph = std::move(graph);
    return made;
  }
  SHOAL_ASSIGN(ReplayedPass again, replay(entry.input, gradient, entry.stamp));
  entry.graph = std::move(again.graph);
  entry.recomputed = keeps_graphs_ || !again.exact;
  entry.stamp = again.output.stamp;
  return std::move(again.input_gradient);
}

void WindowedExecutor::settle(EntrySerial serial) {
  const auto found = entries_.find(serial);
  SHOAL_CHECK(found != entries_.end());
  SHOAL_CHECK(found->second.counted());
  entries_.erase(found);
}

void WindowedExecutor::drop(EntrySerial serial) {
  const auto found = entries_.find(serial);
  if (found == entries_.end()) return;  // a forward that failed kept nothing
  SHOAL_CHECK(!found->second.counted());
  entries_.erase(found);
}

std::uint64_t WindowedExecutor::unsettled_at_other() const {
  std::uint64_t count = 0;
  for (const auto& [serial, entry] : entries_) count += entry.counted() && entry.stamp < stamp_ ? 1 : 0;
  return count;
}

std::uint64_t WindowedExecutor::graph_count() const {
  std::uint64_t count = 0;
  for (const auto& [serial, entry] : entries_) count += entry.graph ? 1 : 0;
  return count;
}

Result<InnerStepResult> WindowedExecutor::inner_step(WindowSlot window, const InnerStep& step) {
  const ArenaRole accumulator = accumulator_of(window);
  const Result<double> norm = window_norm(accumulator, step);
  if (!norm.ok()) {
    clear_window(window);
    return norm.error();
  }
  const std::uint64_t dropped = begin_write();
  write_step(accumulator, step, *norm, shift());
  SwappableArena& arena = swappable_arena();
  arena.tag(ArenaRole::kOther) = arena.tag(ArenaRole::kCurrent) + arena.tag(accumulator) + take_shift();
  clear_window(window);
  return swap_and_count(*norm, dropped);
}

InnerStepResult WindowedExecutor::flip() {
  SHOAL_CHECK(writing_);
  return swap_and_count(0, 0);
}

InnerStepResult WindowedExecutor::apply_shift() {
  SHOAL_CHECK(shift_pending_);
  const std::uint64_t dropped = begin_write();
  write_shift(shift());
  SwappableArena& arena = swappable_arena();
  arena.tag(ArenaRole::kOther) = arena.tag(ArenaRole::kCurrent) + take_shift();
  return swap_and_count(0, dropped);
}

void WindowedExecutor::set_shift() {
  SwappableArena& arena = swappable_arena();
  if (shift_pending_) add_role(arena, ArenaRole::kShift, ArenaRole::kCandidateShift);
  arena.move(ArenaRole::kCandidateShift, ArenaRole::kShift);
  shift_pending_ = true;
}

std::span<const float> WindowedExecutor::shift() {
  return shift_pending_ ? swappable_arena().span(ArenaRole::kShift) : std::span<const float>();
}

CountTag WindowedExecutor::take_shift() {
  const CountTag tag = shift_pending_ ? swappable_arena().tag(ArenaRole::kShift) : 0;
  if (std::exchange(shift_pending_, false)) swappable_arena().release(ArenaRole::kShift);
  return tag;
}

void WindowedExecutor::clear_window(WindowSlot window) {
  zero(accumulator_of(window));
  swappable_arena().tag(accumulator_of(window)) = 0;
}

std::uint64_t WindowedExecutor::begin_write() {
  std::uint64_t dropped = 0;
  for (auto& [serial, entry] : entries_) {
    if (!entry.graph || entry.stamp == stamp_) continue;
    entry.graph.reset();
    ++dropped;
  }
  about_to_overwrite();
  writing_ = true;
  return dropped;
}

std::optional<ArenaRole> WindowedExecutor::weights_at(WeightStamp stamp) const {
  if (stamp == stamp_) return ArenaRole::kCurrent;
  if (stamp + 1 == stamp_ && !writing_) return ArenaRole::kOther;
  return std::nullopt;
}

InnerStepResult WindowedExecutor::swap_and_count(double norm, std::uint64_t graphs_dropped) {
  swappable_arena().swap_parameters();
  ++stamp_;
  writing_ = false;
  return {norm, stamp_, graphs_dropped};
}

}  // namespace shoal
