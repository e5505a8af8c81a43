#pragma once
// An event file that grows is cut into segments. Written is FILE.jsonl; when it is full it becomes FILE.jsonl.0001,
// then FILE.jsonl.0002 and so on, and each of these is packed to FILE.jsonl.0001.zst. In this order they are one file.
// Names alone are the index. Pure but for looking at folders; thread-safe.
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

struct EventFile {
  std::string path;                    // FILE.jsonl, be it there or not
  std::vector<std::string> parts{};    // paths of what is there, in their order; a segment that is there twice once
  std::vector<std::uint64_t> lacks{};  // numbers of segments that are not there, below the newest one
};

// "FILE.jsonl.0007". Numbers begin at 1.
std::string segment_path(const std::string& path, std::uint64_t number);
// Those of the folder, by name. ERRORS: kIo.
Result<std::vector<EventFile>> event_files_in(const std::string& folder);
// The same of one file alone.
Result<EventFile> event_file_at(const std::string& path);
// The number of its newest segment; 0: it has none.
std::uint64_t newest_segment(const EventFile& file);
// Paths of its segments with higher numbers than this one, in their order.
std::vector<std::string> segments_behind(const EventFile& file, std::uint64_t number);
// The name of a segment that is packed.
std::string packed_segment(const std::string& segment);

}  // namespace shoal
