#include "authority/recent_commits.h"

#include <algorithm>
#include <map>

#include "common/byte_codec.h"
#include "common/check.h"
#include "transport/serial_list.h"

namespace shoal {

std::size_t RecentCommits::Commit::bytes() const {
  std::size_t sum = sizeof(Commit);
  for (const Part& part : parts) sum += sizeof(Part) + part.serials.size();
  return sum;
}

void RecentCommits::push(const RoundCommit& commit) {
  SHOAL_CHECK(commits_.empty() || commit.version > commits_.back().version);
  while (commit.back_to && !commits_.empty() && commits_.back().version > *commit.back_to) {
    bytes_ -= commits_.back().bytes();
    commits_.pop_back();
  }
  Commit kept{.version = commit.version, .digest = commit.digest, .tag = commit.tag, .parts = {}};
  for (const Secured& secured : commit.secured)
    kept.parts.push_back({secured.session, pack_serials(secured.serials).value()});
  bytes_ += kept.bytes();
  commits_.push_back(std::move(kept));
  while (commits_.size() > kCommitsMin && bytes_ > kBytes) {
    bytes_ -= commits_.front().bytes();
    commits_.pop_front();
  }
}

std::optional<Digest> RecentCommits::digest_of(Version version) const {
  const auto at = std::ranges::lower_bound(commits_, version, {}, &Commit::version);
  return at == commits_.end() || at->version != version ? std::nullopt : std::optional(at->digest);
}

std::size_t RecentCommits::TakenBack::entries() const {
  std::size_t count = 0;
  for (const Secured& one : secured) count += one.serials.size();
  return count;
}

RecentCommits::TakenBack RecentCommits::behind(Version version) const {
  TakenBack taken;
  std::map<Session, std::vector<std::uint64_t>> by_session;
  for (const Commit& commit : commits_) {
    if (commit.version <= version) continue;
    taken.tag += commit.tag;
    for (const Part& part : commit.parts) {
      const std::vector<std::uint64_t> serials = parse_serials(part.serials).value();
      std::vector<std::uint64_t>& all = by_session[part.session];
      all.insert(all.end(), serials.begin(), serials.end());
    }
  }
  for (auto& [session, serials] : by_session) {
    std::ranges::sort(serials);
    if (!serials.empty()) taken.secured.push_back({session, std::move(serials)});
  }
  return taken;
}

bool RecentCommits::took_part(std::uint64_t peer_tag, Version version) const {
  return std::ranges::any_of(commits_, [&](const Commit& commit) {
    return commit.version >= version &&
           std::ranges::any_of(commit.parts, [&](const Part& part) { return part.session.peer_tag == peer_tag; });
  });
}

Bytes RecentCommits::pack() const {
  ByteWriter out;
  out.put(static_cast<std::uint32_t>(commits_.size()));
  for (const Commit& commit : commits_) {
    out.put(commit.version.value);
    out.bytes(commit.digest.bytes);
    out.put(commit.tag);
    out.put(static_cast<std::uint32_t>(commit.parts.size()));
    for (const Part& part : commit.parts) {
      out.put(part.session.peer_tag);
      out.put(part.session.incarnation);
      out.put(static_cast<std::uint32_t>(part.serials.size()));
      out.bytes(part.serials);
    }
  }
  return std::move(out).take();
}

Result<RecentCommits> RecentCommits::parse(ByteView bytes) {
  RecentCommits result;
  ByteReader in(bytes);
  bool fine = true;
  for (auto count = in.get<std::uint32_t>(); count > 0 && fine && !in.bad(); --count) {
    Commit commit;
    commit.version = Version(in.get<std::uint64_t>());
    fine = result.commits_.empty() || commit.version > result.commits_.back().version;
    const ByteView digest = in.bytes(commit.digest.bytes.size());
    std::copy(digest.begin(), digest.end(), commit.digest.bytes.begin());
    commit.tag = in.get<CountTag>();
    for (auto parts = in.get<std::uint32_t>(); parts > 0 && fine && !in.bad(); --parts) {
      Part part;
      part.session.peer_tag = in.get<std::uint64_t>();
      part.session.incarnation = in.get<std::uint64_t>();
      const ByteView serials = in.bytes(in.get<std::uint32_t>());
      fine = parse_serials(serials).ok();
      part.serials.assign(serials.begin(), serials.end());
      commit.parts.push_back(std::move(part));
    }
    result.bytes_ += commit.bytes();
    result.commits_.push_back(std::move(commit));
  }
  if (!fine || !in.whole()) return make_error(ErrorCode::kCorrupt, "the recent commits of a stage do not parse");
  return result;
}

}  // namespace shoal
