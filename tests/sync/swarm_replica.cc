#include <algorithm>

#include "tests/sync/swarm.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal::test {
namespace {

MembershipOptions membership_options(Swarm& swarm, std::size_t host, Session self, const Bytes& held) {
  MembershipOptions options;
  options.run = swarm.run_id;
  options.self = self;
  options.request.whereabouts.addresses = {"host" + std::to_string(host)};
  if (!held.empty()) {
    options.request.held_stage = StageId(0);
    options.request.held = {{parse_state_header(held)->version, digest_of_image(held)}};
  }
  return options;
}

std::unique_ptr<OuterRule> exact_rule(RuleId id) {
  if (id == RuleId::kAllreduce) return make_allreduce_rule({.exact = true});
  return make_diloco_rule({.outer_lr = 1, .outer_momentum = 0, .sum = true});
}

}  // namespace

Replica::Replica(Swarm& swarm, std::size_t host, Session self, Bytes held)
    : swarm_(swarm),
      host_(host),
      self_(self),
      loop_(swarm.hosts[host]->loop),
      executor_(tiny_spec()),
      rule_(exact_rule(swarm.options.rule)),
      membership_(membership_options(swarm, host, self, held), *this, loop_),
      round_(std::make_unique<Round>(*this, loop_, self, StageId(0))),
      donor_({}, *this, loop_, StageId(0)),
      fetcher_({}, *this, loop_, StageId(0)) {
  if (held.empty()) return;
  const auto loaded = load_state_image(executor_, held, StateLoad::kFresh, [&](RuleId) { return rule_.get(); });
  SHOAL_CHECK(loaded.ok());
  has_state_ = true;
  version_ = loaded->version;
}

void Replica::start() { membership_.start(); }

void Replica::on_message(const Session& from, const PeerId& peer, const Message& message, Bytes frame) {
  if (over_) return;
  const auto to_membership = [&]<class M>(const M& m) -> Status {
    if constexpr (std::constructible_from<MembershipMessage, M>) return membership_.on_message(m);
    return {};
  };
  if (const Status status = std::visit(to_membership, message); !status.ok())
    swarm_.problem("membership: " + status.error().message);
  if (over_) return;
  if (const auto* step = std::get_if<Step>(&message)) steps_[step->step] = *step;
  if (const auto* open = std::get_if<RoundOpen>(&message)) round_->on_open(*open);
  if (const auto* part = std::get_if<RoundPart>(&message)) round_->on_part(from, *part, frame);
  if (const auto* commit = std::get_if<RoundCommit>(&message)) round_->on_commit(*commit);
  if (const auto* abandon = std::get_if<RoundAbandon>(&message)) round_->on_abandon(*abandon);
  if (const auto* query = std::get_if<StateQuery>(&message)) donor_.on_query(peer, *query);
  if (const auto* query = std::get_if<ChunkQuery>(&message)) donor_.on_chunk_query(peer, *query);
  if (const auto* offer = std::get_if<StateOffer>(&message)) fetcher_.on_offer(peer, *offer);
  if (const auto* chunk = std::get_if<Chunk>(&message)) fetcher_.on_chunk(peer, *chunk, frame);
}

void Replica::work() {
  if (over_ || !serving_) return;
  const MicrobatchId microbatch{1, swarm_.next_microbatch++};
  const std::uint64_t serial = ++serial_;
  swarm_.made[{self_, serial}] = {microbatch, executor_.stamp()};
  const bool counted = pass_forward(executor_, {serial, microbatch, tiny_tokens()}).ok() &&
                       pass_backward(executor_, serial, {}, WindowSlot::kA).ok();
  if (!counted) return swarm_.problem("an entry was not counted");
  executor_.settle(serial);
  InnerStep step;
  step.targets = kTargetsOfEntry;
  if (!executor_.inner_step(WindowSlot::kA, step).ok()) swarm_.problem("an inner step failed");
  local_.insert(serial);
}

