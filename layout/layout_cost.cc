#include "layout/layout_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "common/check.h"
#include "layout/flow_network.h"

namespace shoal {
namespace {

// Peers of a kind that serve one stage: they are one node of the network, so many times as large.
struct Crew {
  std::size_t peer = 0;  // one of them
  std::size_t stage = 0;
  double count = 0;
};

double over(double amount, double rate) { return amount > 0 ? amount / rate : 0; }
double rate_of(double speed, double amount) { return amount > 0 ? speed / amount : kUnbounded; }

class Swarm {
 public:
  Swarm(const SwarmShape& shape, const std::vector<std::size_t>& kinds, const Layout& layout) : shape_(shape) {
    SHOAL_CHECK(layout.size() == shape.peers.size() && !shape.stages.empty());
    std::vector<std::size_t> places(shape.stages.size() * layout.size(), SIZE_MAX);
    for (std::size_t peer = 0; peer < layout.size(); ++peer) {
      SHOAL_CHECK(layout[peer] < shape.stages.size());
      std::size_t& at = places[layout[peer] * layout.size() + kinds[peer]];
      if (at == SIZE_MAX) {
        at = crews_.size();
        crews_.push_back({.peer = peer, .stage = layout[peer]});
      }
      ++crews_[at].count;
      crew_of_.push_back(at);
    }
    by_stage_.resize(shape.stages.size());
    for (std::size_t crew = 0; crew < crews_.size(); ++crew) by_stage_[crews_[crew].stage].push_back(crew);
  }

  const std::vector<Crew>& crews() const { return crews_; }
  std::size_t crew_of(std::size_t peer) const { return crew_of_[peer]; }
  const std::vector<std::size_t>& of(std::size_t stage) const { return by_stage_[stage]; }
  const ShapeStage& stage(std::size_t stage) const { return shape_.stages[stage]; }
  std::size_t stages() const { return by_stage_.size(); }
  const ShapePeer& peer(const Crew& crew) const { return shape_.peers[crew.peer]; }
  bool is_last(std::size_t stage) const { return stage + 1 == stages(); }
  bool every_step() const { return shape_.every_step; }
  double customers() const { return kInFlightEach * static_cast<double>(shape_.peers.size()); }  // n of the worth

  double pass_time(const Crew& crew) const { return stage(crew.stage).work / peer(crew).speed; }
  double compute_rate(const Crew& crew) const { return peer(crew).speed / stage(crew.stage).work; }
  // What one peer can take by its own line alone.
  double line_rate(const Crew& crew) const {
    const double down_from_next = is_last(crew.stage) ? 0 : stage(crew.stage).backward_bytes;
    const double up_to_next = is_last(crew.stage) ? 0 : stage(crew.stage).forward_bytes;
    const double up = up_to_next + (crew.stage > 0 ? stage(crew.stage - 1).backward_bytes : 0);
    const double down = down_from_next + (crew.stage > 0 ? stage(crew.stage - 1).forward_bytes : 0);
    return std::min(rate_of(peer(crew).up, up), rate_of(peer(crew).down, down));
  }
  double rate(const Crew& crew) const { return std::min(compute_rate(crew), line_rate(crew)); }

  double stage_rate(std::size_t stage) const {
    double sum = 0;
    for (const std::size_t crew : by_stage_[stage]) sum += crews_[crew].count * rate(crews_[crew]);
    return sum;
  }

  double bytes_rate(const ShapePeer& from, const ShapePeer& to) const {
    return std::min({shape_.line(from.region, to.region).rate, from.up, to.down});
  }
  // The ends' own lines bound all that goes through them, and so each hop of it.
  double hop_rate(const Crew& from, const Crew& to) const {
    return rate_of(shape_.line(peer(from).region, peer(to).region).rate,
                   std::max(stage(from.stage).forward_bytes, stage(from.stage).backward_bytes));
  }
  double hop_time(const Crew& from, const Crew& to) const {
    return 2 * shape_.line(peer(from).region, peer(to).region).delay +
           over(stage(from.stage).forward_bytes, bytes_rate(peer(from), peer(to))) +
           over(stage(from.stage).backward_bytes, bytes_rate(peer(to), peer(from)));
  }
  double first_time(const Crew& first) const {
    return shape_.trainer ? 2 * shape_.line(*shape_.trainer, peer(first).region).delay : 0;
  }

