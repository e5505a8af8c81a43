// Machines that cannot dial each other, and a launching process that nobody dials, meet at a relay.
#include <csignal>
#include <nlohmann/json.hpp>

#include "common/crypto/sign.h"
#include "common/host_port.h"
#include "runtime/config/ticket.h"
#include "tests/live/closed_port.h"
#include "tests/live/processes.h"

namespace shoal {
namespace {

// A run that lasts, of two stages.
std::string lasting_run(Processes& swarm) {
  return swarm.write_run(
      {.replicas = 1, .steps = 100'000, .executor = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6"});
}

void end_in_order(Processes& swarm, const std::vector<std::string>& peers) {
  swarm.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  for (const std::string& name : peers) EXPECT_EQ(swarm.exit_code(name), 0) << swarm.errors(name);
  EXPECT_EQ(complaints(swarm.audit_events()), "");
}

TEST(LiveRelayTest, TwoMachinesThatNobodyDialsTrainOverLaunchsRelay) {
  Processes swarm;
  const ClosedPort closed;
  swarm.launch(lasting_run(swarm));
  for (const std::string name : {"a", "b"}) swarm.join(name, {"--advertise", closed.address()});
  for (const std::string name : {"a", "b"}) {
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""}, 20)) << swarm.errors(name);
    EXPECT_TRUE(
        swarm.wait_for_line(swarm.path(name + ".err"), {"reach: none", closed.address(), "is called at 127.0.0.1:"}))
        << swarm.errors(name);
  }
  EXPECT_TRUE(swarm.wait_for_line(swarm.path("launch.err"), {"members that cannot dial each other meet at the relay"}));
  EXPECT_TRUE(
      swarm.wait_for_line(swarm.path("launch.err"), {"stage 0 has no member that can be dialled", "go over relays"}))
      << swarm.errors("launch");
  end_in_order(swarm, {"a", "b"});
  EXPECT_TRUE(swarm.wait_for_line(swarm.path("launch.err"), {"the relay of this process carried"}))
      << swarm.errors("launch");
}

TEST(LiveRelayTest, WithoutARelayAMachineThatNobodyDialsIsToldSo) {
  Processes swarm;
  const ClosedPort closed;
  swarm.launch(lasting_run(swarm), {"--relay", "0"});
  swarm.join("a");
  swarm.join("b", {"--advertise", closed.address()});
  ASSERT_TRUE(
      swarm.wait_for_line(swarm.path("b.err"), {"reach: none", "the run has no relay", "HINT: whoever launched"}))
      << swarm.errors("b");
  for (const std::string name : {"a", "b"})
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""}, 5)) << swarm.errors(name);
  end_in_order(swarm, {"a", "b"});
}

// Its own addresses are in no ticket. A peer that meets it over the relay hears them and dials it, where it can: here
// it can, and is dialled back then.
TEST(LiveRelayTest, ARunIsLaunchedFromWhereNobodyDialsOverARelayElsewhere) {
  Processes swarm;
  swarm.start("relay", {"relay", "--listen", "127.0.0.1:0"});
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("relay.out"), {"relay listens on 127.0.0.1:"})) << swarm.errors("relay");
  const std::string said = swarm.output("relay");
  const std::size_t at = said.find("127.0.0.1:");
  const std::string relay = said.substr(at, said.find_first_not_of("0123456789", at + 10) - at);
  swarm.launch(lasting_run(swarm), {"--via", relay});
  const auto ticket = parse_ticket(swarm.ticket());
  ASSERT_TRUE(ticket.ok());
  ASSERT_EQ(ticket->contacts.size(), 1u);
  EXPECT_EQ(ticket->contacts.front().address, "via/" + relay);
  for (const std::string name : {"a", "b"}) swarm.join(name);
  for (const std::string name : {"a", "b"}) {
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""}, 5)) << swarm.errors(name);
    EXPECT_TRUE(swarm.wait_for_line(swarm.path(name + ".err"), {"reach: direct (127.0.0.1:"})) << swarm.errors(name);
  }
  end_in_order(swarm, {"a", "b"});
  swarm.process("relay").send_signal(SIGTERM);
  EXPECT_EQ(swarm.exit_code("relay"), 0) << swarm.errors("relay");
}

// A network that lets out one port alone: the ticket names the relay of launch beside its addresses.
TEST(LiveRelayTest, ARelayPortThatWasAskedForStandsInTheTicketAndIsNotGivenUp) {
  Processes swarm;
  const ClosedPort taken;
  const std::string run = lasting_run(swarm), port = std::to_string(taken.port());
  swarm.start("taken", {"launch", run, "--dir", swarm.path("other"), "--listen", "127.0.0.1:0", "--no-dht",
                        "--relay-port", port});
  EXPECT_EQ(swarm.exit_code("taken"), 75) << swarm.errors("taken");
  EXPECT_NE(swarm.errors("taken").find(port), std::string::npos) << swarm.errors("taken");
  std::string free;
  {
    const ClosedPort drawn;
    free = std::to_string(drawn.port());
  }
  swarm.launch(run, {"--relay-port", free});
  auto ticket = parse_ticket(swarm.ticket());
  ASSERT_TRUE(ticket.ok());
  ASSERT_EQ(ticket->contacts.size(), 2u);
  EXPECT_EQ(ticket->contacts.back().address, "via/127.0.0.1:" + free);
  ticket->contacts.erase(ticket->contacts.begin());
  swarm.join_by(*pack_ticket(*ticket));
  const ClosedPort closed;
  for (const std::string name : {"a", "b"}) swarm.join(name, {"--advertise", closed.address()});
  for (const std::string name : {"a", "b"})
    ASSERT_TRUE(swarm.wait_for_event(name, {"\"event\":\"settled\""}, 5)) << swarm.errors(name);
  end_in_order(swarm, {"a", "b"});
}

TEST(LiveRelayTest, ANetworkIsLookedAtBeforeAMachineJoins) {
  Processes swarm;
  const ClosedPort closed;
  swarm.launch(lasting_run(swarm));
  const auto look = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words = {"netcheck", swarm.ticket(), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    swarm.start(name, words);
    EXPECT_EQ(swarm.exit_code(name), 0) << swarm.errors(name);
    return nlohmann::json::parse(swarm.output(name));
  };
  const auto open = look("open", {});
  EXPECT_EQ(open["reach"], "direct") << open;
  EXPECT_EQ(open["run"]["linked"], true) << open;
  EXPECT_GT(open["run"]["round_trip_ms"], 0.0) << open;
  EXPECT_EQ(open["outwards"][0]["passes"], true) << open;
  EXPECT_EQ(open["router"]["asked"], false) << "nobody behind a router is on loopback";
  const auto shut = look("shut", {"--advertise", closed.address()});
  EXPECT_EQ(shut["reach"], "none") << shut;
  EXPECT_FALSE(shut["remedies"].empty()) << shut;
  end_in_order(swarm, {});
}

TEST(LiveRelayTest, ARunThatIsNotThereIsSaid) {
  Processes swarm;
  const ClosedPort closed;
  const HostPort place = parse_host_port(closed.address()).value();
  const auto ticket =
      pack_ticket({.run = RunId{KeyPair::generate().id().bytes}, .network = 1, .contacts = {{PeerId{}, place.text()}}});
  ASSERT_TRUE(ticket.ok());
  swarm.start("look", {"netcheck", *ticket});
  EXPECT_EQ(swarm.exit_code("look"), 69) << swarm.errors("look");
  EXPECT_NE(swarm.output("look").find("does not pass"), std::string::npos) << swarm.output("look");
}

}  // namespace
}  // namespace shoal
