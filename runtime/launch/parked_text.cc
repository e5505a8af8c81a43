#include "runtime/launch/parked_text.h"

#include <cmath>

namespace shoal {

std::string stranded_text(const StageStatus& stage, const MemberList& list) {
  if (stage.serving == 0 || stage.stranded.size() < stage.serving) return "";
  std::string whom;
  for (const StageMembers& next : list.stages)
    for (const Member& member : next.members)
      if (next.stage.value == stage.stage.value + 1 && member.serving)
        whom += (whom.empty() ? " " : ", ") + short_name(member.session);
  if (whom.empty()) return "";  // the next stage has nobody, and says so itself
  std::string text;
  for (const Session& session : stage.stranded)
    text += (text.empty() ? "stage " : "; stage ") + std::to_string(stage.stage.value) + " peer " +
            short_name(session) + " cannot reach stage " + std::to_string(stage.stage.value + 1) + ":" + whom;
  return text;
}

std::string parked_text(const std::vector<StageStatus>& stages, const MemberList& list) {
  std::string text;
  for (const StageStatus& stage : stages) {
    if (stage.serving > 0) {
      if (const std::string stranded = stranded_text(stage, list); !stranded.empty())
        text += (text.empty() ? "parked: " : "; ") + stranded;
      continue;
    }
    text += text.empty() ? (stage.secured ? "parked: " : "waiting: ") : "; ";
    text += "stage " + std::to_string(stage.stage.value) + " has no serving peer";
    if (!stage.secured) continue;
    text += " that holds version " + std::to_string(stage.version.value) + " (last held by:";
    for (const Session& session : stage.last_members) text += " " + short_name(session);
    text += ")";
    for (const Session& session : stage.ahead)
      text += "; session " + short_name(session) +
              " holds a newer version than authority.log knows: put the newer log back";
    if (stage.holders > 0)
      text += ", its last holder is leaving: `shoal join` elsewhere takes the state over";
    else if (stage.back_to)
      text += "; a peer has version " + std::to_string(stage.back_to->value) + ", which the stage goes back to in " +
              std::to_string(std::lround(seconds_of(stage.back_in))) +
              " s at the latest, unless one that holds the newest comes back";
    else if (stage.ahead.empty())
      text +=
          " and no known copy of it is left. A `shoal join` of these that still runs (stopped, asleep, cut off) brings "
          "it back when it reaches this process again; once those processes are gone, one that joins with the home "
          "folder that it had brings the version of its checkpoint";
  }
  return text;
}

}  // namespace shoal
