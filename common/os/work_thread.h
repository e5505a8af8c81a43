#pragma once
#include <memory>
#include <string>

#include "common/event_loop.h"
#include "common/work_queue.h"

namespace shoal {

// Owns its thread; the destructor finishes the job that runs and drops the rest. REQUIRES: loop outlives it.
// `name` is the thread's, as top shows it.
std::unique_ptr<WorkQueue> make_work_thread(EventLoop& loop, std::string name = "device");

}  // namespace shoal
