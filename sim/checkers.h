#pragma once
// What must hold of a swarm in virtual time, judged from the events all processes wrote and from the arenas and ledgers
// of the living. Pure look: nothing is changed.
#include <set>
#include <string>
#include <vector>

#include "sim/counting_books.h"
#include "sim/swarm.h"

namespace shoal {

// Every broken rule as one line; empty = all hold. At any time (between two turns of the loop):
// clang-format off
//   - a microbatch is logged once; an entry is secured by one committed round at most; nothing is both secured
//     and lost;
//   - a session that begins to serve has a version that is no older than what members were told of before it was
//     admitted;
//   - a round's commit names as many contributions as the round was opened with members;
//   - a serving replica's anchor = sum over what the rounds up to its version secured, by tag and by the exact
//     gradients of the integer executor, each at the weights that the ledger says it was made at, float by float; so
//     replicas of one version hold the same anchor;
//   - its parameters, with a shift that is still pending, = anchor + what its ledger calls stepped; each accumulator =
//     what its ledger has counted in that window. So a gradient is in a living replica once, where its ledger says;
//   - what its ledger calls settled was logged, for this entry, before;
//   - what a round up to its version secured is not in its ledger; nor is what is lost, while its session lives, but
//     for the rest that is lost when the run ends; that rest holds nothing of a session that was over long before;
//   - no dial was answered by a host that answers nobody outside its home (sim_nat.h), so that of no two hosts which
//     cannot be dialled one was connected directly by a dial of the other;
//   - a relay joined only two that the newest list has, or one of these or a stranger with the launching process; and
//     it carried no more than its rate lets through;
//   - the launching process has no link to a session that it fenced, in this life or in one before.
// clang-format on
class CountingChecker {
 public:
  // What relays joined before is not judged: the lists of then are gone.
  explicit CountingChecker(const Swarm& swarm) : swarm_(swarm), joins_read_(swarm.network().relays().joined().size()) {}
  std::vector<std::string> look();
  const CountingBooks& books() const { return books_; }

 private:
  void check_fences(std::vector<std::string>& broken) const;
  void check_relays(std::vector<std::string>& broken);

  const Swarm& swarm_;
  CountingBooks books_;
  std::set<PeerId> on_list_;  // by the newest list of the look before
  std::size_t joins_read_;
};

std::vector<std::string> check_counting(const Swarm& swarm);
// After the end besides: every committed (microbatch, stage) is secured or lost; nothing is unfinished; what is lost
// merely because the run ended was held by a session that was over, for a living one's last round secures it. A run
// that was given up without a stage makes no last rounds, and those in `afflicted` (Session::peer_tag), who suffer
// still, may be waited for in vain.
std::vector<std::string> check_end(const Swarm& swarm, const std::set<std::uint64_t>& afflicted = {});

}  // namespace shoal
