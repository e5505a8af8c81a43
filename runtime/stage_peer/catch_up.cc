#include "runtime/stage_peer/catch_up.h"

#include "common/log.h"
#include "state/state_image.h"

namespace shoal {

bool CatchUp::can_shift() const { return !parts_.options.config->global_step(parts_.arena.step_done.value); }

void CatchUp::missed(const RoundCommit& commit, bool secured, bool differs, const std::string& why) {
  const bool shifts = !differs && can_shift();
  log_warning("stage ", commit.stage, " committed version ", commit.version, " without us (", why,
              secured ? ", our work is in it" : "", shifts ? "): catching up" : "): joining again");
  if (!shifts) return parts_.owner.on_session_lost(why);
  parts_.env.events.write({.event = EventKind::kBehind, .version = commit.version, .cause = why});
  if (!behind_) behind_.emplace();
  behind_->newest = commit.version;
  for (const Secured& named : commit.secured)
    if (named.session == parts_.options.self) behind_->secured = named.serials;
  parts_.owner.on_behind(commit.version, commit.digest);
}

bool CatchUp::take(Bytes image) {
  const Result<StateHeader> header = parse_state_header(image);
  if (!header.ok() || header->version <= parts_.arena.version) return false;
  image_ = std::move(image);
  return true;
}

// Writes the anchor and leaves the parameters to the next write, so no entry has to be settled for it.
void CatchUp::run(std::function<void()> shifted) {
  const Bytes image = *std::exchange(image_, std::nullopt);
  struct Outcome {
    Result<StateHeader> loaded = StateHeader{};
    Digest digest;
    bool shift_pending = false;
  };
  auto outcome = std::make_shared<Outcome>();
  const auto secured = behind_ ? std::exchange(behind_->secured, std::nullopt) : std::nullopt;
  parts_.device.run(
      WorkKind::kLoad,
      [image, outcome, rules = rules_,
       load = secured ? StateLoad::kShiftFromSnapshot : StateLoad::kShiftFromAnchor](StageExecutor& executor) {
        outcome->loaded = load_state_image(executor, image, load, [&](RuleId id) { return rules.of(id).get(); });
        outcome->shift_pending = executor.shift_pending();
        if (outcome->loaded.ok()) outcome->digest = digest_of_image(image);
      },
      [this, outcome, secured, shifted = std::move(shifted)] {
        if (!outcome->loaded.ok())
          return parts_.owner.on_session_lost("the state could not be loaded: " + outcome->loaded.error().message);
        ArenaState& arena = parts_.arena;
        arena.version = outcome->loaded->version;
        arena.rule = outcome->loaded->rule;
        arena.shift_pending = outcome->shift_pending;
        arena.prepared.reset();
        if (secured) parts_.ledger.secure(*secured);
        if (behind_ && behind_->newest <= arena.version) behind_.reset();
        parts_.env.events.write(
            {.event = EventKind::kShifted, .version = arena.version, .cause = secured ? "snapshot" : "anchor"});
        parts_.env.events.write(
            anchor_event(parts_.options.spec.stage, arena.version, outcome->loaded->tag, outcome->digest));
        parts_.owner.on_version(arena.version);
        shifted();
      });
}

}  // namespace shoal
