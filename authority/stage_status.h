#pragma once
// What the authority shows of a stage. Value. Thread: any.
#include <optional>
#include <vector>

#include "authority/authority_port.h"
#include "authority/stage_line.h"

namespace shoal {

// Why a run of one stage parks, for status lines.
struct StageStatus {
  StageId stage;
  std::size_t members = 0, serving = 0;
  bool secured = false;
  Version version;
  std::vector<Session> last_members;  // of the last committed round: its members could bring the stage back
  std::vector<Session> ahead;         // members that hold a newer version than the log knows
  std::size_t holders = 0;            // members that hold the version, also those that leave
  std::vector<Session> stranded;      // of those that serve: nobody of the next stage answers them
  // What more than half of those that serve and made kDelayWindows steps say of theirs in their beats, or more: the
  // lower median, which no single one of several moves past the others. None: there is nobody such.
  std::optional<double> delay;
  std::optional<DiskState> on_disk;  // the newest checkpoint that one of its members says it has on its disk
  // Nobody holds the version: the newest one that a member has which could be gone back to, and when that is done.
  std::optional<Version> back_to;
  Duration back_in{};
};

// `missing_for`: nobody has held the version for so long; none: somebody does. `restore_after`: then it goes back.
StageStatus status_of(const StageLine& line, const MembersOfStage& members, std::optional<Duration> missing_for,
                      Duration restore_after);

}  // namespace shoal
