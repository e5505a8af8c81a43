#pragma once
// Whether other programs compute on a GPU, as `nvidia-smi pmon` shows it, for `join --gpu-busy pause`.
#include <cstdint>
#include <optional>
#include <string>

#include "common/result.h"
#include "common/time.h"

namespace shoal {

inline constexpr int kGpuBusyPercent = 10;  // of its multiprocessors, by one other program

struct GpuUse {
  bool own = false;    // this process is among those shown
  std::string others;  // "python (process 71)": one that is busy; empty: none is
};

// What `nvidia-smi pmon -c 1 -s u` printed. ERRORS: kUnsupported (it is no such table).
Result<GpuUse> gpu_use_in(const std::string& table, std::int64_t own_process);
// Asks nvidia-smi. Blocks, 5 s at most. ERRORS: kUnsupported.
Result<GpuUse> ask_gpu_use(int index);

// Busy when two looks in a row found others, free when none did for a minute. Value.
class GpuBusy {
 public:
  static constexpr Duration kFreeAfter = 60s;
  void note(const std::string& others, TimePoint now);
  // For people; empty: free.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool found_before_ = false;
  TimePoint found_at_{};
};

}  // namespace shoal
