#include "runtime/stage_peer/catch_up.h"

#include "common/log.h"
#include "state/state_image.h"

namespace shoal {

bool CatchUp::can_shift() const { return !session_.config->global_step(arena_.step_done.value); }

void CatchUp::missed(const RoundCommit& commit, bool secured, bool differs, const std::string& why) {
  const bool shifts = !differs && can_shift();
  log_warning("stage ", commit.stage, " committed version ", commit.version, " without us (", why,
              secured ? ", our work is in it" : "", shifts ? "): catching up" : "): joining again");
  if (!shifts) return session_.owner.on_session_lost(why);
  session_.events.write({.event = EventKind::kBehind, .version = commit.version, .cause = why});
  if (!behind_) behind_.emplace();
  behind_->newest = commit.version;
  for (const Secured& named : commit.secured)
    if (named.session == session_.self) behind_->secured = named.serials;
  session_.owner.on_behind(commit.version, commit.digest);
}

bool CatchUp::take(Bytes image) {
  const Result<StateHeader> header = parse_state_header(image);
  if (!header.ok() || header->version <= arena_.version) return false;
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
  device_.run(
      WorkKind::kLoad,
      [image, outcome, rules = rules_,
       load = secured ? StateLoad::kShiftFromSnapshot : StateLoad::kShiftFromAnchor](StageExecutor& executor) {
        outcome->loaded = load_state_image(executor, image, load, [&](RuleId id) { return rules.of(id).get(); });
        outcome->shift_pending = executor.shift_pending();
        if (outcome->loaded.ok()) outcome->digest = digest_of_image(image);
      },
      [this, outcome, secured, shifted = std::move(shifted)] {
        if (!outcome->loaded.ok())
          return session_.owner.on_session_lost("the state could not be loaded: " + outcome->loaded.error().message);
        arena_.version = outcome->loaded->version;
        arena_.rule = outcome->loaded->rule;
        arena_.shift_pending = outcome->shift_pending;
        arena_.prepared.reset();
        if (secured) ledger_.secure(*secured);
        if (behind_ && behind_->newest <= arena_.version) behind_.reset();
        session_.events.write(
            {.event = EventKind::kShifted, .version = arena_.version, .cause = secured ? "snapshot" : "anchor"});
        session_.events.write(anchor_event(session_.spec.stage, arena_.version, outcome->loaded->tag, outcome->digest));
        session_.owner.on_version(arena_.version);
        shifted();
      });
}

}  // namespace shoal