bool Replica::count_for_step(const MicrobatchId& microbatch, StepId step, std::uint64_t* serial) {
  if (over_ || !serving_ || step <= closed_step_) return false;
  if (window_step_ != step) {
    if (!local_.empty()) return false;
    window_step_ = step;
  }
  *serial = ++serial_;
  swarm_.made[{self_, *serial}] = {microbatch, executor_.stamp()};
  const bool counted = pass_forward(executor_, {*serial, microbatch, tiny_tokens()}).ok() &&
                       pass_backward(executor_, *serial, {}, WindowSlot::kA).ok();
  if (!counted) swarm_.problem("an entry was not counted");
  local_.insert(*serial);
  unsettled_.insert(*serial);
  return true;
}

void Replica::send_to_authority(Message message) {
  swarm_.deliver(host_, 0, [&swarm = swarm_, self = self_, peer = peer_of(host_), message] {
    if (swarm.authority) swarm.authority->on_message({peer, self, PeerRole::kPeer}, message);
  });
}

Beat Replica::make_beat() {
  Beat beat;
  beat.version = version_;
  beat.serving = serving_;
  beat.settled_targets = local_.size() * kTargetsOfEntry;
  return beat;
}

void Replica::on_joined(const JoinAnswer& answer) {
  if (answer.initialise) {
    // Held state of a stage that never secured a round cannot exist.
    if (version_ != Version(0)) swarm_.problem("initialised again after a round was secured");
    has_state_ = serving_ = true;
    return membership_.beat_now();
  }
  on_members(*membership_.list());
}

void Replica::on_members(const MemberList& list) {
  if (over_ || membership_.phase() != Membership::Phase::kMember || serving_) return;
  const StageMembers& stage = list.stages[0];
  if (!stage.secured) return;
  if (has_state_ && version_ == stage.version && !fetcher_.active()) {
    if (state_digest(executor_, *rule_) != stage.digest) return rejoin();
    serving_ = true;
    return membership_.beat_now();
  }
  fetch(stage.version, stage.digest);
}

void Replica::on_refused(const std::string&) { over_ = true; }

void Replica::on_fenced(const std::string&) {
  ++swarm_.fences;
  rejoin();
}

void Replica::rejoin() {
  if (over_) return;
  over_ = true;
  serving_ = false;
  round_->cancel();
  swarm_.replace(host_, held_state());
}

Bytes Replica::held_state() {
  return has_state_ && version_ > Version(0) ? make_state_image(executor_, *rule_, version_) : Bytes();
}

void Replica::contribute(const RoundOpen& open, std::function<void(Result<Contribution>)> done) {
  asked_ = open.round;
  loop_.after(std::chrono::milliseconds(swarm_.rng.below(40)), lifetime_.guard([this, open, done] {
    if (over_ || asked_ != open.round) return;
    context_ = RoundContext{};
    context_.base = open.base;
    if (open.step.value != 0) {
      closed_step_ = open.step;
      std::set<EntryName> winners;
      for (const CommitItem& item : steps_[open.step].winners) winners.insert(item.path[0]);
      for (const std::uint64_t serial : std::exchange(unsettled_, {})) {
        if (winners.count({self_, serial})) {
          executor_.settle(serial);
        } else {
          const Result<bool> exact = executor_.undo(serial);
          if (!exact.ok() || !*exact) swarm_.problem("an undo was inexact");
          local_.erase(serial);
        }
      }
    }
    context_.weight = local_.size() * kTargetsOfEntry;
    Result<Payload> payload = contributed(*rule_, executor_, context_);
    if (!payload.ok()) return done(payload.error());
    contributed_ = local_;
    Contribution contribution{std::move(*payload), {contributed_.begin(), contributed_.end()}};
    done(std::move(contribution));
  }));
}

void Replica::prepare(const RoundOpen&, Payload reduced, std::function<void(Result<Digest>)> done) {
  loop_.after(std::chrono::milliseconds(swarm_.rng.below(20)),
              lifetime_.guard([this, reduced = std::move(reduced), done] {
                if (!over_) done(rule_->prepare(executor_, context_, reduced));
              }));
}

