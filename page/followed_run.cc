#include "page/followed_run.h"

#include <algorithm>

namespace shoal {

Status FollowedRun::read_on(double now, const std::function<bool(std::uint64_t lines)>& progress) {
  SHOAL_TRY(lines_.look_again());
  while (true) {
    SHOAL_ASSIGN(const auto line, lines_.next());
    if (!line) break;
    const AuditEvent& event = *line->event;
    if (event.row == nullptr) continue;
    if (view_.lines() == 0) {
      facts_.key = hex_of(event.run).substr(0, 16);
      view_.set_facts(facts_);
    }
    view_.take({event, line->time, !event.is_peer(), event.session});
    told_ = std::max(told_, line->time);
    if (progress && view_.lines() % kProgressLines == 0 && !progress(view_.lines())) return {};
  }
  // What is over stands as its last line leaves it.
  if (!view_.ended() && view_.lines() > 0) view_.advance(now);
  return {};
}

}  // namespace shoal
