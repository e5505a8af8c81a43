#pragma once
// The flat arrays of a stage as tensors on any device, and the parameter tensors that autograd sees as views of them.
// On the CPU span() is the tensor itself; on another device it is a host mirror (pull() and push() copy). Of outer
// roles the host's array is the one that counts, and a device has a copy of it from the first pass that asks for one to
// the next push(), copy() or move() onto the role. Thread: as Arena. Exceptions of the tensor library (out of memory)
// pass through; torch_executor.cc stops them.
#include <memory>
#include <span>
#include <string>

#include "stages/host_arena.h"
#include "stages/stage_spec.h"

namespace at {
class Tensor;
}
namespace c10 {
struct Device;
}

namespace shoal {

class TorchArena : public SwappableArena {
 public:
  // `device` as the tensor library writes it: "cpu", "cuda:0".
  TorchArena(const StageSpec& spec, const std::string& device);
  ~TorchArena() override;

  std::size_t size() const override { return size_; }
  std::span<float> span(ArenaRole role) override;
  void pull(ArenaRole role) override;
  void push(ArenaRole role) override;
  CountTag& tag(ArenaRole role) override;
  void release(ArenaRole role) override;
  void copy(ArenaRole from, ArenaRole to) override;
  void move(ArenaRole from, ArenaRole to) override;
  void swap_parameters() override;  // the parameter tensors of kCurrent and kOther trade places too

  // (size()) f32 on the device; kBase: that of the base.
  const at::Tensor& flat(ArenaRole role);
  // One leaf per parameter of the stage, in arena order, reading the role's array; they require gradients. kBase: per
  // parameter of the base, and they require none.
  std::span<const at::Tensor> leaves(ArenaRole role);
  // A bf16 copy of each leaf that is multiplied (ParameterSpec::is_factor(): no table of tokens or places), made once;
  // gradients pass through it to the leaf, in f32. The others stand here as they are. push(), release() and
  // forget_narrow() drop the copies: a write by flat() or without a push() calls that one first. When memory ends in
  // the middle there are no copies, and the next call makes them.
  std::span<const at::Tensor> narrow_leaves(ArenaRole role);
  void forget_narrow(ArenaRole role);
  // How many references to the role's memory exist outside this arena: saved tensors of graphs. 0 when nobody else can
  // read it. REQUIRES: no bf16 copies of the role (forget_narrow()), through which it is read as well.
  std::uint64_t outside_references(ArenaRole role) const;
  const c10::Device& device() const;
  bool on_host() const { return on_host_; }

 private:
  struct Slot;
  struct Slots;
  Slot& slot(ArenaRole role) const;
  const at::Tensor& whole(ArenaRole role);  // the array that counts
  void forget_made(ArenaRole role);         // of the array that counts
  std::size_t size_of(ArenaRole role) const { return role == ArenaRole::kBase ? base_size_ : size_; }

  std::size_t size_, base_size_ = 0;  // floats
  std::vector<ParameterSpec> parameters_, base_;
  bool on_host_;
  std::unique_ptr<Slots> slots_;
};

}  // namespace shoal