  double round_time(std::size_t stage) const {
    double members = 0, longest = 0;
    for (const std::size_t crew : by_stage_[stage]) members += crews_[crew].count;
    const double part = over(this->stage(stage).round_bytes, members);
    for (const std::size_t mine : by_stage_[stage]) {
      double time = 0;
      for (const std::size_t other : by_stage_[stage]) {
        const ShapePeer &a = peer(crews_[mine]), &b = peer(crews_[other]);
        time += (crews_[other].count - (mine == other ? 1 : 0)) * 2 *
                (shape_.line(a.region, b.region).delay + over(part, bytes_rate(a, b)));
      }
      longest = std::max(longest, time);
    }
    return longest;
  }
  // The part of the time that rounds take of a stage which makes one microbatch a second.
  double round_load(std::size_t stage) const {
    if (shape_.round_microbatches <= 0) return 0;
    double members = 0;
    for (const std::size_t crew : by_stage_[stage]) members += crews_[crew].count;
    return round_time(stage) / (shape_.round_microbatches * (shape_.every_step ? 1 : members));
  }

 private:
  const SwarmShape& shape_;
  std::vector<Crew> crews_;
  std::vector<std::size_t> crew_of_;
  std::vector<std::vector<std::size_t>> by_stage_;
};

// X and N of a swarm: crews are arcs of the network from their way in to their way out.
class SwarmFlow {
 public:
  explicit SwarmFlow(const Swarm& swarm) : swarm_(swarm), network_(2 * swarm.crews().size() + 2) {
    for (std::size_t crew = 0; crew < swarm_.crews().size(); ++crew) {
      const Crew& of = swarm_.crews()[crew];
      crew_arcs_.push_back(network_.add(2 * crew, 2 * crew + 1, of.count * swarm_.rate(of), swarm_.pass_time(of)));
      if (of.stage == 0) network_.add(source(), 2 * crew, FlowNetwork::kNoLimit, swarm_.first_time(of));
      if (swarm_.is_last(of.stage)) network_.add(2 * crew + 1, sink(), FlowNetwork::kNoLimit, 0);
    }
    for (std::size_t stage = 0; stage + 1 < swarm_.stages(); ++stage)
      for (const std::size_t from : swarm_.of(stage))
        for (const std::size_t to : swarm_.of(stage + 1)) add_hop(from, to);
    for (std::size_t stage = 0; stage < swarm_.stages(); ++stage)
      round_load_ = std::max(round_load_, swarm_.round_load(stage));
  }

  struct Hop {
    std::size_t from = 0, to = 0, arc = 0;
    double rate = 0;
  };
  // All that can be sent; `steps` (or null) gets the curve.
  LayoutFigures send(std::vector<LayoutStory::Step>* steps) {
    const double most = most_by_rounds();
    LayoutFigures figures;
    network_.send(source(), sink(), most, {}, [&](const FlowNetwork::Part& part) {
      figures.rate += part.flow;
      figures.in_flight += part.flow * part.unit_cost;
      figures.worth = std::max(figures.worth, worth_of(figures.rate, figures.in_flight));
      if (steps) steps->push_back({figures.in_flight, figures.rate});
    });
    rounds_bind_ = figures.rate >= most * (1 - 1e-9);
    figures.round_share = figures.rate * round_load_;
    return figures;
  }
  // As long as more of it could be worth more than `enough`: no part is cheaper than the next one, and all parts
  // together are no more than the stages' sums.
  double worth(double enough) {
    const double most = most_by_rounds(), all = std::min(most, least_stage());
    double rate = 0, in_flight = 0, worth = 0;
    const auto wanted = [&](double unit_cost) {
      return most_on_a_line(rate, in_flight, unit_cost, all) > std::max(worth, enough);
    };
    network_.send(source(), sink(), most, wanted, [&](const FlowNetwork::Part& part) {
      rate += part.flow;
      in_flight += part.flow * part.unit_cost;
      worth = std::max(worth, worth_of(rate, in_flight));
    });
    return worth;
  }

