#include "runtime/launch/run_summary.h"

#include "common/formatted.h"
#include "events/line_parts.h"
#include "events/train_line.h"

namespace shoal {

std::vector<std::string> summary_lines(const RunSummary& s, bool over, Duration elapsed) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  std::vector<std::string> lines = {
      (over ? "the run is over (" : "the run stands before its end (") + s.reason + ")",
      number(s.run_targets) + " tokens in " + clock_text(elapsed) + ", faults " + number(s.faults),
      "microbatches: issued " + number(s.issued) + ", committed " + number(s.committed),
      "unfinished: " + number(s.unfinished),
      "(microbatch, stage) pairs lost: " + number(s.lost),
      "one peer takes at most " + number(s.loss_bound_microbatches) + " microbatches with it, " +
          short_number(s.loss_bound_targets) + " tokens",
      "rounds " + number(s.rounds) + ", abandoned " + number(s.rounds_abandoned)};
  if (s.taken_back > 0) lines.push_back("pairs lost with versions that nobody held any more: " + number(s.taken_back));
  if (s.delay) lines.push_back("the latest stage's gradients: " + delay_text(*s.delay) + " inner steps");
  if (!s.validation_loss) return lines;
  lines.push_back(formatted("validation loss %.4f nats a target", *s.validation_loss));
  std::string versions;
  for (const Version& version : s.validation_versions)
    versions += (versions.empty() ? "" : ", ") + number(version.value);
  lines.push_back("of the anchors of versions " + versions + ", stage by stage");
  return lines;
}

}  // namespace shoal
