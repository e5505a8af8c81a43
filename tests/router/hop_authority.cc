// The authority of the harness (member lists, rounds, ends of sessions) and what the whole swarm is checked for.
#include <algorithm>

#include "hop_world.h"

namespace shoal::hop {

void World::publish() {
  MemberList list;
  list.epoch = Epoch(++epoch_.value);
  for (std::uint16_t k = 0; k < options_.stages; ++k) {
    StageMembers stage;
    stage.stage = StageId(k);
    for (const PeerActor* peer : members_) {
      if (peer->stage() != stage.stage) continue;
      Member member;
      member.session = peer->self();
      member.peer = peer_of(peer->self());
      member.serving = true;
      stage.members.push_back(member);
    }
    list.stages.push_back(stage);
  }
  for (const auto& actor : actors_)
    if (!actor->dead && !over_.contains(actor->self()))
      after(*actor, message_delay(), [a = actor.get(), list] { a->on_members(list); });
}

std::vector<PeerActor*> World::peers() {
  std::vector<PeerActor*> result;
  for (PeerActor* peer : members_)
    if (!peer->dead) result.push_back(peer);
  return result;
}

void World::end_session(const Session& session) {
  const auto it =
      std::find_if(members_.begin(), members_.end(), [&](const PeerActor* p) { return p->self() == session; });
  if (it == members_.end()) return;
  const StageId stage = (*it)->stage();
  note(session, "session_over", {}, "");
  members_.erase(it);
  over_.insert(session);
  decisions_.push_back({std::nullopt, session});
  if (!trainer_away_)
    after(*trainer_, 0ms, [this, t = trainer_, session] { t->on_session_over(session, "session over"); });
  publish();
  at(now_ + 500ms + message_delay(), [this, stage] {
    spawn(stage);
    publish();
  });
}

void World::authority() {
  std::vector<Session> ended;
  for (const PeerActor* peer : members_)
    if ((peer->dead && now_ - peer->stopped_at > 1s) || (peer->frozen && now_ - peer->stopped_at > fence_after))
      ended.push_back(peer->self());
  for (const Session& session : ended) end_session(session);
  if (!rounds) return;
  if (options_.step_size > 0) {
    for (std::uint16_t k = 0; k < options_.stages; ++k) step_round(StageId(k));
  } else if (now_ >= next_round_) {
    next_round_ = now_ + 700ms;
    for (std::uint16_t k = 0; k < options_.stages; ++k) round(StageId(k));
  }
}

void World::round(StageId stage) {
  RoundCommit commit;
  commit.stage = stage;
  commit.round = RoundId(++rounds_);
  for (PeerActor* peer : members_) {
    if (peer->stage() != stage || !peer->running() || peer->round_pending) continue;
    if (trainer_->settled() && !trainer_away_) {  // the end of the run closes open windows
      peer->windows().flush();
      peer->pump();
    }
    const std::vector<EntrySerial> serials = peer->windows().stepped();
    if (serials.empty()) continue;
    anchor_[stage.value] += std::exchange(peer->device.unsecured, 0);
    commit.secured.push_back({peer->self(), serials});
    peer->round_pending = true;
    after(*peer, message_delay(), [peer, serials] {
      peer->ledger().secure(serials);
      peer->round_pending = false;
      peer->check();
    });
  }
  if (!commit.secured.empty()) decide(std::move(commit));
}

void World::step_round(StageId stage) {
  const std::uint64_t next = step_done_[stage.value] + 1;
  const auto step = steps_.find(next);
  if (step == steps_.end()) return;
  bool ready = true;
  std::vector<PeerActor*> mine;
  for (PeerActor* peer : members_) {
    if (peer->stage() != stage) continue;
    if (step_told_.insert({peer->self(), next}).second)
      after(*peer, message_delay(), [peer, s = step->second] { peer->on_step(s); });
    ready = ready && peer->running() && !peer->device_busy() && peer->ledger().step_ready(StepId(next)) &&
            peer->windows().unsettled_at_other() == 0;
    mine.push_back(peer);
  }
  if (!ready || mine.empty()) return;
  RoundCommit commit;
  commit.stage = stage;
  commit.round = RoundId(++rounds_);
  commit.step = StepId(next);
  for (PeerActor* peer : mine) {
    std::vector<EntrySerial> serials;
    std::optional<WindowSlot> slot;
    if (const Windows::Window* window = peer->windows().step_window(StepId(next))) {
      slot = window->slot;
      for (const auto& [serial, entry] : window->entries) serials.push_back(serial);
    }
    peer->device.write(slot);
    anchor_[stage.value] += std::exchange(peer->device.unsecured, 0);
    peer->windows().wrote(peer->device.stamp);
    peer->ledger().secure(serials);
    peer->windows().pop_step(StepId(next));
    peer->check();
    peer->pump();
    if (!serials.empty()) commit.secured.push_back({peer->self(), serials});
  }
  step_done_[stage.value] = next;
  decide(std::move(commit));
}

std::uint64_t World::steps_done() const { return *std::min_element(step_done_.begin(), step_done_.end()); }

void World::announce(const Step& step) { steps_.emplace(step.step.value, step); }

void World::decide(RoundCommit commit) {
  for (const Secured& secured : commit.secured)
    for (const std::uint64_t serial : secured.serials) {
      const EntryName entry_name{secured.session, serial};
      const auto path = std::find_if(paths_.begin(), paths_.end(),
                                     [&](const auto& item) { return item.second[commit.stage.value] == entry_name; });
      if (path == paths_.end()) {
        violate("a round secures an entry that no log names");
        continue;
      }
      auto& entries = secured_[{path->first, commit.stage.value}];
      if (!entries.insert(entry_name).second || entries.size() > 1) violate("secured twice");
    }
  decisions_.push_back({commit, {}});
  if (!trainer_away_) after(*trainer_, 0ms, [t = trainer_, commit] { t->on_round_commit(commit); });
}

// ---- checks ----

void World::violate(const std::string& what) {
  if (violations_.size() < 20)
    violations_.push_back(what + " at " + std::to_string(seconds_of(now_.time_since_epoch())) + " s");
}

void World::note(const Session& who, std::string_view name, const MicrobatchId& m, std::string_view cause) {
  std::uint64_t hash = mix64(who.peer_tag, m.serial);
  for (const char c : name) hash = mix64(hash, static_cast<std::uint8_t>(c));
  trace_ = mix64(trace_, mix64(hash, static_cast<std::uint64_t>(now_.time_since_epoch().count())));
  events_.push_back({now_, who, std::string(name), m, std::string(cause)});
  if (on_event) on_event(events_.back());
}

std::size_t World::count(std::string_view event) const {
  return static_cast<std::size_t>(
      std::count_if(events_.begin(), events_.end(), [&](const Event& e) { return e.name == event; }));
}

std::size_t World::count(std::string_view event, const Session& who, std::string_view cause) const {
  return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const Event& e) {
    return e.name == event && e.who == who && (cause.empty() || e.cause == cause);
  }));
}

