// Time, links, faults. The authority and the checks: hop_authority.cc.
#include "hop_world.h"

#include <algorithm>

#include "common/crypto/hash.h"

namespace shoal::hop {

namespace {
constexpr Duration kTick = 50ms;
constexpr Duration kFaultsEnd = 10s;
}  // namespace

World::World(const Options& options)
    : options_(options), rng_(options.seed), anchor_(options.stages, 0), step_done_(options.stages, 0) {
  start_trainer();
  for (std::uint16_t k = 0; k < options_.stages; ++k)
    for (std::size_t i = 0; i < options_.replicas; ++i) first_.push_back(&spawn(StageId(k)));
  publish();
  at(now_ + 100ms, [this] { trainer_->start(); });
  at(now_ + kTick, [this] { tick(); });
  for (std::size_t i = 0; i < options_.faults; ++i)
    at(now_ + Duration(rng_.below(static_cast<std::uint64_t>(kFaultsEnd.count()))), [this] { random_fault(); });
}

World::~World() = default;

void World::at(TimePoint time, std::function<void()> act) { queue_.push({time, order_++, std::move(act)}); }

bool World::turn() {
  if (queue_.empty()) return false;
  Turn next = queue_.top();
  queue_.pop();
  now_ = next.at;
  ++turns_;
  next.act();
  if (each_turn) each_turn();
  return true;
}

bool World::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now_ + limit;
  while (!done()) {
    if (queue_.empty() || queue_.top().at > end) return false;
    turn();
  }
  return true;
}

void World::run_for(Duration time) {
  (void)run_until([] { return false; }, time);
}

bool World::run() {
  const bool ended =
      run_until([this] { return !violations_.empty() || (turns_ % 16 == 0 && finished()); }, options_.limit);
  if (!violations_.empty()) return false;
  if (!ended)
    violate("the run does not end: low " + std::to_string(trainer_->book().low()) + ", it waits for " +
            trainer_->book().waiting_for());
  else
    check_end();
  return violations_.empty();
}

void World::deliver(Actor& actor, std::function<void()> act) {
  if (actor.dead) return;
  if (actor.frozen)
    actor.backlog.push_back(std::move(act));
  else
    act();
}

void World::after(Actor& actor, Duration delay, std::function<void()> act) {
  at(now_ + delay, [this, &actor, act = std::move(act)] { deliver(actor, act); });
}

