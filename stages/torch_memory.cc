#include "stages/torch_memory.h"

#include <c10/core/Allocator.h>

#include <cstring>
#include <mutex>

#include "common/aligned_memory.h"

namespace shoal {
namespace {

class AlignedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const memory = bytes == 0 ? nullptr : take_aligned(bytes);
    return {memory, memory, &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

 private:
  static void give_back(void* memory) {
    if (memory != nullptr) give_back_aligned(static_cast<std::uint8_t*>(memory));
  }
};

}  // namespace

void use_aligned_memory() {
  static std::once_flag once;
  std::call_once(once, [] {
    static AlignedMemory& memory = *new AlignedMemory;  // outlives all tensors
    c10::SetAllocator(c10::kCPU, &memory);
  });
}

}  // namespace shoal