void World::logged(const MicrobatchId& id, const std::vector<EntryName>& path) {
  note({}, "logged", id, "");
  if (!paths_.emplace(id.serial, path).second) violate("microbatch " + std::to_string(id.serial) + " is decided twice");
}

void World::replayed(const MicrobatchId& id, const std::vector<EntryName>& path) {
  const auto [it, fresh] = paths_.emplace(id.serial, path);
  if (!fresh && it->second != path) violate("the log changed its mind about microbatch " + std::to_string(id.serial));
}

void World::settled(PeerActor& peer, const MicrobatchId& id, const EntryName& entry_name) {
  const std::uint16_t k = peer.stage().value;
  auto& entries = settled_[{id.serial, k}];
  entries.insert(entry_name);
  if (entries.size() > 1)
    violate("microbatch " + std::to_string(id.serial) + " is settled twice at stage " + std::to_string(k));
  if (const auto path = paths_.find(id.serial); path == paths_.end() || path->second[k] != entry_name)
    violate("an entry that the log does not name is settled");
}

void World::list(const CommitBook::Listing& listing) {
  note(listing.entry_name.session, "lost", listing.microbatch, listing.cause);
  lost_.insert({listing.microbatch.serial, listing.stage.value});
}

bool World::finished() {
  if (trainer_away_ || !trainer_->running() || !trainer_->settled() || trainer_->book().low() < options_.microbatches)
    return false;
  for (const PeerActor* peer : members_)
    if (!peer->running()) return false;
  // Claims of branches that lost fall within L a hop; then nothing is left of what was decided.
  return std::all_of(members_.begin(), members_.end(), [](PeerActor* p) {
    return p->ledger().entries().all().empty() && p->ledger().quiet() && !p->device_busy() &&
           p->courier().hops().size() == 0 && !p->round_pending;
  });
}

void World::check_end() {
  for (std::uint16_t k = 0; k < options_.stages; ++k) {
    CountTag held = anchor_[k], expected = 0;
    for (PeerActor* peer : members_) {
      if (peer->stage().value != k) continue;
      held += peer->device.unsecured + peer->device.window[0] + peer->device.window[1];
      if (!peer->device.items.empty()) violate("a device keeps what no ledger knows");
    }
    for (std::uint64_t m = 0; m < options_.microbatches; ++m) {
      const bool lost = lost_.contains({m, k});
      if (!lost) expected += count_tag({kTrainerId, m});
      if (lost == secured_.contains({m, k}))
        violate("microbatch " + std::to_string(m) + " at stage " + std::to_string(k) +
                (lost ? " is lost and secured" : " is lost in silence"));
    }
    if (held != expected) violate("stage " + std::to_string(k) + " does not hold what was committed");
  }
  if (options_.faults == 0 && !options_.may_list && !lost_.empty()) violate("something was lost though nothing failed");
}

}  // namespace shoal::hop
