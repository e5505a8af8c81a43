// Member lists that come from a stranger: even one that the run's key signed counts only when the authority tells it.
#include <string>

#include "sim/checkers.h"
#include "tests/sim/heard_lines.h"
#include "tests/sim/stranger.h"
#include "transport/envelope.h"

namespace shoal {
namespace {

Members signed_by(const KeyPair& key, const MemberList& list) {
  Members members{pack_member_list(list).value(), {}};
  const Signature signature = key.sign(members.body);
  members.signature.assign(signature.begin(), signature.end());
  return members;
}

TEST(StrangersListTest, NeitherAGenuineListNorAFloodOfForgedOnesChangesAnything) {
  SwarmOptions options;
  options.config = small_config(RuleId::kDiloco, options.stages, 400);
  const HeardLines heard;
  Swarm swarm{options};
  swarm.run_for(3s);
  MemberList nobody = swarm.launch()->authority().members();
  Stranger stranger(swarm, nobody.run);
  nobody.epoch = Epoch(nobody.epoch.value + 1000);
  for (StageMembers& stage : nobody.stages) stage.members.clear();
  const Members genuine = signed_by(swarm.run_key(), nobody);
  Members forged = genuine;
  forged.signature[0] ^= 1;
  for (const auto& peer : swarm.peers()) {
    stranger.say(peer->key.id(), peer->address, genuine);
    for (int i = 0; i < 200; ++i) stranger.say(peer->key.id(), peer->address, forged);
  }
  ASSERT_TRUE(swarm.run_to_end(300s));
  EXPECT_EQ(swarm.summary().committed, 400u);
  for (const SimEvent& e : swarm.events()) EXPECT_NE(e.event, EventKind::kFenced) << e.cause;
  EXPECT_EQ(heard.with("member list"), 0u) << "no line for what a stranger says";
  const std::vector<std::string> broken = check_end(swarm);
  EXPECT_TRUE(broken.empty()) << broken.front();
}

}  // namespace
}  // namespace shoal
