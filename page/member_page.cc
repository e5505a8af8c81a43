#include "page/member_page.h"

#include <set>
#include <utility>

#include "common/hex.h"
#include "events/event_record.h"
#include "events/session_end.h"
#include "page/live_page.h"
#include "page/run_page.h"
#include "runtime/config/config.h"
#include "runtime/peer/peer.h"

namespace shoal {
namespace {

constexpr char kOnTheList[] = "on the list of members";
constexpr char kOffTheList[] = "left without a reason that members are told";
static_assert(!is_fault(kOffTheList), "a member does not know that it was one");

// Outside of a session nobody tells a peer how the run goes.
bool is_answered(const PeerReport& report) {
  return report.list != nullptr && report.phase != PeerPhase::kPaused && report.phase != PeerPhase::kRestarting &&
         report.phase != PeerPhase::kOver;
}

}  // namespace

MemberPage::MemberPage(const RunId& run, const PeerId& self, std::string name)
    : run_(run), self_(self), name_(std::move(name)) {}
MemberPage::~MemberPage() = default;

RunFacts MemberPage::facts() const {
  return {.key = hex_of(run_).substr(0, 16), .seen_by = hex_of(self_).substr(0, 8)};
}

Result<std::unique_ptr<MemberPage>> MemberPage::open(EventLoop& loop, const RunId& run, const PeerId& self,
                                                     std::string name, const PagePort& port) {
  std::unique_ptr<MemberPage> page(new MemberPage(run, self, std::move(name)));
  SHOAL_ASSIGN(page->page_, LivePage::open(loop, page->facts(), port));
  tell_page(page->page_->port());
  return page;
}

std::unique_ptr<EventLog> MemberPage::shown(std::unique_ptr<EventLog> inner) { return page_->shown(std::move(inner)); }

void MemberPage::start(const Peer& peer) {
  page_->start([this, &peer] { return word(peer); });
}

void MemberPage::stop(const std::string& reason) {
  page_->tell({.event = EventKind::kEnd, .cause = reason});
  page_->stop();
}

RunWord MemberPage::word(const Peer& peer) {
  const PeerReport report = peer.report();
  if (report.config && !std::exchange(has_facts_, true)) {
    RunFacts known = run_facts(*report.config), own = facts();
    known.key = own.key;
    known.seen_by = own.seen_by;
    page_->set_facts(std::move(known));
  }
  if (report.list != nullptr) take_list(*report.list);
  RunWord word;
  word.member = MemberWord{.heard = is_answered(report),
                           .run_targets = report.run.run_targets,
                           .run_step = report.run.run_step,
                           .run_loss = report.run.run_loss,
                           .session = peer.session(),
                           .state = std::string(name_of(report.phase)),
                           .reason = report.reason,
                           .figures = report.figures};
  return word;
}

void MemberPage::take_list(const MemberList& list) {
  std::set<Session> here;
  for (const StageMembers& stage : list.stages) {
    if (Version& told = versions_[stage.stage]; stage.secured && stage.version > told) {
      told = stage.version;
      page_->tell({.event = EventKind::kRoundCommit,
                   .stage = stage.stage,
                   .round = stage.round,
                   .version = stage.version,
                   .secured = std::vector<Secured>{}});
    }
    for (const Member& member : stage.members) {
      here.insert(member.session);
      take_member(stage.stage, member);
    }
  }
  for (auto at = told_.begin(); at != told_.end();) {
    if (here.contains(at->first)) {
      ++at;
      continue;
    }
    page_->tell(session_over_event(at->first, at->second.stage, kOffTheList));
    at = told_.erase(at);
  }
}

void MemberPage::take_member(StageId stage, const Member& member) {
  const auto [at, is_new] = told_.try_emplace(member.session, Told{stage});
  EventRecord said{
      .event = EventKind::kMember, .stage = stage, .about = member.session, .state = "joined", .cause = kOnTheList};
  if (member.peer == self_) said.peer_name = name_;
  if (is_new) page_->tell(said);
  if (at->second.serving == member.serving) return;
  at->second.serving = member.serving;
  said.state = member.serving ? "serving" : "not serving";
  said.cause.clear();
  page_->tell(said);
}

}  // namespace shoal
