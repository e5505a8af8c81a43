#include "bench/routing_world.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/routing_ends.h"

namespace shoal {

namespace {

constexpr std::size_t kFlightOfPeer = 4;  // microbatches under way for each peer, over all senders
constexpr Duration kTickMax = 50ms;       // processes begin to tick within it

std::size_t flight_of(const RoutingWorld& world) {
  return std::max(world.senders, world.in_flight > 0 ? world.in_flight : kFlightOfPeer * world.peers.size());
}

RoutingLine line_of(const RoutingWorld& world, std::size_t sender, std::size_t peer) {
  return world.line ? world.line(sender, peer) : RoutingLine{};
}

// Seconds from `begin` to `end` in which a peer is at this place.
double seconds_there(const RoutingWorld& world, std::size_t place, double begin, double end) {
  if (world.changes.empty()) return end - begin;
  double sum = 0, since = 0;
  bool there = false;
  const auto take = [&](double until) {
    if (there) sum += std::max(0.0, std::min(until, end) - std::max(since, begin));
  };
  for (const RoutingChange& change : world.changes) {
    if (change.place != place) continue;
    take(seconds_of(change.at));
    since = seconds_of(change.at);
    there = change.comes;
  }
  take(end);
  return sum;
}

class RoutingRun {
 public:
  RoutingRun(const RoutingWorld& world, const RoutingPolicyMaker& make, std::uint64_t seed)
      : world_(world),
        rng_(seed),
        net_(loop_, [this](std::size_t from, std::size_t to) { return line_between(from, to); }),
        by_sender_(world.senders, 0) {
    const std::size_t flight = flight_of(world);
    for (std::size_t i = 0; i < world.senders; ++i) {
      const std::size_t own = flight / world.senders + (i < flight % world.senders ? 1 : 0);
      senders_.push_back(std::make_unique<RoutingSender>(stage(), i, new_session(), own, make(rng_.next()),
                                                         [this](const RoutingWin& win) { on_won(win); }));
    }
    for (std::size_t place = 0; place < world.peers.size(); ++place)
      if (there_at_first(place)) add_peer(place);
    publish();
    for (const auto& sender : senders_) sender->start(some_tick());
  }

  RoutingFigures run() {
    const auto began = std::chrono::steady_clock::now();
    loop_.after(world_.warm + world_.strikes, [this] {
      for (const auto& peer : peers_) peer->strike();
    });
    for (const RoutingChange& change : world_.changes)
      if (change.at > Duration{0}) loop_.after(world_.warm + change.at, [this, change] { apply(change); });
    loop_.run_for(world_.warm);
    measuring_ = true;
    const std::vector<double> before = worked_by_place();
    loop_.run_for(world_.measured);
    RoutingFigures figures = measured();
    const std::vector<double> after = worked_by_place();
    for (std::size_t i = 0; i < after.size(); ++i)
      figures.use.push_back((after[i] - before[i]) / seconds_of(world_.measured));
    figures.virtual_seconds = seconds_of(world_.warm + world_.measured);
    figures.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return figures;
  }

 private:
  RoutingStage stage() { return {loop_, net_, world_}; }
  Session new_session() { return {rng_.next(), rng_.next()}; }
  Duration some_tick() { return Duration(1 + rng_.below(static_cast<std::uint64_t>(kTickMax.count()))); }

  // Places of peers follow those of the senders. Between two of a kind no line is known, and only words cross.
  RoutingLine line_between(std::size_t from, std::size_t to) const {
    const std::size_t first = std::min(from, to), second = std::max(from, to), senders = world_.senders;
    return first < senders && second >= senders ? line_of(world_, first, second - senders) : RoutingLine{};
  }

  bool there_at_first(std::size_t place) const {
    bool there = world_.changes.empty();
    for (const RoutingChange& change : world_.changes)
      if (change.place == place && change.at <= Duration{0}) there = change.comes;
    return there;
  }

  void add_peer(std::size_t place) {
    peers_.push_back(std::make_unique<RoutingPeer>(stage(), place, new_session(), Rng(rng_.next())));
    peers_.back()->start(some_tick());
  }

  void apply(const RoutingChange& change) {
    if (change.comes) {
      add_peer(change.place);
    } else {
      for (const auto& peer : peers_)
        if (peer->place() == change.place) peer->end();
    }
    loop_.after(world_.list_age, [this] { publish(); });
  }

