#pragma once
// Bugs that the simulator must find within its seeds: test-only switches, never set by a program. Each stands at the
// one line it breaks.
namespace shoal {

struct PlantedBugs {
  bool undo_twice = false;         // an undone entry is taken out of its window twice
  bool abort_shared = false;       // a Release ends the entry although others claim it
  bool duplicate_entry = false;    // a second branch computes and counts again instead of joining
  bool no_wait = false;            // an inner step does not wait for settling
  bool commit_at_count = false;    // a counted entry is taken for committed
  bool reset_accumulator = false;  // an undo clears the whole window
  bool no_expiry = false;          // claims never fall
  bool late_log = false;           // COMMIT leaves before the log is durable
  bool no_replay = false;          // a restarted trainer repeats no COMMITs
  bool branch_timer = false;       // the hop timer belongs to a branch
  bool silent_gone = false;        // a gone entry is not lost
  bool list_on_silence = false;    // a silent session's entries are lost without the authority's word
  bool shift_unnamed = false;      // a late member takes what the missed round names for unnamed
};

}  // namespace shoal
