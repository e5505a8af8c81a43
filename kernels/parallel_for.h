#pragma once
// How a loop over many elements is cut among threads, whatever threads there are.
#include <cstddef>
#include <functional>

namespace shoal {

// Calls body(begin, end) for pieces that cover [0, count) once, in any order and on any threads; returns when all are
// done.
using ParallelFor =
    std::function<void(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>&)>;

inline ParallelFor serial_for() {
  return [](std::size_t count, std::size_t, const std::function<void(std::size_t, std::size_t)>& body) {
    if (count > 0) body(0, count);
  };
}

}  // namespace shoal
