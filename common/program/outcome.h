#pragma once
// Exit codes (after BSD's sysexits), how a failure is said, and what becomes of the output.
// Documented in docs/CLI.md.
#include <string>

#include "common/result.h"

namespace shoal {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,      // the judgement of a command that judges (audit, demo) is no
  kExitIncomplete = 2,  // of audit: evidence is missing, of demo: the machine was busy; nobody can tell
  kExitEnded = 3,       // of inspect: the run is over
  kExitUsage = 64,
  kExitBadInput = 65,  // damaged or mistyped: ticket, manifest, token file, saved model
  kExitMissing = 66,
  kExitWrongNetwork = 68,  // of inspect: somebody is there, and is no DHT node of that network
  kExitUnavailable = 69,   // no GPU, no peers, swarm not reachable
  kExitSoftware = 70,      // of launch: the run's numbers fail; an exception that nobody expected. A failed check: 134
  kExitCannotCreate = 73,  // where --dir, --events or --save point
  kExitIo = 74,            // disk full, permission, stdout closed
  kExitTryAgain = 75,
  kExitVersion = 76,
  kExitRefused = 77,       // not admitted, fenced, key readable by others
  kExitConfig = 78,        // RUN.toml
  kExitInterrupted = 130,  // by Ctrl-C, after an orderly end
};

int exit_code_of(ErrorCode code);

// Says on stderr what failed and what to do, and returns the exit code: the only place that prints an error.
int fail(const Error& error);
int fail(const Error& error, ExitCode code);
// Errors of RUN.toml: what is wrong in it becomes kExitConfig.
int fail_config(const Error& error);

// Sends what was printed on its way, at each end of the program. Where stdout takes no more (closed, disk full) that is
// said, and 0 becomes kExitIo: a reader must not take half of a result for the whole.
int with_output_written(int code);
// The same in the middle. What could not be written is forgotten, so that it is said once. ERRORS: kIo.
Status write_output();
// Whether stdout takes anything, as far as that shows before there is something to print: a closed descriptor,
// /dev/full and a pipe whose reader is gone say so, a full disk only when something is written. ERRORS: kIo.
Status check_output();

}  // namespace shoal
