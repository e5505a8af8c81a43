#pragma once
// Named places in product code where a start option makes something go wrong, so that what is tested is what ships.
//   if (SHOAL_FAULT("dht.spawn")) return make_error(ErrorCode::kIo, "fault point dht.spawn");
//   SHOAL_FAULT("peer.before_gradient");
// Armed only by arm_faults(), which prints a warning; unarmed, a point costs one relaxed load. Thread: any.
//
// Option: NAME=ACTION[:ARGUMENT][@N[+]], separated by commas. @N means the N-th time only (counted from 1 in this
// process), @N+ from then on; without it every time.
//   kill           SIGKILL to this process
//   exit[:CODE]    _Exit(CODE), 70 when absent
//   error          the point is true: the code takes its failure path
//   hold:SECONDS   the point is true from that time on for so long: the code behaves as if it could not go on yet
//   delay:MS       the calling thread sleeps
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace shoal {

namespace fault_internal {
extern std::atomic<bool> any_armed;
bool reached(const char* name);
}  // namespace fault_internal

// Adds to what is armed. ERRORS: kInput (names the item and what is allowed); then nothing of `option` is armed.
Status arm_faults(std::string_view option);
// For tests: as at start.
void disarm_faults();
// Armed points that the process never passed: a misspelt name shows here. The program names them at its end.
std::vector<std::string> faults_not_reached();

}  // namespace shoal

// True when an armed error or hold strikes here.
#define SHOAL_FAULT(name) \
  (::shoal::fault_internal::any_armed.load(std::memory_order_relaxed) && ::shoal::fault_internal::reached(name))
