#include "authority/placement.h"

#include <algorithm>
#include <sstream>

#include "common/log.h"

namespace shoal {
namespace {

std::string rate_text(double rate) {
  std::ostringstream text;
  text.precision(3);
  text << rate;
  return text.str();
}

}  // namespace

std::vector<StageLoad> Placement::loads() const {
  std::vector<StageLoad> loads;
  for (const auto& stage : stages_) {
    const StageLine& line = stage->line();
    const auto& members = book_.of(line.stage);
    loads.push_back({.stage = line.stage,
                     .work = line.stage.value < options_.stage_work.size() ? options_.stage_work[line.stage.value] : 1,
                     .reached = members.size() < limits::kReplicasMax &&
                                (!line.secured || std::ranges::any_of(members, [](const auto& entry) {
                                  return entry.second->member.serving;
                                }))});
  }
  return loads;
}

std::vector<Worker> Placement::workers_without(const PeerId& peer, std::span<const StageLoad> stages) const {
  std::vector<Worker> workers;
  for (const auto& [session, member] : book_.members()) {
    if (member.member.peer == peer || member.leaves() || !detector_.makes_progress(member)) continue;
    Worker worker{.session = session, .peer = member.member.peer, .stage = member.stage, .speed = {}};
    worker.direct = member.member.whereabouts.reach == Reach::kDirect;
    const bool settled = member.member.serving && loop_.now() - member.shown.since >= Moves::kSettled;
    const Capacity& capacity = member.said.capacity;
    const std::uint64_t us = std::uint64_t{capacity.forward_us.value_or(0)} + capacity.backward_us.value_or(0);
    if (settled && us > 0) worker.speed = stages[member.stage.value].work * 1e6 / static_cast<double>(us);
    worker.movable = settled && member.said.movable && stages_[member.stage.value]->held_without(session);
    workers.push_back(worker);
  }
  bound_speeds(workers);
  return workers;
}

std::vector<StageSupply> Placement::supply_without(const PeerId& peer) const {
  const std::vector<StageLoad> stages = loads();
  std::vector<Worker> workers = workers_without(peer, stages);
  moves_.place(workers, peer);
  const std::vector<double> rates = stage_rates(stages, workers);
  std::vector<StageSupply> supply;
  for (const auto& stage : stages_) {
    const StageLine& line = stage->line();
    supply.push_back({.stage = line.stage,
                      .rate = rates[line.stage.value],
                      .secured = line.secured,
                      .version = line.version(),
                      .digest = line.digest()});
  }
  for (const auto& [session, member] : book_.members()) {
    if (member.member.peer == peer) continue;
    StageSupply& of = supply[member.stage.value];
    if (detector_.makes_progress(member)) {
      ++of.members;
      of.direct = of.direct || member.member.whereabouts.reach == Reach::kDirect;
    }
    of.serving += member.member.serving ? 1 : 0;
  }
  return supply;
}

Result<StageChoice> Placement::of_joiner(const PeerId& peer, const JoinRequest& request) const {
  const bool of_stage = request.held_stage && request.held_stage->value < stages_.size();
  JoinWish wish = wish_of(request, of_stage ? &stages_[request.held_stage->value]->line().recent : nullptr);
  if (const auto planned = options_.layout.find(peer); !wish.stage && planned != options_.layout.end()) {
    wish.stage = planned->second;
    wish.of_layout = true;
  }
  return choose_stage(supply_without(peer), wish);
}

void Placement::look() {
  if (!options_.rebalance || !moves_.look_due(loop_.now())) return;
  const MoveOptions how{.horizon = options_.rebalance_horizon, .away = detector_.move_time()};
  const std::vector<StageLoad> stages = loads();
  const auto move = moves_.look(stages, workers_without({}, stages), how, loop_.now());
  if (!move) return;
  const std::string why = "stage " + std::to_string(move->to.value) + " is the weakest: " + rate_text(move->rate_now) +
                          " microbatches/s of the run become " + rate_text(move->rate_then) +
                          (move->moves > 1 ? " with " + std::to_string(move->moves) + " moves" : "");
  log_info("session ", short_name(move->session), " is asked to move from stage ", move->from, " to stage ", move->to,
           ": ", why);
  port_.write({.event = EventKind::kMember,
               .stage = move->from,
               .about = move->session,
               .about_peer = move->peer,
               .state = "asked to move",
               .cause = why});
}

}  // namespace shoal
