#include "tests/sync/swarm.h"

#include <algorithm>
#include <sstream>

#include "tests/sync/sync_fixtures.h"

namespace shoal::test {
namespace {

constexpr const char* kLogPath = "authority.log";
constexpr std::size_t kMicrobatchesPerStep = 6;

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

std::pair<std::size_t, std::size_t> pair_of(std::size_t a, std::size_t b) { return {std::min(a, b), std::max(a, b)}; }

}  // namespace

// ---- HostLoop ----
void HostLoop::freeze(Duration time) { frozen_until_ = std::max(frozen_until_, base_.now() + time); }

void HostLoop::kill() {
  *life_ += 1;
  life_ = std::make_shared<int>(0);
  frozen_until_ = {};
  live_.clear();
}

TimerId HostLoop::at(TimePoint when, std::function<void()> task) {
  auto cancelled = std::make_shared<bool>(false);
  auto id = std::make_shared<TimerId>(0);
  *id = base_.at(when, wrap([this, cancelled, id, task = std::move(task)] {
                   live_.erase(*id);
                   if (!*cancelled) task();
                 }));
  live_[*id] = cancelled;
  return *id;
}

void HostLoop::cancel(TimerId timer) {
  const auto at = live_.find(timer);
  if (at == live_.end()) return;
  *at->second = true;
  live_.erase(at);
  base_.cancel(timer);
}

std::function<void()> HostLoop::wrap(std::function<void()> task) {
  return [this, life = std::weak_ptr<int>(life_), task = std::move(task)] {
    if (life.expired()) return;
    if (frozen()) return void(base_.at(frozen_until_, wrap(task)));
    task();
  };
}

// ---- Swarm ----
Swarm::Swarm(const SwarmOptions& given)
    : options(given),
      rng(given.seed),
      key(KeyPair::from_seed({1, static_cast<std::uint8_t>(given.seed)})),
      disk(given.seed) {
  run_id.bytes = key.id().bytes;
  for (std::size_t i = 0; i <= options.peers; ++i) hosts.push_back(std::make_unique<Host>(loop_));
  boot_authority();
  for (std::size_t i = 1; i <= options.peers; ++i) {
    loop_.after(std::chrono::milliseconds(rng.below(3000)), [this, i] { replace(i, Bytes()); });
    schedule_work(i);
  }
  if (options.rule == RuleId::kAllreduce) loop_.after(4s, [this] { drive_step(); });
  if (options.faults) schedule_fault();
}

Swarm::~Swarm() {
  authority.reset();
  for (auto& host : hosts) host->loop.kill();
}

void Swarm::boot_authority() {
  storage = std::make_unique<SimStorage>(hosts[0]->loop, disk);
  auto log = open_authority_log(*storage, kLogPath);
  if (!log.ok()) return problem(log.error().message);
  AuthorityOptions authority_options;
  authority_options.run = run_id;
  authority_options.rule = options.rule;
  authority_options.round_targets = 20 * kTargetsOfEntry / options.peers;
  authority_options.round_budget = options.round_budget;
  authority_options.payload_bytes = {
      static_cast<std::uint64_t>(options.bytes_per_byte * kIntegerParameters * sizeof(float))};
  authority_options.round_grace = 1s;
  authority_options.join_hold = 2s;
  auto opened = Authority::open(authority_options, *this, hosts[0]->loop, std::move(*log));
  if (!opened.ok()) return problem(opened.error().message);
  authority = std::move(*opened);
  authority->sync_log([this](Status synced) {
    if (!synced.ok()) return problem(synced.error().message);
    authority->start();
    for (std::size_t i = 1; i < hosts.size(); ++i) link_up(i);
  });
}

void Swarm::kill_authority() {
  authority.reset();
  storage->die();
  hosts[0]->loop.kill();
  storage.reset();
  disk.power_lost();
  for (std::size_t i = 1; i < hosts.size(); ++i) ++link_life_[pair_of(0, i)];
}

// Both ends hear of a link that is there again.
void Swarm::link_up(std::size_t host) {
  if (!hosts[host]->replica) return;
  const Session session = hosts[host]->replica->self_;
  deliver(host, 0, [this, host, session] {
    if (authority) authority->on_link_up({peer_of(host), session, PeerRole::kPeer});
  });
  deliver(0, host, [this, host] {
    if (hosts[host]->replica && !hosts[host]->replica->over_) hosts[host]->replica->membership_.on_authority_up();
  });
}

void Swarm::deliver(std::size_t from, std::size_t to, std::function<void()> task) {
  const auto pair = pair_of(from, to);
  if (loop_.now() < broken_until_[pair] || cut_.contains({from, to})) return;
  TimePoint& busy = busy_until_[{from, to}];
  busy = std::max(busy + 1us, loop_.now() + std::chrono::microseconds(1000 + rng.below(30'000)));
  loop_.at(busy, [this, pair, to, life = link_life_[pair], task = hosts[to]->loop.wrap(std::move(task))] {
    if (life == link_life_[pair] && loop_.now() >= broken_until_[pair]) task();
  });
}

void Swarm::deliver_part(std::size_t from, std::size_t to, std::size_t bytes, std::function<void()> task) {
  if (options.link_bytes_per_second <= 0) return deliver(from, to, std::move(task));
  if (cut_.contains({from, to})) return;
  std::vector<Transfer>& line = transfers_[{from, to}];
  const TimePoint begin = std::max(loop_.now(), line.empty() ? TimePoint{} : line.back().end);
  const double weight = static_cast<double>(bytes) * options.bytes_per_byte;
  line.push_back({begin, begin + from_seconds(weight / options.link_bytes_per_second), weight});
  hosts[from]->loop.at(line.back().end, [this, from, to, task = std::move(task)] { deliver(from, to, task); });
}

std::uint64_t Swarm::moved(std::size_t from, std::size_t to) const {
  const auto line = transfers_.find({from, to});
  if (line == transfers_.end() || cut_.contains({from, to})) return 0;
  double bytes = 0;
  for (const Transfer& transfer : line->second) {
    if (transfer.end <= transfer.begin || loop_.now() <= transfer.begin) continue;
    bytes += transfer.bytes *
             std::min(1.0, seconds_of(loop_.now() - transfer.begin) / seconds_of(transfer.end - transfer.begin));
  }
  return static_cast<std::uint64_t>(bytes);
}

bool Swarm::listed_serving(std::size_t host) const {
  if (!authority || authority->members().stages.empty() || !hosts[host]->replica)
    return true;  // as far as anybody knows
  for (const Member& member : authority->members().stages[0].members)
    if (member.session == hosts[host]->replica->self_) return member.serving;
  return false;
}

void Swarm::send(const PeerId& peer, Message message) {
  for (std::size_t i = 1; i < hosts.size(); ++i)
    if (peer_of(i) == peer)
      deliver(0, i, [this, i, message = std::move(message)] {
        if (hosts[i]->replica) hosts[i]->replica->on_message({}, {}, message, Bytes());
      });
}

std::vector<std::uint8_t> Swarm::sign(ByteView body) {
  const Signature signature = key.sign(body);
  return {signature.begin(), signature.end()};
}

// The old session may be on the stack: it is destroyed in a later turn.
void Swarm::replace(std::size_t host, Bytes held) {
  Host& at = *hosts[host];
  if (at.replica) at.buried.push_back(std::move(at.replica));
  at.loop.post([this, host, held] {
    Host& here = *hosts[host];
    here.buried.clear();
    here.replica = std::make_unique<Replica>(*this, host, Session{host, next_incarnation++}, held);
    here.replica->start();
  });
}

void Swarm::on_round_commit(const RoundCommit& commit) {
  if (const auto known = commits.find(commit.round); known != commits.end()) {
    if (known->second.digest != commit.digest || known->second.tag != commit.tag)
      problem("a round was committed twice, differently");
    return;
  }
  commits[commit.round] = commit;
  CountTag tag = 0;
  for (const Secured& session : commit.secured) {
    if (over.count(session.session)) problem("a commit names a session that was over");
    for (const std::uint64_t serial : session.serials) {
      const EntryName entry_name{session.session, serial};
      if (!secured.insert(entry_name).second) problem(text("counted twice: ", entry_name));
      if (!made.count(entry_name)) problem(text("secured an entry that nobody made: ", entry_name));
      tag += count_tag(made[entry_name].microbatch);
    }
  }
  if (tag != commit.tag) problem(text("the tag of round ", commit.round, " is not the sum over its entries"));
  secured_tag += tag;
}

std::optional<std::string> Swarm::unfit_for_round(StageId, const Session& session,
                                                  const std::vector<std::uint64_t>& serials) const {
  for (const std::uint64_t serial : serials) {
    if (!made.contains(EntryName{session, serial})) return text("entry ", serial, ", which nobody made");
    if (secured.contains(EntryName{session, serial})) return text("entry ", serial, ", which a round contains");
  }
  return std::nullopt;
}

void Swarm::on_session_over(const Session& session, StageId, const std::string&) { over.insert(session); }

void Swarm::schedule_work(std::size_t host) {
  hosts[host]->loop.after(std::chrono::milliseconds(100 + rng.below(200)), [this, host] {
    if (working && options.rule == RuleId::kDiloco && hosts[host]->replica && listed_serving(host))
      hosts[host]->replica->work();
    schedule_work(host);
  });
}

// ---- faults ----
void Swarm::schedule_fault() {
  loop_.after(std::chrono::milliseconds(1000 + rng.below(6000)), [this] {
    if (loop_.now() - TimePoint{} > options.faults_for) return;
    one_fault();
    schedule_fault();
  });
}

void Swarm::one_fault() {
  const std::size_t host = 1 + rng.below(options.peers);
  const std::uint64_t kind = rng.below(10);
  if (kind < 2) {
    // Never the last holder of the committed anchor: who serves may not know yet that it is behind.
    const Version newest = commits.empty() ? Version(0) : commits.rbegin()->second.version;
    std::size_t holders = 0;
    for (std::size_t i = 1; i < hosts.size(); ++i) {
      const Replica* other = hosts[i]->replica.get();
      holders += i != host && other && other->serving_ && other->version_ >= newest && !hosts[i]->loop.frozen() ? 1 : 0;
    }
    if (holders == 0) return;
    ++kills;
    hosts[host]->loop.kill();
    hosts[host]->replica.reset();
    hosts[host]->buried.clear();
    for (std::size_t i = 0; i < hosts.size(); ++i) ++link_life_[pair_of(host, i)];
    schedule_work(host);
    loop_.after(std::chrono::milliseconds(500 + rng.below(15'000)), [this, host] {
      if (!hosts[host]->replica) replace(host, Bytes());
    });
  } else if (kind < 5) {
    ++freezes;
    hosts[host]->loop.freeze(std::chrono::milliseconds(200 + rng.below(15'000)));
  } else if (kind < 8) {
    std::size_t other = rng.below(options.peers + 1);
    if (other != host) break_link(host, other, std::chrono::milliseconds(rng.below(8000)));
  } else {
    if (!authority) return;
    ++restarts;
    kill_authority();
    loop_.after(std::chrono::milliseconds(200 + rng.below(5000)), [this] { boot_authority(); });
  }
}

void Swarm::break_link(std::size_t a, std::size_t b, Duration time) {
  ++breaks;
  ++link_life_[pair_of(a, b)];
  broken_until_[pair_of(a, b)] = loop_.now() + time;
  if (a != 0 && b != 0) return;
  loop_.after(time + 1ms, [this, host = std::max(a, b)] { link_up(host); });
}

// ---- allreduce: a trainer that issues one step at a time ----
void Swarm::drive_step() {
  loop_.after(300ms, [this] { drive_step(); });
  if (!authority) return;
  if (authority->step_done(StageId(0), step_)) {
    for (const auto& [microbatch, entry_name] : paths_) winners_.push_back(entry_name);
    paths_.clear();
    open_.clear();
    issued_at_.clear();
    ++step_.value;
    if (!working) return;
  }
  if (open_.empty() && !working) return;
  if (open_.empty())
    for (std::size_t i = 0; i < kMicrobatchesPerStep; ++i) open_.push_back({1, next_microbatch++});
  bool complete = true;
  for (const MicrobatchId& microbatch : open_) {
    if (paths_.count(microbatch)) continue;
    complete = false;
    if (loop_.now() - issued_at_[microbatch] > 2s) issue(microbatch);
  }
  if (!complete) return;
  Step step;
  step.step = step_;
  for (const auto& [microbatch, entry_name] : paths_) step.winners.push_back({microbatch, {entry_name}});
  authority->on_step(step);
}

void Swarm::issue(const MicrobatchId& microbatch) {
  issued_at_[microbatch] = loop_.now();
  std::size_t host = 1 + rng.below(options.peers);
  for (std::size_t tries = 1; tries < options.peers && !listed_serving(host); ++tries) host = 1 + host % options.peers;
  deliver(0, host, [this, host, microbatch, step = step_] {
    Replica* replica = hosts[host]->replica.get();
    std::uint64_t serial = 0;
    if (replica == nullptr || !replica->count_for_step(microbatch, step, &serial)) return;
    deliver(host, 0, [this, microbatch, step, entry_name = EntryName{replica->self_, serial}] {
      if (step == step_ && !over.count(entry_name.session)) paths_.emplace(microbatch, entry_name);
    });
  });
}

// ---- the end ----
bool Swarm::all_serving() const {
  return authority != nullptr && std::all_of(hosts.begin() + 1, hosts.end(), [&](const auto& host) {
           return host->replica && host->replica->serving_ && !host->loop.frozen();
         });
}

std::vector<std::string> Swarm::run() {
  loop_.run_until(TimePoint{} + options.faults_for + 20s);
  working = false;
  if (!loop_.run_until_true([&] { return all_serving() && open_.empty(); }, loop_.now() + 120s))
    problem("not all peers serve again within two minutes");
  loop_.run_for(3s);
  if (!authority) return problems_;
  bool done = false;
  authority->finish([&] { done = true; });
  if (!loop_.run_until_true([&] { return done; }, loop_.now() + 120s)) problem("the last round was not decided");
  loop_.run_for(3s);
  check_end();
  return problems_;
}

void Swarm::check_end() {
  const StageMembers& stage = authority->members().stages[0];
  std::vector<float> expected(kIntegerParameters, 0.0f);
  for (const EntryName& entry_name : secured) {
    const IntegerGradient gradient = integer_gradient(made[entry_name].microbatch, StageId(0), made[entry_name].stamp);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= gradient[i];
  }
  for (std::size_t i = 1; i < hosts.size(); ++i) {
    Replica& replica = *hosts[i]->replica;
    if (replica.version_ != stage.version)
      problem(text("host ", i, " ends at version ", replica.version_, " of ", stage.version));
    if (stage.secured && state_digest(replica.executor_, *replica.rule_) != stage.digest)
      problem(text("host ", i, " holds another state than was committed"));
    Arena& arena = replica.executor_.arena();
    if (arena.tag(ArenaRole::kAnchor) != secured_tag)
      problem(text("host ", i, ": the anchor's tag is not the sum over secured entries"));
    for (std::size_t k = 0; k < expected.size(); ++k)
      if (arena.span(ArenaRole::kAnchor)[k] != expected[k])
        problem(text("host ", i, ": the anchor is not the sum of secured gradients"));
    if (replica.executor_.shift_pending()) replica.executor_.apply_shift();
    CountTag local = 0;
    for (const std::uint64_t serial : replica.local_) {
      local += count_tag(made[{replica.self_, serial}].microbatch);
      if (secured.count({replica.self_, serial})) problem(text("host ", i, " holds a secured entry as its own"));
    }
    if (arena.tag(ArenaRole::kCurrent) != secured_tag + local)
      problem(text("host ", i, ": the parameters hold something else than anchor and own entries"));
    if (!replica.local_.empty()) problem(text("host ", i, " ends with entries that the last round did not secure"));
  }
  for (const EntryName& entry_name : winners_)
    if (!secured.count(entry_name) && !over.count(entry_name.session)) problem(text("lost in silence: ", entry_name));
}

}  // namespace shoal::test
