#include "runtime/launch/announcer.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "dht/record.h"
#include "runtime/launch/parked_text.h"

namespace shoal {

namespace {
constexpr Duration kNewsPause = 3s;  // between two records, the second for news of how the run stands
}  // namespace

void Announcer::tick(const std::vector<StageStatus>& stages, bool finishing) {
  const TimePoint now = env_.loop.now();
  Standing::Facts facts{.begun = env_.book.committed() > 0,
                        .finishing = finishing,
                        .ended = ended_.has_value(),
                        .stages = {},
                        .members = env_.authority.lives()};
  for (const StageStatus& stage : stages)
    facts.stages.push_back({stage.stage, stage.serving, stage.secured,
                            !stranded_text(stage, env_.authority.members()).empty(), stage.last_members});
  if (standing_.look(std::move(facts), now, env_.loop.wall()))
    next_announce_ = std::min(next_announce_, announced_at_ + kNewsPause);
  if (now >= next_announce_) announce();
  if (now >= next_exchange_) exchange_records();
}

void Announcer::tell_end(const std::vector<StageStatus>& stages, const std::string& reason) {
  ended_ = reason;
  next_announce_ = {};
  tick(stages, true);
}

void Announcer::announce() {
  announced_at_ = env_.loop.now();
  next_announce_ = announced_at_ + kRecordPeriod;
  if (env_.directory == nullptr) return;
  RunRecord record;
  record.run = RunId{env_.options.key.id().bytes};
  record.name = env_.options.config.run.name;
  record.stages = env_.options.config.pipeline.stages;
  record.manifest = manifest_;
  record.whereabouts = env_.options.whereabouts;
  record.sequence = sequence_ = next_sequence(sequence_, env_.loop.wall());
  record.expires = env_.loop.wall() + kRecordTtl;
  record.ended = ended_;
  if (auto text = pack_record(record, env_.options.key); text.ok())
    env_.directory->announce(*std::move(text), run_key_name(record.run));
  else
    log_warning("no record for the directory: ", text.error().message);
  announce_standing(record);
}

void Announcer::announce_standing(const RunRecord& beside) {
  StandingRecord whole = standing_.record(env_.loop.now(), env_.figures());
  whole.run = beside.run;
  whole.figures.falls = env_.directory->falls();
  whole.sequence = beside.sequence;
  whole.expires = beside.expires;
  auto parts = pack_standing(whole, env_.options.key);
  if (!parts.ok()) return log_warning("how the run stands is not told: ", parts.error().message);
  const std::size_t before = std::exchange(standing_parts_, parts->size());
  for (std::size_t part = 0; part < std::max(before, standing_parts_); ++part) {
    const std::string key = standing_key(whole.run, static_cast<std::uint16_t>(part));
    part < standing_parts_ ? env_.directory->announce(std::move((*parts)[part]), key) : env_.directory->withdraw(key);
  }
}

// What the peers know keeps memory fresh. Each answer costs as many signatures as it has records, so news of how the
// run stands is no reason to ask.
void Announcer::exchange_records() {
  next_exchange_ = env_.loop.now() + kRecordPeriod;
  if (env_.directory == nullptr) return;
  for (const StageMembers& stage : env_.authority.members().stages)
    for (const Member& member : stage.members)
      if (env_.links.remote(member.peer)) (void)env_.links.send(member.peer, PeersQuery{});
}

void Announcer::withdraw() {
  if (env_.directory == nullptr) return;
  const RunId run{env_.options.key.id().bytes};
  env_.directory->withdraw(run_key_name(run));
  for (std::size_t part = 0; part < standing_parts_; ++part)
    env_.directory->withdraw(standing_key(run, static_cast<std::uint16_t>(part)));
}

}  // namespace shoal
