#pragma once
// What a program does with its own process before anything else: descriptors, signals, core files. Thread: main's, and
// before another one is started.
#include "common/result.h"

namespace shoal {

// Those of the descriptors 0 to 2 that the caller had closed become /dev/null: else the next file that is opened, a
// log or an event file, would get the number and with it what is printed. They are opened the wrong way round, so that
// reading standard input and writing the outputs fails (EBADF) as it does on a closed one. Ends the process (74) where
// there is no /dev/null.
void hold_standard_descriptors();

// A reader of a pipe who goes away ends no process of hours (SIGPIPE): what is written there fails from now on (EPIPE).
void outlive_readers();

// Starts this program anew, in the same process and with the same `words` (as main has them, null at the end), with
// `name`=`value` in its environment: for what a library reads before main() begins. Returns where the variable is set
// already, by whoever started the program or by this, so that it is done once; and where it cannot be done.
void start_anew_with(const char* name, const char* value, char* const words[]);

// No core file of this process is written from now on: it would hold the process's keys. ERRORS: kIo.
Status forbid_core_files();

}  // namespace shoal
