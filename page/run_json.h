#pragma once
// A run as its page reads it (docs/PAGE.md has each key). Two parts: the moment, which changes all the time, and the
// story, which grows: curves, tales, and what each peer did. Pure; thread-safe.
#include <optional>
#include <string>

#include "events/books/run_view.h"

namespace shoal {

inline constexpr char kPageSchema[] = "shoal.page/1";
// So many members and ways between them are shown; the rest is counted.
inline constexpr std::size_t kMembersShown = 512, kEdgesShown = 400;

std::string moment_json(const RunView& view);  // one object
std::string story_json(const RunView& view);   // one object
// The whole of it, of parts that were made before: {"schema", "mode", "moment", "story"}, and of a replay that.
struct ReplaySpan {
  double from = 0, to = 0, speed = 1;  // seconds since 1970; seconds of the run in one of the page's
};
std::string snapshot_json(const std::string& moment, const std::string& story,
                          const std::optional<ReplaySpan>& replay = std::nullopt);

}  // namespace shoal
