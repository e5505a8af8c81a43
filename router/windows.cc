#include "router/windows.h"

#include <algorithm>

namespace shoal {

std::uint64_t Windows::Window::targets() const {
  std::uint64_t sum = 0;
  for (const auto& [serial, entry] : entries) sum += entry.targets;
  return sum;
}

bool Windows::Window::all_settled() const {
  return std::all_of(entries.begin(), entries.end(), [](const auto& item) { return item.second.settled; });
}

std::uint64_t Windows::Window::settle_wait_ms() const {
  if (!settled_at) return 0;
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(*settled_at - closed_at).count());
}

Windows::Window* Windows::find_open(StepId step) {
  for (auto& window : windows_)
    if (window && !window->closed && window->step == step) return &*window;
  return nullptr;
}

bool Windows::has_room(StepId step) const {
  for (const auto& window : windows_)
    if (window && !window->closed && window->step == step) return true;
  if (step.value > 0) return !windows_[step.value % 2];
  return !windows_[0] || !windows_[1];
}

std::optional<WindowSlot> Windows::room(StepId step) {
  if (const Window* open = find_open(step)) return open->slot;
  if (!has_room(step)) return std::nullopt;
  std::size_t free = !windows_[0] ? 0 : 1;
  if (step.value > 0) free = step.value % 2;
  windows_[free] = Window{};
  windows_[free]->slot = static_cast<WindowSlot>(free);
  windows_[free]->step = step;
  windows_[free]->number = ++opened_;
  return windows_[free]->slot;
}

bool Windows::too_late(StepId step, std::uint64_t first_step) const {
  if (options_.delay_max == 0 || step.value > 0) return false;
  const auto due = std::count_if(std::begin(windows_), std::end(windows_), [](const auto& window) {
    return window && window->closed && window->step.value == 0;  // each makes a step before one that is open now does
  });
  return steps_ + static_cast<std::uint64_t>(due) - first_step > options_.delay_max;
}

void Windows::add(WindowSlot slot, EntrySerial serial, std::uint64_t targets, std::uint64_t first_step) {
  auto& window = windows_[index(slot)];
  SHOAL_CHECK(window.has_value());
  window->entries[serial] = {targets, first_step, stamp_, false};
  if (window->step.value == 0 && window->targets() >= options_.inner_batch) close(*window);
}

void Windows::set_stamp(EntrySerial serial, WeightStamp stamp) {
  for (auto& window : windows_)
    if (window)
      if (const auto it = window->entries.find(serial); it != window->entries.end()) it->second.stamp = stamp;
}

void Windows::settle(EntrySerial serial) {
  for (auto& window : windows_) {
    if (!window) continue;
    const auto it = window->entries.find(serial);
    if (it == window->entries.end()) continue;
    it->second.settled = true;
    note_settled(*window);
  }
}

void Windows::remove(EntrySerial serial) {
  for (auto& window : windows_) {
    if (!window || window->entries.erase(serial) == 0) continue;
    if (window->entries.empty())
      window.reset();  // nothing to step or to merge; the next entry opens it anew
    else
      note_settled(*window);
  }
}

bool Windows::alone(EntrySerial serial) const {
  return std::any_of(std::begin(windows_), std::end(windows_), [&](const auto& window) {
    return window && window->entries.size() == 1 && window->entries.contains(serial);
  });
}

void Windows::flush() {
  for (auto& window : windows_) {
    if (!window || window->step.value != 0) continue;
    if (window->entries.empty())
      window.reset();
    else
      close(*window);
  }
}

void Windows::note_round() {
  for (auto& window : windows_)
    if (window && window->step.value == 0 && !window->entries.empty() && ++window->rounds >= kRoundsOpen)
      close(*window);
}

void Windows::note_step(WindowSlot slot, WeightStamp stamp) {
  auto& window = windows_[index(slot)];
  SHOAL_CHECK(window.has_value());
  stamp_ = stamp;
  ++steps_;
  for (const auto& [serial, entry] : window->entries)
    if (stepped_.emplace(serial, entry.targets).second) stepped_targets_ += entry.targets;
  window.reset();
}

void Windows::secure(EntrySerial serial) {
  if (const auto stepped = stepped_.extract(serial)) stepped_targets_ -= stepped.mapped();
}

void Windows::pop_step(StepId step) {
  announced_.erase(step);
  if (step > step_done_) ++steps_;
  step_done_ = std::max(step_done_, step);
  for (auto& window : windows_)
    if (window && window->step == step) window.reset();
}

void Windows::close_step(StepId step) {
  announced_.insert(step);
  if (Window* window = find_open(step); window != nullptr && step.value > 0) close(*window);
}

void Windows::close(Window& window) {
  if (window.closed) return;
  window.closed = true;
  window.run_targets = run_targets_;
  window.closed_at = now_;
  note_settled(window);
}

void Windows::note_settled(Window& window) const {
  if (window.closed && !window.settled_at && window.all_settled()) window.settled_at = now_;
}

const Windows::Window* Windows::ready() const {
  const Window* oldest = nullptr;
  for (const auto& window : windows_)
    if (window && (oldest == nullptr || window->number < oldest->number)) oldest = &*window;
  if (oldest == nullptr || oldest->step.value != 0 || !oldest->closed || !oldest->all_settled()) return nullptr;
  return unsettled_at_other() == 0 ? oldest : nullptr;
}

const Windows::Window* Windows::step_window(StepId step) const {
  for (const auto& window : windows_)
    if (window && window->step == step) return &*window;
  return nullptr;
}

std::size_t Windows::unsettled_at_other() const {
  std::size_t count = 0;
  for (const auto& window : windows_) {
    if (!window) continue;
    for (const auto& [serial, entry] : window->entries) count += !entry.settled && entry.stamp != stamp_;
  }
  return count;
}

std::optional<WindowSlot> Windows::slot_of(EntrySerial serial) const {
  for (const auto& window : windows_)
    if (window && window->entries.contains(serial)) return window->slot;
  return std::nullopt;
}

const Windows::Window* Windows::at(WindowSlot slot) const {
  const auto& window = windows_[index(slot)];
  return window ? &*window : nullptr;
}

DelayHistogram Windows::delays(WindowSlot slot) const {
  DelayHistogram histogram;
  if (const Window* window = at(slot))
    for (const auto& [serial, entry] : window->entries) histogram.add(steps_ - entry.first_step, entry.targets);
  return histogram;
}

std::vector<EntrySerial> Windows::stepped() const {
  std::vector<EntrySerial> serials;
  for (const auto& [serial, targets] : stepped_) serials.push_back(serial);
  return serials;
}

}  // namespace shoal