Duration World::message_delay() {
  Duration delay =
      options_.delay_min +
      Duration(rng_.below(static_cast<std::uint64_t>((options_.delay_max - options_.delay_min).count()) + 1));
  if (rng_.chance(options_.slow_chance)) delay += Duration(rng_.below(1'000'000'000));
  return delay;
}

bool World::base_lost() { return options_.base_lost > 0 && rng_.chance(options_.base_lost); }

Duration World::job_duration() {
  Duration time = options_.job_min +
                  Duration(rng_.below(static_cast<std::uint64_t>((options_.job_max - options_.job_min).count()) + 1));
  if (rng_.chance(options_.slow_chance))
    time += Duration(rng_.below(static_cast<std::uint64_t>(options_.slow_job.count())));
  return time;
}

std::optional<Session> World::session_of(const PeerId& peer) const {
  const auto it = by_peer_.find(peer);
  if (it == by_peer_.end()) return std::nullopt;
  return it->second;
}

Actor* World::find(const Session& session) {
  const auto it = by_session_.find(session);
  return it == by_session_.end() ? nullptr : it->second;
}

World::Line& World::line(const Session& a, const Session& b) { return lines_[std::minmax(a, b)]; }

Result<TransferId> World::send(const Session& from, const Session& to, Message message, bool frames) {
  Actor* receiver = find(to);
  Line& l = line(from, to);
  if (receiver == nullptr || receiver->dead || over_.contains(to) || l.down_until > now_)
    return make_error(ErrorCode::kUnreachable, "no link");
  const TransferId transfer = frames ? next_transfer_++ : 0;
  std::optional<Duration> delay = message_delay();
  const Duration bulk = message_delay();
  if (delay_of) {
    if (const auto told = delay_of(from, to, message); !told)
      return transfer;  // lost
    else if (*told > 0ms)
      delay = *told;
  }
  const std::size_t direction = from < to ? 0 : 1;
  auto& last = l.last[direction];
  // Each lane of a link keeps its order; a delay that a test asked for may be overtaken.
  const bool steered = delay_of != nullptr;
  const TimePoint head = steered ? now_ + *delay : std::max(now_ + *delay, last[0] + 1us);
  const TimePoint tail = std::max(head + bulk, last[1] + 1us);
  last[0] = std::max(last[0], head);
  if (frames) last[1] = tail;
  const std::uint64_t generation = l.generation;
  at(head, [this, receiver, from, to, generation, transfer, message = std::move(message)]() mutable {
    if (line(from, to).generation != generation || over_.contains(from)) return;
    trace_ = mix64(trace_, mix64(static_cast<std::uint64_t>(now_.time_since_epoch().count()),
                                 message.index() * 64 + (from.peer_tag ^ to.peer_tag)));
    deliver(*receiver, [this, receiver, from, transfer, message]() mutable {
      if (!over_.contains(from)) receiver->on_message(from, message, transfer);
    });
  });
  if (frames)
    at(tail, [this, receiver, from, to, generation, transfer] {
      if (line(from, to).generation != generation || over_.contains(from)) return;
      deliver(*receiver, [this, receiver, from, transfer] {
        if (!refused_.contains(transfer)) receiver->on_frames(from, transfer, !dropped_.contains(transfer));
      });
    });
  return transfer;
}

void World::break_line(const Session& a, const Session& b, Duration time) {
  Line& l = line(a, b);
  ++l.generation;
  l.down_until = std::max(l.down_until, now_ + time);
  for (const auto& [mine, other] : {std::pair{a, b}, std::pair{b, a}})
    if (Actor* actor = find(mine); actor != nullptr && !actor->dead)
      after(*actor, Duration(rng_.below(20'000'000)), [actor, other = other] { actor->on_link_down(other); });
}

void World::cut(const Session& a, const Session& b, Duration time) {
  note(a, "cut", {}, "");
  break_line(a, b, time);
}

void World::kill(Actor& actor) {
  if (actor.dead) return;
  note(actor.self(), "killed", {}, "");
  actor.dead = true;
  actor.stopped_at = now_;
  for (const auto& [ends, l] : std::map(lines_))
    if (ends.first == actor.self() || ends.second == actor.self()) break_line(ends.first, ends.second, 0ms);
}

void World::freeze(Actor& actor) {
  if (!actor.running()) return;
  note(actor.self(), "frozen", {}, "");
  actor.frozen = true;
  actor.stopped_at = now_;
}

void World::thaw(Actor& actor) {
  if (actor.dead || !actor.frozen) return;
  note(actor.self(), "thawed", {}, "");
  actor.frozen = false;
  if (over_.contains(actor.self()) && &actor != trainer_) {  // it learns at once that its session is over
    kill(actor);
    return;
  }
  for (const auto& act : std::exchange(actor.backlog, {})) deliver(actor, act);
}

void World::kill_trainer(Duration away) {
  if (trainer_away_) return;
  trainer_away_ = true;
  TrainerActor& old = *trainer_;
  // What was not synced is torn off anywhere, within a record too.
  std::vector<std::uint8_t> tail;
  for (const Bytes& record : old.unsynced()) {
    const Bytes framed = framer_.frame(record);
    tail.insert(tail.end(), framed.data(), framed.data() + framed.size());
  }
  if (!tail.empty()) tail.resize(rng_.below(tail.size() + 1));
  kill(old);
  log_.insert(log_.end(), tail.begin(), tail.end());
  at(now_ + away, [this] {
    const auto bytes = read_record_log(log_, kTrainerLog, [](ByteView) { return Status(); });
    if (!bytes.ok())
      violate("a torn log is taken for damage: " + bytes.error().message);
    else
      log_.resize(*bytes);
    framer_ = RecordFramer(kTrainerLog, log_.size());
    framer_.synced(log_.size());
    start_trainer();
    publish();
    after(*trainer_, 50ms, [this] { trainer_->start(); });
    trainer_away_ = false;
  });
}

void World::start_trainer() {
  const Session session = new_session(7);
  trainer_session_ = by_peer_[peer_of(session)] = session;
  auto trainer = std::make_unique<TrainerActor>(*this, session);
  ++trainer_lives_;
  trainer_ = trainer.get();
  by_session_[session] = trainer_;
  actors_.push_back(std::move(trainer));
}

void World::log_write(const Bytes& record) {
  const Bytes framed = framer_.frame(record);
  log_.insert(log_.end(), framed.data(), framed.data() + framed.size());
  framer_.synced(log_.size());
}

PeerActor& World::spawn(StageId stage) {
  const Session session = new_session(++next_tag_);
  by_peer_[peer_of(session)] = session;
  auto peer = std::make_unique<PeerActor>(*this, session, stage);
  PeerActor& result = *peer;
  by_session_[session] = peer.get();
  members_.push_back(peer.get());
  actors_.push_back(std::move(peer));
  note(session, "joined_stage", {}, std::to_string(stage.value));
  return result;
}

PeerActor& World::peer(std::uint16_t stage, std::size_t index) { return *first_.at(stage * options_.replicas + index); }

void World::random_fault() {
  std::vector<PeerActor*> alive = peers();
  std::erase_if(alive, [](const PeerActor* p) { return !p->running(); });
  if (alive.empty()) return;
  PeerActor& victim = *alive[rng_.below(alive.size())];
  const auto some_time = [this](std::uint64_t ms) { return Duration(std::chrono::milliseconds(50 + rng_.below(ms))); };
  switch (rng_.below(options_.trainer_faults ? 7 : 5)) {
    case 0:
      return kill(victim);
    case 1:
    case 2: {
      freeze(victim);
      at(now_ + some_time(9000), [this, &victim] { thaw(victim); });
      return;
    }
    case 3:
      return cut(victim.self(), trainer_->self(), some_time(3000));
    case 4:
      return cut(victim.self(), alive[rng_.below(alive.size())]->self(), some_time(3000));
    case 5:
      return kill_trainer(some_time(3000));
    default:
      TrainerActor& stopped = *trainer_;
      freeze(stopped);
      at(now_ + some_time(6000), [this, &stopped] { thaw(stopped); });
  }
}

void World::tick() {
  authority();
  for (std::size_t i = 0; i < actors_.size(); ++i)  // ticks may not add actors, the authority did
    if (actors_[i]->running()) actors_[i]->tick();
  at(now_ + kTick, [this] { tick(); });
}

}  // namespace shoal::hop
