#include "events/books/followed_run.h"

#include <algorithm>

namespace shoal {

Status FollowedRun::read_on(double now, const std::function<bool(std::uint64_t lines)>& progress) {
  SHOAL_TRY(lines_.look_again());
  while (true) {
    SHOAL_ASSIGN(const std::optional<SeenEvent> event, lines_.next());
    if (!event) break;
    view_.take(*event);
    told_ = std::max(told_, event->time);
    if (progress && view_.lines() % kProgressLines == 0 && !progress(view_.lines())) return {};
  }
  // What is over stands as its last line leaves it.
  if (!view_.ended() && view_.lines() > 0) view_.advance(now);
  return {};
}

}  // namespace shoal
