#pragma once
// A round was committed without this session: how it follows, or why it cannot.
//
// Rule diloco. The parameters here are theta = old anchor + own steps (a shift that is still pending counts as applied:
// it is added with the next write, and shifts add up). The new anchor holds the own steps that its round names and no
// others, so what is right afterwards is
//     new anchor + own steps that no round names,   that is
//     theta + new anchor - old anchor      when the round that left our version behind does not name us, and
//     theta + new anchor - snapshot        when it does: the snapshot is old anchor + exactly the steps that it names.
// Later rounds cannot name us: only a member that holds their base contributes. So it does not matter how many versions
// the image is ahead, and a second commit only moves the target. The authority tells the round that names us in front
// of any later one (authority/authority.h), so nothing named is taken for unnamed. Count tags move with the same sums:
// tag(theta) - tag(anchor) is again the sum over what the ledger holds as stepped.
//
// Rule allreduce (and diloco's warm steps) joins as new instead. There the parameters are the anchor and a window
// belongs to one step: what the missed round does not name of that step can enter no round any more, is settled, and
// must be lost, which the end of the session does; and the windows of later steps would have to be kept over a load
// of foreign parameters to save at most two steps of one replica.
//
// Thread: loop only.   Borrows: what it is made with.   Bounds: one image.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "router/ledger.h"
#include "runtime/stage_peer/device_scheduler.h"
#include "runtime/stage_peer/stage_session.h"

namespace shoal {

class CatchUp {
 public:
  CatchUp(const StageSession& session, Ledger& ledger, DeviceScheduler& device, ArenaState& arena,
          const OuterRules& rules)
      : session_(session), ledger_(ledger), device_(device), arena_(arena), rules_(rules) {}

  // This round was committed without us: asks the owner for its state or a newer one, or ends the session where no
  // shift can make it up. `secured`: it names entries of ours.
  void missed(const RoundCommit& commit, bool secured, bool differs, const std::string& why);
  // The image (root and digest checked) of a committed version. False: it is not newer than what is here.
  bool take(Bytes image);
  bool ready() const { return image_.has_value(); }
  // Shifts what is here onto the image; `shifted` when that is done. REQUIRES: ready(), the device is idle.
  void run(std::function<void()> shifted);

  // The newest version that was committed without us; none: nothing was missed, or it is made up.
  std::optional<Version> behind() const { return behind_ ? std::optional(behind_->newest) : std::nullopt; }

 private:
  struct Behind {
    Version newest;                                   // committed without us
    std::optional<std::vector<EntrySerial>> secured;  // ours, when the round that left our version behind names us
  };
  bool can_shift() const;

  const StageSession& session_;
  Ledger& ledger_;
  DeviceScheduler& device_;
  ArenaState& arena_;
  OuterRules rules_;
  std::optional<Behind> behind_;  // until the shift is made
  std::optional<Bytes> image_;    // until the device takes it
};

}  // namespace shoal
