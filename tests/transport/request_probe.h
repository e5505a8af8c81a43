#pragma once
// Adds up what this program's own code asks malloc for, so that a test can say that refused bytes cost no memory.
// malloc is wrapped at link time (tests/transport/CMakeLists.txt); operator new goes through it. Thread: counts the
// thread that made it only.
#include <cstddef>

namespace shoal {

class RequestProbe {
 public:
  RequestProbe();               // starts at zero
  std::size_t total() const;    // bytes asked for since then
  std::size_t largest() const;  // in one piece
};

}  // namespace shoal
