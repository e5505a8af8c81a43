#pragma once
// Judges what a kernel's threads do to memory, byte by byte. An access is refused
//   - outside of every array that cudaMalloc gave, of shared memory, of the thread's own stack and of the program's
//     constants;
//   - of a byte that nothing has written: shared memory anew in each block;
//   - beside another thread's access to the same byte, when one of them writes and nothing orders them.
// What orders two accesses: a launch between them; __syncthreads; __syncwarp within its lanes. A shuffle and a fence
// order no memory, and nothing orders two blocks. Two atomic accesses need no order.
// Bound: of those who read a byte without an order among them, two threads are remembered.
// Thread: one at a time.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shoal::cuda_on_host {

inline constexpr unsigned kWarpLanes = 32;

// A thread of a kernel, and what lies behind it.
struct Actor {
  unsigned block = 0, thread = 0;
  std::uint32_t barriers = 0;                      // of the block, that it passed
  std::array<std::uint32_t, kWarpLanes> behind{};  // its own lane: how often it met its warp in __syncwarp. Another
                                                   // lane: what that one did before it had met so often lies behind
  unsigned lane() const { return thread % kWarpLanes; }
};

enum class Access : std::uint8_t { kRead, kWrite, kAtomic };

class AccessWatch {
 public:
  struct Range {
    std::uintptr_t begin = 0, end = 0;
    bool holds(std::uintptr_t at, std::size_t bytes) const { return at >= begin && at < end && bytes <= end - at; }
  };

  AccessWatch();

  // Aligned to 256 bytes, not next to another array.
  void* allocate(std::size_t bytes);
  bool release(void* array);
  // Whether these bytes are all of one array.
  bool is_of_array(const void* at, std::size_t bytes);
  void written_by_host(void* at, std::size_t bytes);

  void begin_launch() { ++launch_; }
  void begin_block() { ++block_; }

  // What is wrong with the access, or nothing. `stack`: the thread's own.
  std::string judge(const Actor& actor, const Range& stack, const void* at, std::size_t bytes, Access access);

 private:
  struct Mark {
    std::uint32_t launch = 0;  // 0: none
    std::uint32_t block = 0, barriers = 0, met = 0;
    std::uint16_t thread = 0;
    Access access = Access::kRead;
  };
  struct Cell {
    Mark write;
    Mark reads[2];
    std::uint64_t block = 0;  // of shared memory: the block that it was used by
    bool written = false;
  };
  struct Array {
    std::vector<unsigned char> memory;
    Range range;
    std::vector<Cell> cells;
  };

  Array* array_of(std::uintptr_t at);
  std::string describe(const Actor& actor, std::size_t bytes, Access access) const;
  std::string nowhere(std::uintptr_t at);
  std::string judge_cells(const Actor& actor, Cell* cells, std::size_t offset, std::size_t bytes, Access access,
                          const std::string& where);
  const Mark* conflict(const Actor& actor, const Cell& cell, Access access) const;
  bool lies_behind(const Actor& actor, const Mark& mark) const;
  void note(const Actor& actor, Cell& cell, Access access) const;

  std::map<std::uintptr_t, Array> arrays_;  // by where they begin
  Array* last_ = nullptr;
  Range shared_, program_;
  std::vector<Cell> shared_cells_;
  std::uint32_t launch_ = 0;
  std::uint64_t block_ = 0;
};

}  // namespace shoal::cuda_on_host
