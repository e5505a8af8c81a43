#pragma once
// The page's first glance for a terminal. Pure. What others wrote is printable here.
#include <cstddef>
#include <string>

#include "events/books/fault_story.h"

namespace shoal {

class RunView;

// `told`: when the newest line was written, seconds since 1970; of the view's now, unless the run has ended.
struct GlanceSize {
  std::size_t columns = 80, lines = 24;
};
// Lines with their newlines, no longer and no more than that: how the run stands, its peers (those that live first),
// and the newest faults.
std::string glance_text(const RunView& view, double told, GlanceSize size);
// The same in one line, without a newline, and each tale in one.
std::string glance_line(const RunView& view, double told);
std::string tale_line(const Tale& tale, double begun);

}  // namespace shoal
