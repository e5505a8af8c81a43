// A member that names entries of others in the paths that it hands on: what it costs, and whom.
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "events/audit/audit.h"
#include "events/session_end.h"
#include "sim/checkers.h"
#include "tests/sim/heard_lines.h"
#include "tests/sim/lying_wire.h"

namespace shoal {
namespace {

constexpr std::uint64_t kForgedSeeds = 20, kForgedMicrobatches = 600;
constexpr std::uint16_t kPathStages = 3, kPathReplicas = 3;

class ForgedPathsTest : public testing::TestWithParam<std::uint16_t> {
 protected:
  // Which stage it is given follows from the seed.
  static std::size_t liar_index() { return kPathStages + static_cast<std::size_t>(GetParam()); }
  static std::uint64_t tag_of(std::uint64_t seed, std::size_t index) {
    return Session::of(Swarm::peer_key(seed, index).id(), 1).peer_tag;
  }
  // What it makes up are entries of members, without their tags.
  static LyingWire::Tongue tongue(const Swarm* const* swarm) {
    auto made = std::make_shared<std::uint64_t>(0);
    return [swarm, made](Message& message) {
      auto* gradient = std::get_if<Gradient>(&message);
      if (gradient == nullptr || gradient->path.empty()) return true;
      const std::size_t stage = kPathStages - gradient->path.size();
      const std::size_t first = stage + 1 == kPathStages ? 0 : 1;  // the last stage has nothing but itself to name
      const auto& stages = (*swarm)->launch()->authority().members().stages;
      for (std::size_t i = first; i < gradient->path.size(); ++i) {
        const auto& members = stages.at(stage + i).members;
        gradient->path[i] = {members.at(*made % members.size()).session, 1'000'000 + ++*made};
      }
      return true;
    };
  }
};

TEST_P(ForgedPathsTest, CostAFewMicrobatchesOneRetryAndTheirMakerItsPlace) {
  for (std::uint64_t seed = 1; seed <= kForgedSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::map<std::string, std::string> evidence;
    const Swarm* running = nullptr;
    SwarmOptions options;
    options.seed = seed;
    options.stages = kPathStages;
    options.replicas = kPathReplicas;
    options.config = small_config(RuleId::kDiloco, kPathStages, kForgedMicrobatches);
    options.evidence = &evidence;
    options.wires = one_lies(seed, liar_index(), tongue(&running));
    const HeardLines heard;
    Swarm swarm(options);
    running = &swarm;
    ASSERT_TRUE(swarm.run_to_end(600s));
    EXPECT_EQ(swarm.summary().committed, kForgedMicrobatches);
    std::set<MicrobatchId> refused;
    std::uint64_t by_honest = 0, by_liar = 0;
    for (const SimEvent& e : swarm.events()) {
      if (e.event == EventKind::kGradientRejected) refused.insert(*e.microbatch);
      if (e.event == EventKind::kSessionOver && is_fault(e.cause)) {
        EXPECT_EQ(e.about->peer_tag, tag_of(seed, liar_index())) << e.cause;
      }
      if (e.event == EventKind::kCommit)
        for (const EntryName& entry : *e.entries)
          ++(entry.session.peer_tag == tag_of(seed, liar_index()) ? by_liar : by_honest);
    }
    EXPECT_GE(refused.size(), 1u) << "it lied";
    EXPECT_LE(refused.size(), kForgedMicrobatches / 10);
    EXPECT_EQ(by_liar, 0u);
    EXPECT_EQ(by_honest, std::uint64_t{kPathStages} * kForgedMicrobatches);
    EXPECT_EQ(swarm.summary().lost, 0u);
    EXPECT_GE(heard.with("paths that it handed on had entries") + heard.with("names others' entries as its own"), 1u);
    for (const std::string& broken : check_end(swarm)) ADD_FAILURE() << broken;
    const AuditReport report = audit_texts(evidence);
    EXPECT_TRUE(report.clean()) << audit_table(report);
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, ForgedPathsTest, testing::Range<std::uint16_t>(0, kPathStages));

}  // namespace
}  // namespace shoal
