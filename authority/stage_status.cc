#include "authority/stage_status.h"

#include <algorithm>

#include "events/delay.h"

namespace shoal {
namespace {

std::optional<double> lower_median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Whether a checkpoint that a member says it has is newer than another one; one of a version that no round made is
// none.
bool is_newer(const std::optional<DiskState>& one, const std::optional<DiskState>& other, Version newest) {
  if (!one || one->version > newest) return false;
  return !other || one->version > other->version || (one->version == other->version && one->age_s < other->age_s);
}

}  // namespace

StageStatus status_of(const StageLine& line, const MembersOfStage& members, std::optional<Duration> missing_for,
                      Duration restore_after) {
  StageStatus one;
  one.stage = line.stage;
  one.secured = line.secured;
  one.version = line.version;
  std::vector<double> delays;
  for (const auto& [session, member] : members) {
    ++one.members;
    one.serving += member->member.serving ? 1 : 0;
    if (member->ahead()) one.ahead.push_back(session);
    if (member->member.serving && member->said.stranded) one.stranded.push_back(session);
    one.holders += line.has_newest(*member) ? 1 : 0;
    if (is_newer(member->said.on_disk, one.on_disk, line.version)) one.on_disk = member->said.on_disk;
    if (!member->member.serving || member->said.steps < kDelayWindows) continue;
    delays.push_back(member->said.delay);
  }
  if (missing_for) {
    one.back_to = line.restorable(members);
    one.back_in = std::max(Duration(0), restore_after - *missing_for);
  }
  one.delay = lower_median(std::move(delays));
  if (line.last_commit)
    for (const Secured& secured : line.last_commit->secured) one.last_members.push_back(secured.session);
  return one;
}

}  // namespace shoal
