#include "authority/failure_detector.h"

#include <algorithm>
#include <utility>

#include "authority/patience.h"

namespace shoal {
namespace {

constexpr Duration kBeatFresh = 2500ms;  // two beats and their way here
constexpr Duration kLinkBack = 1s;       // in which a link that broke is up again, and its peer beat

}  // namespace

void FailureDetector::on_link_up(const Remote& from) {
  if (from.role == PeerRole::kPeer) linked_[from.peer] = from.session;
}

void FailureDetector::on_link_down(const Remote& from) {
  const auto at = linked_.find(from.peer);
  if (at != linked_.end() && at->second == from.session) linked_.erase(at);
}

std::set<PeerId> FailureDetector::reachable() const {
  std::set<PeerId> peers;
  for (const auto& [peer, session] : linked_) peers.insert(peer);
  for (const auto& [session, member] : book_.members()) peers.insert(member.member.peer);
  return peers;
}

// A longer gap than `membership` passed while we were away.
void FailureDetector::on_beat(MemberState& member, const Beat& beat) const {
  constexpr double kGapKept = 0.9;  // of the longest one, a beat
  const TimePoint now = loop_.now();
  const Duration gap = std::min<Duration>(now - member.beats.heard_at, options_.membership);
  member.beats.longest_gap = std::max(gap, from_seconds(kGapKept * seconds_of(member.beats.longest_gap)));
  const Duration job = std::chrono::milliseconds(beat.job_ms);
  if (job < member.jobs.present &&
      member.jobs.present > job_patience(believed(member, member.jobs.longest), options_.membership))
    member.jobs.extended = true;
  member.jobs.longest = std::chrono::milliseconds(beat.longest_ms);
  member.jobs.longest_any = std::max(member.jobs.longest_any, member.jobs.longest);
  if (job == Duration(0) ||
      job < member.jobs.present) {  // what ran has ended, or began and ended since the beat before
    member.jobs.longest_seen =
        std::max(member.jobs.longest_seen, std::min<Duration>(member.jobs.longest_any, now - member.jobs.present_from));
    member.jobs.present_from = job == Duration(0) ? now : member.beats.heard_at;
  }
  member.jobs.present = job;
  member.beats.heard_at = now;
  member.said = beat;
  member.said.held.resize(beat.serving ? 0 : std::min(beat.held.size(), limits::kHeldStatesMax));
  member.said.refused.resize(std::min(beat.refused.size(), limits::kRefusedMax));
  member.beats.came = true;
}

Duration FailureDetector::ticked() { return loop_.now() - std::exchange(last_tick_, loop_.now()); }

void FailureDetector::all_heard() {
  for (auto& [session, member] : book_.members()) member.beats.heard_at = member.fetch.idle_since = loop_.now();
}

void FailureDetector::forgive(Duration silence) {
  for (auto& [session, member] : book_.members())
    member.beats.heard_at = std::min(loop_.now(), member.beats.heard_at + silence);
}

bool FailureDetector::beats(const MemberState& member) const {
  return loop_.now() - member.beats.heard_at <= kBeatFresh;
}

// After a sleep of ours the beats of some are read before those of others: nobody is away before the next tick.
bool FailureDetector::away(const MemberState& member) const {
  const TimePoint now = loop_.now();
  if (now - last_tick_ > kSlept) return false;
  const auto link = linked_.find(member.member.peer);
  const bool linked = link != linked_.end() && link->second == member.member.session;
  return now - member.beats.heard_at >
         (linked ? std::max<Duration>(kBeatFresh, 2 * member.beats.longest_gap) : kLinkBack);
}

Duration FailureDetector::believed(const MemberState& member, Duration claimed) const {
  const Duration seen = std::max(options_.membership, member.jobs.longest_seen);
  if (claimed <= seen) return claimed;
  std::vector<Duration> others;
  for (const auto& [session, other] : book_.of(member.stage))
    if (other != &member) others.push_back(other->jobs.longest_any);
  if (others.empty()) return seen;
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>((others.size() - 1) / 2);
  std::nth_element(others.begin(), middle, others.end());
  return std::min(claimed, std::max(seen, *middle));
}

Duration FailureDetector::start_patience() const {
  return longest_start_ > Duration(0) ? from_seconds(kJobFactor * seconds_of(longest_start_)) : kFirstJob;
}

bool FailureDetector::makes_progress(const MemberState& member) const {
  return member.ready() || loop_.now() - member.fetch.idle_since <= std::max(options_.membership, start_patience());
}

Duration FailureDetector::silence_patience(const MemberState& member) const {
  return std::max(options_.membership, 2 * member.beats.longest_gap);
}

// What it claims beyond what is believed buys as much again, once.
Duration FailureDetector::patience_with_job(const MemberState& member) const {
  const Duration patience = job_patience(believed(member, member.jobs.longest), options_.membership);
  return member.jobs.extended
             ? patience
             : std::min<Duration>(job_patience(member.jobs.longest, options_.membership), 2 * patience);
}

// A process whose network thread answers while its device hangs sends beats too.
std::string FailureDetector::dead_because(const MemberState& member, TimePoint now) const {
  const auto text = [](Duration d) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
    return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
  };
  if (const Duration silent = now - member.beats.heard_at; silent > silence_patience(member))
    return "no sign of life within the membership time: silent for " + text(silent);
  const Duration patience = patience_with_job(member);
  if (member.jobs.present <= patience) return "";
  return "no sign of life from its device: a job runs for " + text(member.jobs.present) +
         (member.jobs.longest == Duration::zero()
              ? ", the first of its kind"
              : ", the longest finished one of its kind took " + text(member.jobs.longest)) +
         ", and at most " + text(patience) + " are waited for";
}

std::map<Session, std::string> FailureDetector::dead() const {
  std::map<Session, std::string> dead;
  for (const auto& [session, member] : book_.members())
    if (std::string why = dead_because(member, loop_.now()); !why.empty()) dead.emplace(session, std::move(why));
  return dead;
}

std::vector<MemberLife> FailureDetector::lives() const {
  std::vector<MemberLife> all;
  for (const auto& [session, member] : book_.members())
    all.push_back({session, member.stage, member.member.serving, member.leaves(), loop_.now() - member.beats.heard_at});
  return all;
}

}  // namespace shoal
