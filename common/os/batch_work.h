#pragma once
// For processes that compute for hours.

namespace shoal {

// Tells kernel and allocator that throughput counts here: threads started from now on are batch work (SCHED_BATCH: they
// do not push others off a core by waking up, so neither the machine's owner nor the tensors in the caches are
// disturbed every millisecond), and memory that was freed is kept (the next microbatch wants as much again; giving it
// back means cleared pages each time). Call before the first thread is started. Does what it can; nothing fails.
void begin_batch_work();

// For the calling thread, which computes: asks for time slices of 20 ms instead of some 3 ms, and keeps its policy.
// Where stages share cores, each change of thread makes a matrix product find its operands gone from the caches. Linux
// keeps to it from 6.12 on, earlier ones ignore it; nothing fails.
void take_long_slices();

}  // namespace shoal
