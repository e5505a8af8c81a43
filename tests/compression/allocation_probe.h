#pragma once
// Watches what this test program asks operator new for: a frame that is refused must not have cost memory first.
// Thread: one test thread; requests of other threads are seen too.
#include <cstddef>

namespace shoal {

class AllocationProbe {
 public:
  AllocationProbe();            // starts watching
  std::size_t largest() const;  // bytes of the largest single request since then
};

}  // namespace shoal