  bool rounds_bind() const { return rounds_bind_; }
  double crew_flow(std::size_t crew) const { return network_.flow(crew_arcs_[crew]); }
  double hop_flow(const Hop& hop) const { return network_.flow(hop.arc); }
  const std::vector<Hop>& hops() const { return hops_; }
  // The crews that bind, and the hops: full, from where more could come to where it could not.
  std::vector<std::size_t> full_crews() const {
    const std::vector<bool> reached = network_.reached(source());
    std::vector<std::size_t> full;
    for (std::size_t crew = 0; crew < crew_arcs_.size(); ++crew)
      if (reached[2 * crew] && !reached[2 * crew + 1]) full.push_back(crew);
    return full;
  }
  std::vector<Hop> full_hops() const {
    const std::vector<bool> reached = network_.reached(source());
    std::vector<Hop> full;
    for (const Hop& hop : hops_)
      if (reached[2 * hop.from + 1] && !reached[2 * hop.to]) full.push_back(hop);
    return full;
  }

 private:
  double worth_of(double rate, double in_flight) const {
    const double customers = swarm_.customers();
    return rate * customers / (customers + std::max(1.0, in_flight) - 1) / (1 + rate * round_load_);
  }
  // The most that worth_of() comes to from `rate` to `all` where each unit more is so dear: x / ((A + c x) (1 + l x))
  // is largest at sqrt(A / (c l)).
  double most_on_a_line(double rate, double in_flight, double unit_cost, double all) const {
    const double base = swarm_.customers() - 1 + in_flight - unit_cost * rate;
    const double top = unit_cost * round_load_ > 0 ? std::sqrt(std::max(0.0, base) / (unit_cost * round_load_)) : all;
    double most = 0;
    for (const double at : {top, rate, all, (1 - in_flight) / unit_cost + rate})
      if (const double x = std::clamp(at, rate, std::max(rate, all)); std::isfinite(x))
        most = std::max(most, worth_of(x, in_flight + unit_cost * (x - rate)));
    return most;
  }
  double most_by_rounds() const {
    return swarm_.every_step() && round_load_ > 0 ? 1 / round_load_ : FlowNetwork::kNoLimit;
  }
  double least_stage() const {
    double least = kUnbounded;
    for (std::size_t stage = 0; stage < swarm_.stages(); ++stage) least = std::min(least, swarm_.stage_rate(stage));
    return least;
  }
  std::size_t source() const { return 2 * swarm_.crews().size(); }
  std::size_t sink() const { return source() + 1; }
  // More than twice what either end can take is as good as no bound, and keeps the network's numbers of one size.
  void add_hop(std::size_t from, std::size_t to) {
    const Crew &a = swarm_.crews()[from], &b = swarm_.crews()[to];
    const double ends = 2 * std::min(a.count * swarm_.rate(a), b.count * swarm_.rate(b));
    const double rate = std::min(a.count * b.count * swarm_.hop_rate(a, b), ends);
    hops_.push_back({from, to, network_.add(2 * from + 1, 2 * to, rate, swarm_.hop_time(a, b)), rate});
  }

