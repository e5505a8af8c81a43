// A layout from its plan to the peers that serve by it, and layouts that are refused.
#include "tests/live/processes.h"

namespace shoal {
namespace {

// Its public key; made at first use.
std::string key_of(Processes& swarm, const std::string& name) {
  swarm.start(name + "-key", {"--home", swarm.path("home-" + name), "key"});
  EXPECT_EQ(swarm.exit_code(name + "-key"), 0) << swarm.errors(name + "-key");
  return swarm.output(name + "-key").substr(0, 64);
}

TEST(LiveLayoutTest, PeersServeWhereThePlanHasThem) {
  Processes swarm;
  const std::string run_file =
      swarm.write_run({.steps = 100'000, .executor = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6"});
  // Two that are fast and near each other, two that are slow and far away from those.
  std::string peers;
  std::map<std::string, std::string> keys;
  for (const std::string name : {"a", "b", "c", "d"}) {
    keys[name] = key_of(swarm, name);
    peers += "[[peer]]\nname = \"" + name + "\"\nkey = \"" + keys[name] + "\"\nregion = \"" +
             (name < "c" ? "near" : "far") + "\"\nstage_ms = " + (name < "c" ? "5" : "20") + "\n";
  }
  const std::string list = swarm.write_file("peers.toml", peers);
  const std::string links =
      swarm.write_file("links.csv", "a,b,delay_ms,bandwidth_mbps\nnear,near,1,1000\nnear,far,200,1\n");
  swarm.start("plan", {"plan", run_file, "--peers", list, "--links", links, "-o", swarm.path("layout.toml")});
  ASSERT_EQ(swarm.exit_code("plan"), 0) << swarm.errors("plan");
  EXPECT_NE(swarm.output("plan").find("the best of all layouts"), std::string::npos) << swarm.output("plan");
  const std::string layout = ScratchFolder::read(swarm.path("layout.toml"));
  const auto stage_of = [&](const std::string& name) {
    return layout.substr(layout.find("stage = ", layout.find(keys.at(name))) + 8, 1);
  };
  // A round follows every step, so replicas are planned beside each other.
  EXPECT_EQ(stage_of("a"), stage_of("b")) << layout;
  EXPECT_EQ(stage_of("c"), stage_of("d")) << layout;
  EXPECT_NE(stage_of("a"), stage_of("c")) << layout;

  swarm.launch(run_file, {"--layout", swarm.path("layout.toml")});
  for (const std::string name : {"d", "b", "c", "a"}) swarm.join(name);
  for (const auto& [name, key] : keys)
    EXPECT_TRUE(swarm.wait_for_event(
        "launch", {"\"state\":\"joined\"", key, "\"stage\":" + stage_of(name), "as the layout has it"}))
        << name << swarm.errors("launch");
}

TEST(LiveLayoutTest, ALayoutThatDoesNotFitTheRunIsRefusedBeforeItBegins) {
  Processes swarm;
  const std::string run_file = swarm.write_run({});
  const std::string key = std::string(64, 'a');
  const auto refused = [&](const std::string& text) {
    const std::string layout = swarm.write_file("layout.toml", text);
    swarm.start("once", {"launch", run_file, "--dir", swarm.path("new"), "--no-dht", "--layout", layout});
    EXPECT_EQ(swarm.exit_code("once"), 65);
    EXPECT_EQ(swarm.output("once"), "") << "no ticket";
    return swarm.errors("once");
  };
  const std::string peer = "[[peer]]\nkey = \"" + key + "\"\n";
  EXPECT_NE(refused(peer + "stage = 2\n").find("layout.toml:1: "), std::string::npos);
  EXPECT_NE(refused(peer + "stage = 1\n\n" + peer + "stage = 0\n").find("layout.toml:5: "), std::string::npos);
  EXPECT_NE(refused("[[peer]]\nname = \"a\"\nstage = 0\n").find("`shoal key` prints it"), std::string::npos);
  swarm.start("missing", {"launch", run_file, "--dir", swarm.path("new"), "--no-dht", "--layout", swarm.path("none")});
  EXPECT_EQ(swarm.exit_code("missing"), 66) << swarm.errors("missing");
  swarm.start("plan", {"plan", run_file, "--peers", swarm.write_file("peers.toml", peer)});
  EXPECT_EQ(swarm.exit_code("plan"), 65);
  EXPECT_NE(swarm.errors("plan").find("has no speed. HINT"), std::string::npos) << swarm.errors("plan");
}

}  // namespace
}  // namespace shoal