  void publish() {
    MemberList list;
    list.epoch = Epoch(++epoch_);
    const auto add = [](StageMembers& stage, const Session& session) {
      Member member;
      member.session = session;
      member.peer = routing_peer_id(session);
      member.serving = true;
      stage.members.push_back(std::move(member));
    };
    list.stages.resize(2);
    list.stages[0].stage = StageId(kSendersStage);
    list.stages[1].stage = StageId(kPeersStage);
    for (const auto& sender : senders_) add(list.stages[0], sender->self());
    for (const auto& peer : peers_)
      if (!net_.dead(peer->index())) add(list.stages[1], peer->self());
    for (const auto& peer : peers_)
      if (!net_.dead(peer->index())) peer->on_members(list);
    for (const auto& sender : senders_) sender->on_members(list);
  }

  void on_won(const RoutingWin& win) {
    for (const auto& peer : peers_)
      if (peer->self() == win.peer) useful_ += peer->worked_on(win.serial);
    if (!measuring_) return;
    ++by_sender_[win.sender];
    took_.push_back(seconds_of(win.took));
    if (win.base_hit) ++met_, hits_ += *win.base_hit;
  }

  std::vector<double> worked_by_place() const {
    std::vector<double> result(world_.peers.size(), 0);
    for (const auto& peer : peers_) result[peer->place()] += seconds_of(peer->worked());
    return result;
  }

  RoutingFigures measured() {
    RoutingFigures figures;
    figures.world = world_.name;
    figures.senders = world_.senders;
    figures.done = took_.size();
    figures.share = static_cast<double>(took_.size()) / ideal_of(world_);
    std::sort(took_.begin(), took_.end());
    const auto quantile = [&](double q) {
      return took_.empty() ? 0 : took_[static_cast<std::size_t>(q * static_cast<double>(took_.size() - 1))];
    };
    figures.p50 = quantile(0.5);
    figures.p99 = quantile(0.99);
    figures.base_hits = met_ > 0 ? static_cast<double>(hits_) / static_cast<double>(met_) : 0;
    double sum = 0, squares = 0;
    for (const std::uint64_t done : by_sender_) {
      sum += static_cast<double>(done);
      squares += static_cast<double>(done) * static_cast<double>(done);
    }
    figures.fairness = squares > 0 ? sum * sum / (static_cast<double>(by_sender_.size()) * squares) : 0;
    Duration worked{0}, under_way{0};
    std::uint64_t refused = 0;
    for (const auto& sender : senders_) refused += sender->counters().busy;
    std::set<MicrobatchId> open;
    for (const auto& sender : senders_) open.merge(sender->open());
    for (const auto& peer : peers_) worked += peer->worked(), under_way += peer->worked_on(open);
    const double wasted = seconds_of(worked - under_way - useful_);
    figures.twice = worked > Duration{0} ? wasted / seconds_of(worked) : 0;
    figures.refused = static_cast<double>(refused) / static_cast<double>(std::max<std::size_t>(1, took_.size()));
    return figures;
  }

  const RoutingWorld& world_;
  Rng rng_;
  SimLoop loop_;
  RoutingNet net_;
  std::vector<std::unique_ptr<RoutingSender>> senders_;
  std::vector<std::unique_ptr<RoutingPeer>> peers_;  // all that there ever were
  std::uint64_t epoch_ = 0;
  bool measuring_ = false;
  std::vector<std::uint64_t> by_sender_;
  std::vector<double> took_;
  std::uint64_t met_ = 0, hits_ = 0;
  Duration useful_{0};
};

}  // namespace

double ideal_of(const RoutingWorld& world) {
  const double end = seconds_of(world.measured), strike = std::min(end, seconds_of(world.strikes));
  double all = 0;
  for (std::size_t place = 0; place < world.peers.size(); ++place) {
    const RoutingPeerShape& peer = world.peers[place];
    const auto possible = [&](double slower, double begin, double until) {
      double lines = 0;
      bool bound = true;
      for (std::size_t sender = 0; sender < world.senders; ++sender) {
        const double rate = line_of(world, sender, place).bytes_per_second;
        bound &= rate > 0;
        lines += rate / static_cast<double>(world.frame_bytes);
      }
      const double device = 1 / (seconds_of(peer.compute) * slower);
      return seconds_there(world, place, begin, until) * (bound ? std::min(device, lines) : device);
    };
    all += possible(1, 0, strike);
    if (!peer.hangs && !peer.mutes) all += possible(peer.slower, strike, end);
  }
  return all;
}

RoutingFigures run_routing(const RoutingWorld& world, std::string_view policy, const RoutingPolicyMaker& make,
                           std::uint64_t seed) {
  RoutingFigures figures = RoutingRun(world, make, seed).run();
  figures.policy = policy;
  return figures;
}

}  // namespace shoal
