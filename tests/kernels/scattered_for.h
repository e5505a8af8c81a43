#pragma once
// A ParallelFor that is the worst a caller may hand in: pieces of odd sizes in reverse order, each on a thread of its
// own.
#include <cstddef>
#include <functional>
#include <thread>

#include "kernels/parallel_for.h"

namespace shoal {

inline ParallelFor scattered_for() {
  return [](std::size_t count, std::size_t, const std::function<void(std::size_t, std::size_t)>& body) {
    for (std::size_t end = count; end > 0;) {
      const std::size_t begin = end > 5 ? end - 5 : 0;
      std::thread([&] { body(begin, end); }).join();
      end = begin;
    }
  };
}

}  // namespace shoal
