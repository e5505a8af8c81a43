#pragma once
// When `shoal launch` may go on with a folder: at once or not at all, or with --standby when no other process has it.
// Thread: the loop's.   Borrows: the storage, which outlives the lock.
#include <string>

#include "common/os/thread_loop.h"
#include "common/storage.h"
#include "runtime/launch/run_lock.h"

namespace shoal {

// What a folder must have before one waits beside it, as far as that can be read while another process writes there:
// else what is wrong would show when that process is gone. `events`: the file of --events, or empty. ERRORS: those of
// load_run_key; kVersion, kForeign (the head of a log), kInput (a log is no file), kIo (folder or logs cannot be read
// or written), kOutput (`events`).
Status check_standby(const std::string& folder, const std::string& events);

// ERRORS: those of RunLock::take.
Result<RunLock> take_turn(Storage& storage, const std::string& folder);

// Runs `loop` until no other process has the folder; says what it waits for. ERRORS: kInterrupted (a stop signal; the
// run was not touched), those of RunLock::take but kBusy.
Result<RunLock> wait_for_turn(ThreadLoop& loop, Storage& storage, const std::string& folder);

}  // namespace shoal
