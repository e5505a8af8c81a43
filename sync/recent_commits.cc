#include "sync/recent_commits.h"

#include <algorithm>
#include <map>

#include "common/check.h"

namespace shoal {

namespace {

std::size_t serials_of(const RoundCommit& commit) {
  std::size_t count = 0;
  for (const Secured& secured : commit.secured) count += secured.serials.size();
  return count;
}

}  // namespace

void RecentCommits::push(const RoundCommit& commit) {
  SHOAL_CHECK(commits_.empty() || commit.version > commits_.back().version);
  if (commit.back_to) {
    while (!commits_.empty() && commits_.back().version > *commit.back_to) {
      serials_ -= serials_of(commits_.back());
      commits_.pop_back();
    }
  }
  commits_.push_back(commit);
  serials_ += serials_of(commit);
  while (commits_.size() > 1 && (commits_.size() > kCommits || serials_ > kSerials)) {
    serials_ -= serials_of(commits_.front());
    commits_.pop_front();
  }
}

bool RecentCommits::known(const HeldState& state) const { return digest_of(state.version) == state.digest; }

std::optional<Digest> RecentCommits::digest_of(Version version) const {
  const auto at = std::ranges::find(commits_, version, &RoundCommit::version);
  return at == commits_.end() ? std::nullopt : std::optional(at->digest);
}

std::size_t RecentCommits::TakenBack::entries() const {
  std::size_t count = 0;
  for (const Secured& one : secured) count += one.serials.size();
  return count;
}

RecentCommits::TakenBack RecentCommits::behind(Version version) const {
  TakenBack taken;
  std::map<Session, std::vector<std::uint64_t>> by_session;
  for (const RoundCommit& commit : commits_) {
    if (commit.version <= version) continue;
    taken.tag += commit.tag;
    for (const Secured& secured : commit.secured) {
      auto& serials = by_session[secured.session];
      serials.insert(serials.end(), secured.serials.begin(), secured.serials.end());
    }
  }
  for (auto& [session, serials] : by_session) {
    std::ranges::sort(serials);
    if (!serials.empty()) taken.secured.push_back({session, std::move(serials)});
  }
  return taken;
}

bool RecentCommits::took_part(std::uint64_t peer_tag, Version version) const {
  return std::ranges::any_of(commits_, [&](const RoundCommit& commit) {
    return commit.version >= version && std::ranges::any_of(commit.secured, [&](const Secured& secured) {
             return secured.session.peer_tag == peer_tag;
           });
  });
}

}  // namespace shoal
