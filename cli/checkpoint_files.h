#pragma once
// Checkpoints as files of the disks that a person names: which of what lies there is one, and what is said of it.
// Blocking file I/O; thread: any.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/program/json_text.h"
#include "state/checkpoint.h"

namespace shoal {

struct CheckpointFile {
  std::string path;
  std::uint64_t bytes = 0;
  Result<Checkpoint> read;
};

// Whether the path itself, no link, is a regular file that says so (says_checkpoint), whatever else is wrong with it.
bool says_checkpoint(const std::string& path);

// Files as they are named, and of a folder those of ours, by name.
enum class Wanted : std::uint8_t {
  kToRead,    // what says that it is one or is called so; a file that is named is judged, whatever it is
  kToRemove,  // what says that it is one, whatever it is called; a file that is named and does not is an error
};
struct FoundCheckpoints {
  std::vector<std::string> checkpoints;
  std::vector<std::string> left;  // of processes that died while they wrote one
};
// ERRORS: kMissing (a path, or there is none), kInput (kToRemove), kIo.
Result<FoundCheckpoints> find_checkpoints(const std::vector<std::string>& paths, Wanted wanted);
// What processes that died while they wrote a checkpoint left in the folder: of this peer; none: of any. By name.
// ERRORS: kMissing, kIo.
Result<std::vector<std::string>> left_checkpoints(const std::string& folder, const std::optional<PeerId>& peer = {});

// Reads them one after the other: one is in memory at a time, unless `take` keeps it.
void read_each(const std::vector<std::string>& found, const std::function<void(CheckpointFile)>& take);

// One of FoundCheckpoints::left, as what cannot be used.
CheckpointFile left_file(const std::string& path);

// "FILE: ok", or why it cannot be used.
std::string judgement(const CheckpointFile& file);
// Seconds since 1970 as a person reads them.
std::string utc_of(std::uint64_t seconds);
// Names of files and what stands in them may be no UTF-8.
Json json_of(const CheckpointFile& file);

}  // namespace shoal
