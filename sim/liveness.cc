#include "sim/liveness.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace shoal {

namespace {

constexpr std::size_t kMicrobatchesTold = 16;

class WaitsFor {
 public:
  explicit WaitsFor(const Swarm& swarm) : swarm_(swarm) {
    for (std::size_t i = 0; i < swarm.peers().size(); ++i) {
      const auto& process = *swarm.peers()[i];
      if (process.alive && process.peer) names_[process.peer->session()] = "peer " + std::to_string(i);
    }
  }

  std::vector<std::string> lines() {
    of_launch();
    of_rounds();
    for (std::size_t i = 0; i < swarm_.peers().size(); ++i) of_peer(i);
    of_microbatches();
    return std::move(lines_);
  }

 private:
  std::string name(const Session& session) const {
    const auto found = names_.find(session);
    return (found == names_.end() ? std::string("a session that is no more") : found->second) + " (" +
           short_name(session) + ")";
  }

  double ago(TimePoint when) const { return seconds_of(swarm_.loop().now() - when); }

  void of_launch() {
    const Launch* launch = swarm_.launch();
    if (launch == nullptr) return void(lines_.push_back("launch waits for its restart"));
    if (!launch->parked_text().empty()) lines_.push_back("launch waits for a server: " + launch->parked_text());
    std::ostringstream line;
    line << "launch: " << launch->book().open() << " open, " << launch->book().committed() << " committed, "
         << launch->book().unmerged() << " entries unmerged; its low-water mark " << launch->book().low()
         << " waits for " << launch->book().waiting_for();
    lines_.push_back(line.str());
    for (const StageStatus& stage : launch->authority().status()) {
      std::ostringstream about;
      about << "stage " << stage.stage << ": version " << stage.version << ", " << stage.serving << " of "
            << stage.members << " members serve";
      for (const Session& session : stage.ahead) about << "; waits for a log as new as " << name(session);
      lines_.push_back(about.str());
    }
  }

  // The newest round of every stage, when nothing ended it.
  void of_rounds() {
    std::map<StageId, std::map<RoundId, std::vector<const SimEvent*>>> rounds;
    for (const SimEvent& e : swarm_.events())
      if (e.round && e.stage) rounds[*e.stage][*e.round].push_back(&e);
    for (const auto& [stage, of_stage] : rounds) {
      const auto& [round, events] = *of_stage.rbegin();
      std::set<Session> entered, reported;
      bool over = false;
      std::string failed;
      for (const SimEvent* e : events) {
        if (e->event == EventKind::kRoundEnter) entered.insert(e->writer);
        if (e->event == EventKind::kRoundReport) reported.insert(e->writer);
        if (e->event == EventKind::kRoundFailed)
          failed = e->cause + (e->silent ? ", not heard of: " + name(*e->silent) : "");
        over |= e->event == EventKind::kRoundCommit || e->event == EventKind::kRoundAbandon;
      }
      if (over) continue;
      std::ostringstream line;
      line << "round " << round << " of stage " << stage << ", open for " << ago(events.front()->at) << " s, waits for";
      for (const Session& session : entered)
        if (!reported.contains(session)) line << " the report of " << name(session);
      if (!failed.empty()) line << " a word after: " << failed;
      lines_.push_back(line.str());
    }
  }

  void of_peer(std::size_t index) {
    const auto& process = *swarm_.peers()[index];
    std::ostringstream line;
    line << "peer " << index << ": ";
    if (!process.alive || !process.peer) return void(lines_.push_back(line.str() + "dead"));
    const PeerReport report = process.peer->report();
    line << short_name(process.peer->session()) << " is " << name_of(report.phase) << " " << report.reason;
    if (process.frozen) line << ", frozen";
    if (process.finished) line << ", gave up" << (process.error ? ": " + process.error->message : std::string());
    if (report.stage) line << ", stage " << *report.stage;
    line << ", version " << report.status.version << ", " << report.status.live << " live, " << report.status.queued
         << " queued, " << report.status.parked << " parked" << (report.status.device_busy ? ", device busy" : "");
    lines_.push_back(line.str());
    const StagePeer* stage_peer = process.peer->stage_peer();
    if (stage_peer == nullptr) return;
    if (const std::string for_whom = stage_peer->waiting_for(); !for_whom.empty())
      lines_.push_back("  peer " + std::to_string(index) + " waits for " + for_whom);
    if (stage_peer->prepared()) {
      std::ostringstream prepared;
      prepared << "  peer " << index << " waits for the authority's word on round " << stage_peer->prepared()->round;
      lines_.push_back(prepared.str());
    }
    std::size_t told = 0;
    for (const auto& [serial, entry] : stage_peer->ledger().entries().all()) {
      if (is_final(entry.state) || ++told > kMicrobatchesTold) continue;
      of_entry(index, serial, entry);
    }
  }

  void of_entry(std::size_t index, EntrySerial serial, const Entry& entry) {
    std::ostringstream line;
    line << "  entry " << serial << " of peer " << index << " (microbatch " << entry.microbatch.serial << ") is "
         << name_of(entry.state) << "; waits for";
    if (entry.state == EntryState::kArriving) line << " frames of " << name(entry.transfer_from);
    if (entry.state == EntryState::kBelow) line << " the next stage";
    if (is_handed_on(entry.state)) line << " its COMMIT";
    for (const auto& [lease, claim] : entry.leases)
      line << "; claimed by " << name(claim.holder) << ", renewed " << ago(claim.renewed) << " s ago"
           << (claim.sent ? ", gradient sent" : "") << (claim.link_lost ? ", link lost" : "");
    lines_.push_back(line.str());
  }

  // Issued and not decided: what was said of it last.
  void of_microbatches() {
    std::map<MicrobatchId, const SimEvent*> last;
    for (const SimEvent& e : swarm_.events()) {
      if (!e.microbatch) continue;
      if (e.event == EventKind::kCommit) {
        last.erase(*e.microbatch);
      } else if (e.event == EventKind::kIssue || last.contains(*e.microbatch)) {
        last[*e.microbatch] = &e;
      }
    }
    std::size_t told = 0;
    for (const auto& [microbatch, e] : last) {
      if (++told > kMicrobatchesTold) break;
      std::ostringstream line;
      line << "microbatch " << microbatch.serial << " waits for what follows " << e->event << " of " << name(e->writer);
      if (e->about) line << " at " << name(*e->about);
      line << ", " << ago(e->at) << " s ago" << (e->cause.empty() ? "" : ": " + e->cause);
      lines_.push_back(line.str());
    }
  }

  const Swarm& swarm_;
  std::map<Session, std::string> names_;
  std::vector<std::string> lines_;
};

}  // namespace

std::optional<StageId> stage_out_of_reach(const Swarm& swarm) {
  for (const auto& [at, relay] : swarm.network().relays().all())
    if (relay->lives()) return std::nullopt;
  std::set<StageId> dialable;
  for (const auto& process : swarm.peers())
    if (process->alive && !process->finished && process->wish && swarm.network().nats().of(process->address).dialable())
      dialable.insert(*process->wish);
  for (std::uint16_t stage = 0; swarm.options().reach.unreachable > 0 && stage < swarm.options().stages; ++stage)
    if (!dialable.contains(StageId(stage))) return StageId(stage);
  return std::nullopt;
}

std::vector<std::string> waits_for_graph(const Swarm& swarm) { return WaitsFor(swarm).lines(); }

}  // namespace shoal
