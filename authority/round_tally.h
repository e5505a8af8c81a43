#pragma once
// What the rounds of a run came to: value. Thread: any; one owner.   Bounds: a line a peer and stage that ever
// contributed.
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "authority/recent_commits.h"
#include "transport/messages.h"

namespace shoal {

struct RoundTally {
  std::uint64_t rounds = 0;      // committed
  std::uint64_t taken_back = 0;  // entries that they secured and that a stage went back from
  std::uint64_t faults = 0;      // sessions that were over without having left
  // By peer (Session::peer_tag) and stage: the entries that are in the stage's anchor.
  std::map<std::pair<std::uint64_t, StageId>, std::uint64_t> shares;

  void add(const RoundCommit& commit) {
    ++rounds;
    for (const Secured& one : commit.secured)
      if (!one.serials.empty()) shares[{one.session.peer_tag, commit.stage}] += one.serials.size();
  }
  void take_back(StageId stage, const RecentCommits::TakenBack& taken) {
    taken_back += taken.entries();
    for (const Secured& one : taken.secured) shares[{one.session.peer_tag, stage}] -= one.serials.size();
  }
};

}  // namespace shoal
