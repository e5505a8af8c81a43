// What the launching process tells of how the run stands: to people, and to the directory.
#include <algorithm>
#include <cmath>
#include <utility>

#include "common/crypto/hash.h"
#include "common/log.h"
#include "dht/record.h"
#include "runtime/launch/launch.h"

namespace shoal {

namespace {
constexpr Duration kNewsPause = 3s;  // between two records, the second for news of how the run stands
}  // namespace

// What a change of the state or of the members means for the directory: told soon.
void Launch::watch_stages() {
  const std::vector<StageStatus> stages = authority_->status();
  if (const auto late = delays_.take(stages, options_.config)) owner_.on_warning(*late);
  Standing::Facts facts{.begun = book_->committed() > 0,
                        .finishing = finishing_,
                        .ended = ended_at_.has_value(),
                        .stages = {},
                        .members = authority_->lives()};
  for (const StageStatus& stage : stages)
    facts.stages.push_back(
        {stage.stage, stage.serving, stage.secured, !stranded_text(stage).empty(), stage.last_members});
  if (standing_.look(std::move(facts), env_.loop.now(), env_.loop.wall()))
    next_announce_ = std::min(next_announce_, announced_at_ + kNewsPause);
}

// Of a stage whose every serving peer says that nobody of the next one answers it: who cannot reach whom.
std::string Launch::stranded_text(const StageStatus& stage) const {
  if (stage.serving == 0 || stage.stranded.size() < stage.serving) return "";
  std::string whom;
  for (const StageMembers& next : authority_->members().stages)
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

std::string Launch::parked_text() const {
  std::string text;
  for (const StageStatus& stage : authority_->status()) {
    if (stage.serving > 0) {
      if (const std::string stranded = stranded_text(stage); !stranded.empty())
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
          "folder "
          "that it had brings the version of its checkpoint";
  }
  if (text.empty() && !finishing_ && !book_->next())
    text = "waiting: no more microbatches may be in flight before " + book_->waiting_for() + " is done with";
  return text;
}

void Launch::announce() {
  announced_at_ = env_.loop.now();
  next_announce_ = announced_at_ + kRecordPeriod;
  if (env_.directory == nullptr) return;
  RunRecord record;
  record.run = RunId{options_.key.id().bytes};
  record.name = options_.config.run.name;
  record.stages = options_.config.pipeline.stages;
  record.manifest = blake2b_256(manifest_bytes());
  record.addresses = options_.addresses;
  record.sequence = sequence_ = next_sequence(sequence_, env_.loop.wall());
  record.expires = env_.loop.wall() + kRecordTtl;
  if (ended_at_) record.ended = summary_.reason;
  if (auto text = pack_record(record, options_.key); text.ok())
    env_.directory->announce(*std::move(text), run_key_name(record.run));
  else
    log_warning("no record for the directory: ", text.error().message);
  announce_standing(record);
}

// What the peers know keeps memory fresh. Each answer costs as many signatures as it has records, so news of how the
// run stands is no reason to ask.
void Launch::exchange_records() {
  next_exchange_ = env_.loop.now() + kRecordPeriod;
  if (env_.directory == nullptr) return;
  for (const StageMembers& stage : authority_->members().stages)
    for (const Member& member : stage.members)
      if (transport_->remote(member.peer)) send(member.peer, PeersQuery{});
}

void Launch::announce_standing(const RunRecord& beside) {
  StandingRecord whole = standing_.record(env_.loop.now());
  whole.run = beside.run;
  whole.targets = book_->committed_targets();
  whole.end_targets = options_.config.end_targets();
  whole.falls = env_.directory->falls();
  whole.sequence = beside.sequence;
  whole.expires = beside.expires;
  auto parts = pack_standing(whole, options_.key);
  if (!parts.ok()) return log_warning("how the run stands is not told: ", parts.error().message);
  const std::size_t before = std::exchange(standing_parts_, parts->size());
  for (std::size_t part = 0; part < std::max(before, standing_parts_); ++part) {
    const std::string key = standing_key(whole.run, static_cast<std::uint16_t>(part));
    part < standing_parts_ ? env_.directory->announce(std::move((*parts)[part]), key) : env_.directory->withdraw(key);
  }
}

}  // namespace shoal