  const Swarm& swarm_;
  FlowNetwork network_;
  std::vector<std::size_t> crew_arcs_;
  std::vector<Hop> hops_;
  double round_load_ = 0;  // of the stage whose rounds take most
  bool rounds_bind_ = false;
};

// What is the same for people is one: the largest first.
void add_bind(std::vector<Bind>& binds, const Bind& bind) {
  const auto alike = [&](const Bind& other) {
    return std::tuple(other.what, other.stage, other.from, other.to) ==
           std::tuple(bind.what, bind.stage, bind.from, bind.to);
  };
  const auto at = std::ranges::find_if(binds, alike);
  at == binds.end() ? binds.push_back(bind) : void(at->rate += bind.rate);
}

std::vector<Bind> binds_of(const Swarm& swarm, const SwarmFlow& flow, double rate) {
  std::vector<Bind> binds;
  if (flow.rounds_bind()) {
    std::size_t longest = 0;
    for (std::size_t stage = 0; stage < swarm.stages(); ++stage)
      if (swarm.round_load(stage) > swarm.round_load(longest)) longest = stage;
    return {{.what = Binding::kRound, .stage = longest, .rate = rate}};
  }
  for (const std::size_t crew : flow.full_crews()) {
    const Crew& of = swarm.crews()[crew];
    const std::size_t region = swarm.peer(of).region;
    const bool line = swarm.line_rate(of) < swarm.compute_rate(of);
    add_bind(binds, {line ? Binding::kOwnLine : Binding::kCompute, of.stage, region, region, flow.crew_flow(crew)});
  }
  for (const SwarmFlow::Hop& hop : flow.full_hops()) {
    const Crew& from = swarm.crews()[hop.from];
    add_bind(binds, {Binding::kLine, from.stage, swarm.peer(from).region, swarm.peer(swarm.crews()[hop.to]).region,
                     flow.hop_flow(hop)});
  }
  std::ranges::stable_sort(binds, std::ranges::greater(), &Bind::rate);
  return binds;
}

std::vector<RegionFlow> region_flows(const Swarm& swarm, const SwarmFlow& flow) {
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, double> rates;
  for (const SwarmFlow::Hop& hop : flow.hops()) {
    const Crew &from = swarm.crews()[hop.from], &to = swarm.crews()[hop.to];
    rates[{from.stage, swarm.peer(from).region, swarm.peer(to).region}] += flow.hop_flow(hop);
  }
  std::vector<RegionFlow> flows;
  for (const auto& [at, rate] : rates)
    if (rate > 0) flows.push_back({std::get<0>(at), std::get<1>(at), std::get<2>(at), rate});
  return flows;
}

}  // namespace

LayoutFigures LayoutCost::figures(const Layout& layout) const {
  const Swarm swarm(shape_, kinds_, layout);
  return SwarmFlow(swarm).send(nullptr);
}

LayoutStory LayoutCost::story(const Layout& layout) const {
  const Swarm swarm(shape_, kinds_, layout);
  SwarmFlow flow(swarm);
  LayoutStory story;
  static_cast<LayoutFigures&>(story) = flow.send(&story.steps);
  for (std::size_t stage = 0; stage < swarm.stages(); ++stage) {
    story.stage_rates.push_back(swarm.stage_rate(stage));
    story.round_times.push_back(shape_.round_microbatches > 0 ? swarm.round_time(stage) : 0);
  }
  for (std::size_t peer = 0; peer < layout.size(); ++peer) {
    const std::size_t crew = swarm.crew_of(peer);
    story.peer_rates.push_back(flow.crew_flow(crew) / swarm.crews()[crew].count);
  }
  story.binds = binds_of(swarm, flow, story.rate);
  story.flows = region_flows(swarm, flow);
  return story;
}

double LayoutCost::worth(const Layout& layout, double enough) const {
  const Swarm swarm(shape_, kinds_, layout);
  return SwarmFlow(swarm).worth(enough);
}

double LayoutStory::rate_with(double in_flight) const {
  Step before;
  for (const Step& step : steps) {
    if (step.in_flight >= in_flight)
      return before.rate +
             (step.rate - before.rate) * (in_flight - before.in_flight) / (step.in_flight - before.in_flight);
    before = step;
  }
  return rate;
}

}  // namespace shoal
