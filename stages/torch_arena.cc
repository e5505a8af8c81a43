#include "stages/torch_arena.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Device.h>

#include <array>
#include <cstring>
#include <utility>

#include "common/check.h"
#include "stages/adapters.h"

namespace shoal {

struct TorchArena::Slot {
  at::Tensor flat;    // on the device
  at::Tensor mirror;  // on the host, of a device slot only
  std::vector<at::Tensor> leaves, narrow;
  CountTag tag = 0;
};

struct TorchArena::Slots {
  c10::Device device;
  std::array<Slot, static_cast<std::size_t>(ArenaRole::kCount_)> all;
};

namespace {

// Those of the host may be asked for on a thread of which the tensor library knows no number of threads.
at::Tensor zeros(std::size_t floats, const c10::Device& device) {
  const auto count = static_cast<std::int64_t>(floats);
  if (!device.is_cpu()) return at::zeros({count}, at::TensorOptions().dtype(at::kFloat).device(device));
  at::Tensor made = at::empty({count}, at::TensorOptions().dtype(at::kFloat));
  std::memset(made.data_ptr(), 0, floats * sizeof(float));
  return made;
}

}  // namespace

TorchArena::TorchArena(const StageSpec& spec, const std::string& device)
    : size_(parameter_count(spec)), parameters_(parameters_of(spec)), slots_(new Slots{c10::Device(device), {}}) {
  on_host_ = slots_->device.is_cpu();
  if (!has_adapters(spec.model)) return;
  base_ = parameters_of(base_of(spec));
  base_size_ = parameter_count(base_of(spec));
}

TorchArena::~TorchArena() = default;

const c10::Device& TorchArena::device() const { return slots_->device; }

TorchArena::Slot& TorchArena::slot(ArenaRole role) const {
  SHOAL_CHECK(role < ArenaRole::kCount_);
  return slots_->all[static_cast<std::size_t>(role)];
}

const at::Tensor& TorchArena::flat(ArenaRole role) {
  Slot& held = slot(role);
  if (held.flat.defined()) return held.flat;
  if (!on_host_ && is_outer(role)) {
    held.flat = whole(role).to(slots_->device);
    return held.flat;
  }
  held.flat = zeros(size_of(role), slots_->device);
  if (on_host_) SHOAL_CHECK_EQ(reinterpret_cast<std::uintptr_t>(held.flat.data_ptr()) % kBufferAlignment, 0u);
  return held.flat;
}

const at::Tensor& TorchArena::whole(ArenaRole role) {
  if (on_host_ || !is_outer(role)) return flat(role);
  at::Tensor& mirror = slot(role).mirror;
  if (!mirror.defined()) mirror = zeros(size_, at::kCPU);
  return mirror;
}

std::span<float> TorchArena::span(ArenaRole role) {
  const at::Tensor& array = whole(role);
  at::Tensor& mirror = slot(role).mirror;
  if (!on_host_ && !mirror.defined()) mirror = array.cpu();
  return {static_cast<float*>((on_host_ ? array : mirror).data_ptr()), size_of(role)};
}

void TorchArena::pull(ArenaRole role) {
  if (on_host_ || is_outer(role)) return;
  span(role);
  slot(role).mirror.copy_(flat(role));
}

void TorchArena::push(ArenaRole role) {
  forget_made(role);
  if (on_host_ || is_outer(role)) return;
  span(role);
  const at::NoGradGuard no_grad;
  slot(role).flat.copy_(slot(role).mirror);
}

void TorchArena::forget_made(ArenaRole role) {
  forget_narrow(role);
  if (on_host_ || !is_outer(role)) return;
  slot(role).leaves.clear();
  slot(role).flat = at::Tensor();
}

void TorchArena::copy(ArenaRole from, ArenaRole to) {
  const at::NoGradGuard no_grad;
  const at::Tensor& source = whole(from);
  whole(to).copy_(source);
  forget_made(to);
  tag(to) = tag(from);
}

void TorchArena::move(ArenaRole from, ArenaRole to) {
  SHOAL_CHECK(is_outer(from) && is_outer(to));
  whole(from);  // an array that nobody has used yet is zeros too
  slot(to) = std::exchange(slot(from), Slot{});
}

CountTag& TorchArena::tag(ArenaRole role) { return slot(role).tag; }

void TorchArena::release(ArenaRole role) { slot(role) = Slot{}; }

void TorchArena::swap_parameters() { std::swap(slot(ArenaRole::kCurrent), slot(ArenaRole::kOther)); }

std::span<const at::Tensor> TorchArena::leaves(ArenaRole role) {
  const at::Tensor& whole = flat(role);
  Slot& held = slot(role);
  if (held.leaves.empty()) {
    const bool trained = role != ArenaRole::kBase;
    for (const ParameterSpec& parameter : trained ? parameters_ : base_) {
      const auto offset = static_cast<std::int64_t>(parameter.offset);
      at::Tensor leaf = whole.narrow(0, offset, element_count(parameter.shape)).view(parameter.shape).detach();
      held.leaves.push_back(leaf.requires_grad_(trained));
    }
  }
  return held.leaves;
}

std::span<const at::Tensor> TorchArena::narrow_leaves(ArenaRole role) {
  const std::span<const at::Tensor> wide = leaves(role);
  Slot& held = slot(role);
  if (held.narrow.empty()) {
    const at::AutoGradMode with_gradients(true);  // whoever asks first: a pass that keeps a graph may be the next
    const std::vector<ParameterSpec>& specs = role == ArenaRole::kBase ? base_ : parameters_;
    std::vector<at::Tensor> copies;  // all or none: memory may end in the middle
    for (std::size_t i = 0; i < wide.size(); ++i)
      copies.push_back(specs[i].is_factor() ? wide[i].to(at::kBFloat16) : wide[i]);
    held.narrow = std::move(copies);
  }
  return held.narrow;
}

void TorchArena::forget_narrow(ArenaRole role) { slot(role).narrow.clear(); }

std::uint64_t TorchArena::outside_references(ArenaRole role) const {
  const Slot& held = slot(role);
  if (!held.flat.defined()) return 0;
  // Ours: the flat tensor and one view a leaf, each leaf held once by the list.
  const std::size_t ours = 1 + held.leaves.size();
  std::uint64_t outside = held.flat.storage().use_count() - ours + (held.flat.use_count() - 1);
  for (const at::Tensor& leaf : held.leaves) outside += leaf.use_count() - 1;
  return outside;
}

}  // namespace shoal
