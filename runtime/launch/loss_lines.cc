#include "runtime/launch/loss_lines.h"

#include <utility>

namespace shoal {
namespace {

std::string line_of(const Session& session, const std::string& cause, StageId stage, std::uint64_t microbatches) {
  return "lost: " + std::to_string(microbatches) + (microbatches == 1 ? " microbatch" : " microbatches") +
         " of session " + short_name(session) + " at stage " + std::to_string(stage.value) + " (" + cause + ")";
}

}  // namespace

void LossLines::add(const CommitBook::Listing& listing) {
  Sum& sum = sums_[{listing.entry_name.session, listing.cause}];
  sum.stage = listing.stage;
  ++sum.microbatches;
}

std::vector<std::string> LossLines::take(TimePoint now) {
  std::vector<std::string> lines;
  for (auto& [of, sum] : sums_) {
    if (sum.microbatches == 0 || now < sum.next) continue;
    lines.push_back(line_of(of.first, of.second, sum.stage, std::exchange(sum.microbatches, 0)));
    sum.next = now + kPeriod;
  }
  std::erase_if(sums_, [&](const auto& one) { return one.second.microbatches == 0 && now >= one.second.next; });
  return lines;
}

std::vector<std::string> LossLines::take_rest() {
  std::vector<std::string> lines;
  for (const auto& [of, sum] : std::exchange(sums_, {}))
    if (sum.microbatches > 0) lines.push_back(line_of(of.first, of.second, sum.stage, sum.microbatches));
  return lines;
}

}  // namespace shoal