void Replica::commit(const RoundOpen&, const RoundCommit& commit, std::function<void()> done) {
  for (const Secured& secured : commit.secured)
    if (secured.session == self_ &&
        std::set<std::uint64_t>(secured.serials.begin(), secured.serials.end()) != contributed_)
      swarm_.problem("a commit names other entries than were contributed");
  rule_->commit(executor_, context_);
  for (const std::uint64_t serial : contributed_) local_.erase(serial);
  contributed_.clear();
  version_ = commit.version;
  done();
  membership_.beat_now();
}

void Replica::abandon(const RoundOpen&) { rule_->abandon(executor_, context_); }

void Replica::fell_behind(const RoundCommit& commit, bool secured, bool differs, const std::string&) {
  if (version_ >= commit.version || over_) return;
  ++swarm_.fell_behinds;
  if (differs) swarm_.problem("members of a round made different digests of the same sum");
  // Entries of a window that no commit names cannot outlive a fresh load.
  if (rule_->every_step() && (secured ? local_ != contributed_ : !local_.empty())) return rejoin();
  named_ = named_ || secured;
  serving_ = false;
  fetch(commit.version, commit.digest);
}

void Replica::fetch(Version version, const Digest& digest) {
  std::vector<PeerId> donors;
  if (membership_.list())
    for (const Member& member : membership_.list()->stages[0].members)
      if (member.session != self_) donors.push_back(member.peer);
  fetcher_.fetch(version, digest, std::move(donors));
}

void Replica::on_fetched(Bytes image) {
  const bool fresh = !has_state_ || rule_->every_step();
  const StateLoad load = fresh    ? StateLoad::kFresh
                         : named_ ? StateLoad::kShiftFromSnapshot
                                  : StateLoad::kShiftFromAnchor;
  const auto loaded = load_state_image(executor_, image, load, [&](RuleId) { return rule_.get(); });
  if (!loaded.ok()) return swarm_.problem("load: " + loaded.error().message);
  if (named_) {
    for (const std::uint64_t serial : contributed_) local_.erase(serial);
    if (rule_->every_step()) executor_.clear_window(WindowSlot::kA);
  }
  named_ = false;
  contributed_.clear();
  has_state_ = true;
  version_ = loaded->version;
  serving_ = true;
  membership_.beat_now();
  round_->on_version_changed();
}

void Replica::send_to_member(const Session& member, Message message, std::vector<Bytes> frames) {
  for (std::size_t i = 1; i < swarm_.hosts.size(); ++i) {
    if (i != number_of(member)) continue;
    if (swarm_.spoiled == std::pair(host_, i) && !frames.empty()) frames[0] = frames[0].slice(0, frames[0].size() - 1);
    auto task = [&swarm = swarm_, i, self = self_, peer = peer_of(host_), message, frames] {
      if (swarm.hosts[i]->replica)
        swarm.hosts[i]->replica->on_message(self, peer, message, frames.empty() ? Bytes() : frames[0]);
    };
    swarm_.deliver_part(host_, i, frames.empty() ? 0 : frames[0].size(), std::move(task));
  }
}

RoundHost::Carried Replica::carried(const Session& member) const {
  const std::size_t other = number_of(member);
  return {swarm_.moved(host_, other) + swarm_.moved(other, host_), 0};
}

void Replica::make_image(std::function<void(Result<StateImage>)> done) {
  if (!has_state_) return done(make_error(ErrorCode::kBusy, "no state yet"));
  done(hash_state_image(make_state_image(executor_, *rule_, version_)));
}

void Replica::send(const PeerId& to, Message message, std::vector<Bytes> frames) {
  for (std::size_t i = 1; i < swarm_.hosts.size(); ++i) {
    if (peer_of(i) != to) continue;
    swarm_.deliver(host_, i, [&swarm = swarm_, i, self = self_, peer = peer_of(host_), message, frames] {
      if (swarm.hosts[i]->replica)
        swarm.hosts[i]->replica->on_message(self, peer, message, frames.empty() ? Bytes() : frames[0]);
    });
  }
}

}  // namespace shoal::test
