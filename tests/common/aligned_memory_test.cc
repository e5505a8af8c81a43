#include "common/aligned_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <vector>

#include "common/bytes.h"
#include "common/uncleared_memory.h"

namespace shoal {
namespace {

TEST(AlignedMemoryTest, IsAlignedAndWholeAtEachSize) {
  std::vector<std::pair<std::uint8_t*, std::size_t>> taken;
  for (std::size_t bytes = 1; bytes < 300; ++bytes) {
    taken.push_back({take_aligned(bytes), bytes});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken.back().first) % kBufferAlignment, 0u) << bytes;
    std::memset(taken.back().first, static_cast<int>(bytes & 0xff), bytes);
  }
  for (const auto& [memory, bytes] : taken) {
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], bytes & 0xff) << bytes;
    give_back_aligned(memory);
  }
}

// Below what the heap maps. Each second one goes, and as many of the same size come: they lie where those lay.
TEST(AlignedMemoryTest, AnArrayFitsWhereOneOfItsSizeWas) {
  constexpr std::size_t kBytes = 64u << 10, kArrays = 64;
  const auto heap = [] { return ::mallinfo2().arena; };
  std::vector<UnclearedMemory> arrays;
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < kArrays; ++i) {
    arrays.emplace_back(kBytes);
    buffers.emplace_back(kBytes);
  }
  const std::size_t before = heap();
  for (std::size_t i = 0; i < kArrays; i += 2) {
    arrays[i] = UnclearedMemory(1);
    buffers[i] = Buffer(1);
    arrays[i] = UnclearedMemory(kBytes);
    buffers[i] = Buffer(kBytes);
  }
  EXPECT_LT(heap(), before + kArrays / 4 * kBytes);
}

}  // namespace
}  // namespace shoal
