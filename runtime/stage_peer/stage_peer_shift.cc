// A round was committed without this session: how it follows, or why it cannot.
//
// Rule diloco. The parameters here are theta = old anchor + own steps (a shift that is still pending counts as applied:
// it is added with the next write, and shifts add up). The new anchor holds the own steps that its round names and no
// others, so what is right afterwards is
//     new anchor + own steps that no round names,   that is
//     theta + new anchor - old anchor      when the round that left our version behind does not name us, and
//     theta + new anchor - snapshot        when it does: the snapshot is old anchor + exactly the steps that it names.
// Later rounds cannot name us: only who holds their base contributes. So it does not matter how many versions the image
// is ahead, and a second commit only moves the target. The authority tells the round that names us in front of any
// later one (sync/authority.h), so nothing named is taken for unnamed. Count tags move with the same sums: tag(theta) -
// tag(anchor) is again the sum over what the ledger holds as stepped.
//
// Rule allreduce (and diloco's warm steps) joins as new instead. There the parameters are the anchor and a window
// belongs to one step: what the missed round does not name of that step can enter no round any more, is settled, and
// must be lost, which the end of the session does; and the windows of later steps would have to be kept over a load
// of foreign parameters to save at most two steps of one replica.
#include "common/log.h"
#include "runtime/stage_peer/stage_peer_parts.h"
#include "sync/state_image.h"

namespace shoal {

bool StagePeer::can_shift() const {
  return options_.config->sync.rule == RuleId::kDiloco &&
         version_.value >= options_.config->sync.warm_steps;  // a warm step is a version
}

void StagePeer::fell_behind(const RoundCommit& commit, bool secured, bool differs, const std::string& why) {
  if (version_ >= commit.version && !differs) return;
  if (!serving_) return;  // the state is still on its way here: the fetch turns to the newest version by itself
  waiting_->contribute.reset();
  waiting_->prepare.reset();
  const bool shifts = !differs && can_shift();
  log_warning("stage ", commit.stage, " committed version ", commit.version, " without us (", why,
              secured ? ", our work is in it" : "", shifts ? "): catching up" : "): joining again");
  if (!shifts) return owner_.on_session_lost(why);
  write({.event = EventName::kBehind, .version = commit.version, .cause = why});
  if (!behind_) behind_.emplace();
  behind_->newest = commit.version;
  for (const Secured& named : commit.secured)
    if (named.session == options_.self) behind_->secured = named.serials;
  owner_.on_behind(commit.version, commit.digest);
}

bool StagePeer::catch_up(Bytes image) {
  const Result<StateHeader> header = parse_state_header(image);
  if (stopped_ || !header.ok() || header->version <= version_ || round_.active()) return false;
  waiting_->shift = std::move(image);
  pump();
  return true;
}

// Writes the anchor and leaves the parameters to the next write, so no entry has to be settled for it.
bool StagePeer::run_shift() {
  const Bytes image = *std::exchange(waiting_->shift, std::nullopt);
  struct Outcome {
    Result<StateHeader> loaded = StateHeader{};
    Digest digest;
    bool shift_pending = false;
  };
  auto outcome = std::make_shared<Outcome>();
  const auto secured = behind_ ? std::exchange(behind_->secured, std::nullopt) : std::nullopt;
  on_device(
      DeviceTask::kState,
      [executor = env_.executor, image, outcome,
       load = secured ? StateLoad::kShiftFromSnapshot : StateLoad::kShiftFromAnchor, allreduce = allreduce_,
       diloco = diloco_] {
        outcome->loaded = load_state_image(*executor, image, load, [&](RuleId id) -> const OuterRule* {
          return id == RuleId::kAllreduce ? allreduce.get() : diloco.get();
        });
        outcome->shift_pending = executor->shift_pending();
        if (outcome->loaded.ok()) outcome->digest = digest_of_image(image);
      },
      [this, outcome, secured] {
        if (!outcome->loaded.ok())
          return owner_.on_session_lost("the state could not be loaded: " + outcome->loaded.error().message);
        version_ = outcome->loaded->version;
        state_rule_ = outcome->loaded->rule;
        shift_pending_ = outcome->shift_pending;
        prepared_.reset();
        if (secured) ledger_.secure(*secured);
        if (behind_ && behind_->newest <= version_) behind_.reset();
        write({.event = EventName::kShifted, .version = version_, .cause = secured ? "snapshot" : "anchor"});
        write(anchor_event(options_.spec.stage, version_, outcome->loaded->tag, outcome->digest));
        owner_.on_version(version_);
        round_.on_version_changed();
      });
  return true;
}

}  // namespace shoal
