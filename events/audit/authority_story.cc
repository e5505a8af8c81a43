#include "events/audit/authority_story.h"

#include <algorithm>

#include "common/peer_name.h"

namespace shoal {
namespace {

std::uint64_t mix_of(std::string_view text) { return std::hash<std::string_view>{}(text); }

// The same for every order of the members and of their serials.
std::uint64_t mix_of(const std::vector<Secured>& secured) {
  std::uint64_t mix = secured.size();
  for (const Secured& member : secured) {
    std::uint64_t serials = member.serials.size();
    for (const std::uint64_t serial : member.serials) serials += mix64(serial);
    mix += mix64(std::hash<Session>{}(member.session), serials);
  }
  return mix;
}

RoundFact fact_of(const ReadEvent& e, const TrainerLife& life) {
  RoundFact round;
  round.stage = e.stage->value;
  round.life = life.number;
  round.round = e.round->value;
  round.version = e.version->value;
  round.content = mix_of(*e.secured);
  round.tag = *e.tag;
  round.digest = *e.digest;
  return round;
}

}  // namespace

void AuthorityStory::take(const ReadEvent& e) {
  switch (e.event) {
    case EventKind::kMember:
      return take_member(e);
    case EventKind::kSessionOver:
      return take_over(e);
    case EventKind::kRoundOpen:
      return take_open(e);
    case EventKind::kRoundAbandon:
      return take_abandoned(e);
    case EventKind::kRoundCommit:
      return take_round(e);
    case EventKind::kRestored:
      return take_restored(e);
    default:
      return;
  }
}

void AuthorityStory::take_member(const ReadEvent& e) {
  SessionFact& session = books_.sessions[*e.about];
  const auto stage = e.stage->value;
  if (session.stage && *session.stage != stage)
    findings_.violation("session ", *e.about, " is of stage ", stage, ", before it was of stage ", *session.stage);
  session.stage = stage;
  if (e.state != "joined") return;
  // Said before it is durable: a launching process that died in between says it again.
  if (session.joined_life == books_.life.number || session.over)
    findings_.violation("session ", *e.about, " joined twice");
  session.joined = true;
  session.joined_life = books_.life.number;
  books_.names[e.about->peer_tag] = check_peer_name(e.peer_name).ok() ? e.peer_name : "";
  if (e.about_peer && !is_of(*e.about, *e.about_peer))
    findings_.violation("session ", *e.about, " is no session of peer ", *e.about_peer);
}

void AuthorityStory::take_over(const ReadEvent& e) {
  SessionFact& session = books_.sessions[*e.about];
  const std::uint64_t told = mix64(mix_of(e.cause), e.stage->value) | 1;
  if (session.over_told != 0 && session.over_told != told)
    findings_.violation("session ", *e.about, " was over before, for another cause or at another stage");
  if (session.over_life == books_.life.number) findings_.violation("session ", *e.about, " was over twice");
  if (session.stage && *session.stage != e.stage->value)
    findings_.violation("session ", *e.about, " is over at stage ", *e.stage, ", it was of stage ", *session.stage);
  if (!session.joined) findings_.untold("session ", *e.about, " is over and never joined");
  session.over = true;
  session.over_told = told;
  session.over_life = books_.life.number;
  session.over_cause = e.cause;
}

void AuthorityStory::take_open(const ReadEvent& e) {
  const auto stage = e.stage->value;
  StageFact& fact = books_.stages[stage];
  if (const std::uint64_t before = std::max(fact.opened, fact.restored); e.round->value <= before)
    findings_.violation("round ", *e.round, " of stage ", stage, " is opened behind round ", before);
  const RoundStory* last = fact.opened == 0 ? nullptr : &fact.stories[fact.opened];
  if (last != nullptr && !last->committed && !last->abandoned && opened_in_[stage] == books_.life.number)
    findings_.untold("round ", *e.round, " of stage ", stage, " is opened, round ", fact.opened,
                     " was neither committed nor abandoned");
  if (e.version->value != fact.newest())
    findings_.untold("round ", *e.round, " of stage ", stage, " starts from version ", *e.version, ", the newest is ",
                     fact.newest());
  RoundStory& story = fact.stories[e.round->value];
  story.opened = true;
  story.base = e.version->value;
  story.step = e.step->value;
  story.members = *e.members;
  fact.opened = std::max(fact.opened, e.round->value);
  opened_in_[stage] = books_.life.number;
}

void AuthorityStory::take_abandoned(const ReadEvent& e) {
  RoundStory& story = books_.stages[e.stage->value].stories[e.round->value];
  if (!story.opened) findings_.untold("round ", *e.round, " of stage ", *e.stage, " was abandoned and never opened");
  if (std::exchange(story.abandoned, true))
    findings_.violation("round ", *e.round, " of stage ", *e.stage, " was abandoned twice");
  if (story.committed) findings_.violation("round ", *e.round, " of stage ", *e.stage, " was committed and abandoned");
}

void AuthorityStory::take_round(const ReadEvent& e) {
  RoundFact round = fact_of(e, books_.life);
  round.step = e.step->value;
  if (is_repeat(round)) return;
  compare(round);
  take_secured(e, keep(std::move(round)));
  const RoundStory& story = books_.stages[e.stage->value].stories[e.round->value];
  if (story.opened && story.members != e.secured->size())
    findings_.violation("round ", *e.round, " of stage ", *e.stage, " names ", e.secured->size(),
                        " members, it was opened with ", story.members);
}

void AuthorityStory::take_restored(const ReadEvent& e) {
  RoundFact restore = fact_of(e, books_.life);
  restore.back_to = e.back_to->value;
  if (is_repeat(restore)) return;
  judge_restore(e);
  take_back(e);
  judge_left_out(e);
  keep(std::move(restore));
}

// Its number, and the version that it goes back to.
void AuthorityStory::judge_restore(const ReadEvent& e) {
  const auto stage = e.stage->value;
  StageFact& fact = books_.stages[stage];
  if (!fact.stories.empty() && fact.stories.rbegin()->first >= e.round->value)
    findings_.violation("stage ", stage, " is restored by round ", *e.round, ", behind round ",
                        fact.stories.rbegin()->first);
  fact.stories[e.round->value].committed = true;
  fact.restored = std::max(fact.restored, e.round->value);
  if (e.version->value < 2 || e.back_to->value >= e.version->value - 1)
    return findings_.violation("stage ", stage, " goes back to version ", *e.back_to, " and makes version ", *e.version,
                               ", where it is not below the newest");
  const RoundFact* made = books_.round_of(stage, e.back_to->value);
  if (made == nullptr && e.back_to->value > 0)
    findings_.untold("stage ", stage, " goes back to version ", *e.back_to, ", which no round made");
  if (made != nullptr && made->digest != *e.digest)
    findings_.violation("the digest of version ", *e.version, " of stage ", stage, " is not that of version ",
                        *e.back_to, ", to which it goes back (", made->where, ")");
  for (std::uint64_t version = e.back_to->value + 1; version < e.version->value && version <= fact.newest();
       ++version) {
    const RoundFact* later = books_.round_of(stage, version);
    if (later != nullptr && later->back_to && *later->back_to < e.back_to->value)
      findings_.violation("stage ", stage, " goes back to version ", *e.back_to,
                          ", which was left behind by the restore that made version ", version);
  }
}

// What it names was secured by a round behind that version, and taken back by no restore before.
void AuthorityStory::take_back(const ReadEvent& e) {
  CountTag sum = 0;
  bool known = true;
  for (const Secured& member : *e.secured)
    for (const std::uint64_t serial : member.serials) {
      const EntryName name{member.session, serial};
      const auto found = books_.entries.find(name);
      const RoundFact* round =
          found == books_.entries.end() || found->second.round == 0 ? nullptr : &books_.rounds[found->second.round - 1];
      if (found == books_.entries.end() || !found->second.committed)
        known = false;
      else
        sum += count_tag(found->second.microbatch);
      if (round == nullptr || round->stage != e.stage->value || round->version <= e.back_to->value ||
          round->version >= e.version->value)
        findings_.untold("takes back entry ", name, ", which no round behind version ", *e.back_to, " of stage ",
                         *e.stage, " secured");
      else if (std::exchange(found->second.taken_back, true))
        findings_.violation("takes back entry ", name, ", which was taken back before");
    }
  if (known && sum != *e.tag)
    findings_.violation("the tag of round ", *e.round, " of stage ", *e.stage,
                        " is not the sum over what it takes back");
  books_.stages[e.stage->value].taken_back += *e.tag;
}

void AuthorityStory::judge_left_out(const ReadEvent& e) {
  std::uint64_t count = 0;
  EntryName first;
  for (const auto& [name, fact] : books_.entries) {
    if (fact.round == 0 || fact.taken_back) continue;
    const RoundFact& round = books_.rounds[fact.round - 1];
    if (round.stage != e.stage->value || round.version <= e.back_to->value || round.version >= e.version->value)
      continue;
    if (count++ == 0 || name < first) first = name;
  }
  if (count > 0)
    findings_.untold("goes back to version ", *e.back_to, " of stage ", *e.stage, " and leaves out ", count,
                     " entries that rounds behind it secured, the first is ", first);
}

// A later life may say again what it found in its log.
bool AuthorityStory::is_repeat(const RoundFact& round) {
  const auto found = books_.by_number.find({round.stage, round.round});
  if (found == books_.by_number.end()) return false;
  RoundFact& known = books_.rounds[found->second - 1];
  if (known.life == round.life)
    findings_.violation("round ", round.round, " of stage ", round.stage, " was committed twice in one life");
  known.life = round.life;
  if (known.version != round.version || known.content != round.content || known.step != round.step ||
      known.tag != round.tag || known.digest != round.digest || known.back_to != round.back_to)
    findings_.violation("round ", round.round, " of stage ", round.stage,
                        " was committed twice with different content, before in ", known.where);
  return true;
}

RoundFact& AuthorityStory::keep(RoundFact round) {
  round.where = findings_.place();
  books_.rounds.push_back(std::move(round));
  RoundFact& kept = books_.rounds.back();
  books_.by_number[{kept.stage, kept.round}] = static_cast<std::uint32_t>(books_.rounds.size());
  take_version(kept);
  return kept;
}

// With what the authority's other lines say of the round.
void AuthorityStory::compare(const RoundFact& round) {
  RoundStory& story = books_.stages[round.stage].stories[round.round];
  story.committed = true;
  if (story.abandoned)
    findings_.violation("round ", round.round, " of stage ", round.stage, " was abandoned and committed");
  if (!story.opened)
    findings_.untold("round ", round.round, " of stage ", round.stage, " was committed and not opened before");
  else if (story.base + 1 != round.version || story.step != round.step)
    findings_.violation("round ", round.round, " of stage ", round.stage,
                        " has another version or step than it was opened with");
}

void AuthorityStory::take_version(const RoundFact& round) {
  StageFact& stage = books_.stages[round.stage];
  const auto index = static_cast<std::uint32_t>(books_.rounds.size());
  if (round.version == 0)
    return findings_.violation("round ", round.round, " of stage ", round.stage, " makes version 0");
  if (const RoundFact* other = books_.round_of(round.stage, round.version))
    return findings_.violation("version ", round.version, " of stage ", round.stage, " was made by rounds ",
                               other->round, " and ", round.round);
  if (round.version != stage.newest() + 1)
    findings_.untold("round ", round.round, " of stage ", round.stage, " makes version ", round.version,
                     ", before it is ", stage.newest());
  // A version far ahead is a damaged line: it takes no room.
  if (round.version > stage.newest() + (std::uint64_t{1} << 20)) return;
  if (round.version > stage.newest()) stage.rounds.resize(round.version);
  stage.rounds[round.version - 1] = index;
}

void AuthorityStory::take_secured(const ReadEvent& e, RoundFact& round) {
  const auto index = static_cast<std::uint32_t>(books_.rounds.size());
  CountTag sum = 0;
  bool known = true;
  for (const Secured& member : *e.secured) {
    if (round.has(member.session))
      findings_.violation("round ", *e.round, " of stage ", *e.stage, " names session ", member.session, " twice");
    round.members.emplace_back(member.session, member.serials.size());
    SessionFact& session = books_.sessions[member.session];
    session.named = true;
    if (session.over)
      findings_.untold("round ", *e.round, " of stage ", *e.stage, " names session ", member.session,
                       ", which was over");
    if (!session.joined)
      findings_.untold("round ", *e.round, " of stage ", *e.stage, " names session ", member.session,
                       ", which never joined");
    else if (session.stage && *session.stage != round.stage)
      findings_.violation("round ", *e.round, " of stage ", *e.stage, " names session ", member.session, " of stage ",
                          *session.stage);
    for (const std::uint64_t serial : member.serials) {
      const EntryName name{member.session, serial};
      EntryFact& fact = books_.entries[name];
      if (fact.times < 0xff) ++fact.times;
      if (fact.round == 0) fact.round = index;
      if (fact.taken_back)
        findings_.violation("round ", *e.round, " of stage ", *e.stage, " names entry ", name,
                            ", which was taken back");
      if (!fact.committed) {
        known = false;
        continue;
      }
      sum += count_tag(fact.microbatch);
      if (fact.stage != round.stage)
        findings_.violation("secures entry ", name, " of stage ", fact.stage, " for stage ", round.stage);
      const auto microbatch = books_.microbatches.find(fact.microbatch);
      if (microbatch != books_.microbatches.end() && microbatch->second.issue_life != 0 &&
          microbatch->second.step != round.step)
        findings_.violation("secures entry ", name, " of step ", microbatch->second.step, " for step ", round.step);
    }
  }
  if (known && sum != round.tag)
    findings_.violation("the tag of round ", *e.round, " of stage ", *e.stage, " is not the sum over what it secured");
}

void AuthorityStory::finish() {
  for (auto& [stage, fact] : books_.stages) {
    CountTag sum = 0;
    fact.whole = fact.newest();
    fact.tags.resize(fact.rounds.size());
    for (std::size_t i = 0; i < fact.rounds.size(); ++i) {
      const RoundFact* round = books_.round_of(stage, i + 1);
      if (round == nullptr)
        fact.whole = std::min<std::uint64_t>(fact.whole, i);
      else if (!round->back_to)
        sum += round->tag;
      else if (*round->back_to <= i)
        sum = *round->back_to == 0 ? 0 : fact.tags[*round->back_to - 1];
      fact.tags[i] = sum;
    }
  }
}

}  // namespace shoal
