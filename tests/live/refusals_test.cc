// What processes say, and with which exit code, when they cannot take part.
#include <csignal>
#include <fstream>

#include "common/crypto/sign.h"
#include "common/host_port.h"
#include "common/rng.h"
#include "runtime/config/ticket.h"
#include "tests/live/closed_port.h"
#include "tests/live/processes.h"

namespace shoal {
namespace {

// Runs to its end; what it wrote to stderr goes to `errors`.
int run(Processes& swarm, std::vector<std::string> words, std::string& errors) {
  swarm.start("once", std::move(words));
  const int code = swarm.exit_code("once");
  errors = swarm.errors("once");
  return code;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(LiveRefusalTest, AMistypedTicketIsCalledATypo) {
  Processes swarm;
  swarm.launch(swarm.write_run({}));
  std::string ticket = swarm.ticket(), errors;
  char& letter = ticket[ticket.size() / 2];
  letter = letter == 'A' ? 'B' : 'A';
  EXPECT_EQ(run(swarm, {"--home", swarm.path("h"), "join", ticket, "--no-dht"}, errors), 65);
  EXPECT_TRUE(says(errors, "typo")) << errors;
  EXPECT_EQ(run(swarm, {"--home", swarm.path("h"), "join", "hello", "--no-dht"}, errors), 65);
  EXPECT_TRUE(says(errors, "no ticket")) << errors;
}

TEST(LiveRefusalTest, ATicketThatLeadsNowhereIsUnreachable) {
  Processes swarm;
  swarm.launch(swarm.write_run({}));
  const std::string ticket = swarm.ticket();
  swarm.process("launch").send_signal(SIGKILL);
  ASSERT_EQ(swarm.exit_code("launch"), 128 + SIGKILL);
  std::string errors;
  EXPECT_EQ(run(swarm, {"--home", swarm.path("h"), "join", ticket, "--no-dht", "--patience", "1"}, errors), 69);
  EXPECT_TRUE(says(errors, "no answer from the authority")) << errors;
}

TEST(LiveRefusalTest, ATicketOfAnotherRunIsRefused) {
  Processes swarm;
  swarm.launch(swarm.write_run({}));
  auto ticket = parse_ticket(swarm.ticket());
  ASSERT_TRUE(ticket.ok());
  std::array<std::uint8_t, 32> seed{};
  seed[0] = 9;
  const KeyPair other = KeyPair::from_seed(seed);
  ticket->run = RunId{other.id().bytes};
  for (Contact& contact : ticket->contacts) contact.peer = other.id();
  const auto text = pack_ticket(*ticket);
  ASSERT_TRUE(text.ok());
  std::string errors;
  EXPECT_EQ(run(swarm, {"--home", swarm.path("h"), "join", *text, "--no-dht", "--patience", "5"}, errors), 77)
      << errors;
  EXPECT_TRUE(says(errors, "it is not peer")) << errors;
}

TEST(LiveRefusalTest, AForeignProtocolVersionIsToldBothNumbers) {
  Processes swarm;
  swarm.launch(swarm.write_run({}));
  std::string errors;
  EXPECT_EQ(
      run(swarm,
          {"--fault", "transport.foreign_version=error", "--home", swarm.path("h"), "join", swarm.ticket(), "--no-dht"},
          errors),
      76);
  EXPECT_TRUE(says(errors, "protocol version")) << errors;
}

TEST(LiveRefusalTest, AKeyThatIsNotAdmittedIsToldItsKey) {
  Processes swarm;
  std::string errors;
  ASSERT_EQ(run(swarm, {"--home", swarm.path("admitted"), "key"}, errors), 0) << errors;
  const std::string admitted = swarm.output("once").substr(0, 64);
  ASSERT_EQ(run(swarm, {"--home", swarm.path("stranger"), "key"}, errors), 0) << errors;
  const std::string stranger = swarm.output("once").substr(0, 64);
  swarm.launch(swarm.write_run({.stages = 1,
                                .replicas = 1,
                                .steps = 2,
                                .more = "[admission]\nmode = \"keys\"\nkeys = [\"" + admitted + "\"]\n"}));
  EXPECT_EQ(run(swarm, {"--home", swarm.path("stranger"), "join", swarm.ticket(), "--no-dht"}, errors), 77);
  EXPECT_TRUE(says(errors, stranger)) << errors;
  EXPECT_EQ(run(swarm, {"--home", swarm.path("admitted"), "join", swarm.ticket(), "--no-dht"}, errors), 0) << errors;
  EXPECT_EQ(swarm.exit_code("launch"), 0) << swarm.errors("launch");
}

// Peers close their own listeners to strangers, and still find each other.
TEST(LiveRefusalTest, ARunWithKeysOfTwoStagesTrains) {
  Processes swarm;
  std::string errors, keys;
  for (const char* home : {"home-a", "home-b"}) {
    ASSERT_EQ(run(swarm, {"--home", swarm.path(home), "key"}, errors), 0) << errors;
    keys += (keys.empty() ? "\"" : ", \"") + swarm.output("once").substr(0, 64) + "\"";
  }
  swarm.launch(
      swarm.write_run({.replicas = 1, .steps = 3, .more = "[admission]\nmode = \"keys\"\nkeys = [" + keys + "]\n"}));
  swarm.join("a");
  swarm.join("b");
  EXPECT_EQ(swarm.exit_code("launch"), 0) << swarm.errors("launch");
  EXPECT_EQ(swarm.exit_code("a"), 0) << swarm.errors("a");
  EXPECT_EQ(swarm.exit_code("b"), 0) << swarm.errors("b");
}

// Its own connection to the launching process stands all the while: only a dial to what it tells others shows the
// fault.
// A run that lasts, and a machine "a" that joins it as `more` says.
void join_lasting_run(Processes& swarm, const std::vector<std::string>& more) {
  swarm.launch(swarm.write_run(
      {.stages = 1, .replicas = 1, .steps = 100'000, .executor = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6"}));
  std::vector<std::string> words{"--home", swarm.path("h"), "join", swarm.ticket(), "--no-dht"};
  words.insert(words.end(), more.begin(), more.end());
  swarm.start("a", words);
}

void end_lasting_run(Processes& swarm) {
  swarm.process("launch").send_signal(SIGTERM);
  EXPECT_EQ(swarm.exit_code("launch"), 143) << swarm.errors("launch");
  EXPECT_EQ(swarm.exit_code("a"), 0) << swarm.errors("a");
}

TEST(LiveRefusalTest, AMachineThatNobodyDialsServesAndIsToldTheRemedy) {
  Processes swarm;
  const ClosedPort closed_port;
  const std::string closed = closed_port.address();
  join_lasting_run(swarm, {"--listen", "127.0.0.1:0", "--advertise", closed});
  EXPECT_TRUE(swarm.wait_for_line(swarm.path("a.err"), {"serving stage"})) << swarm.errors("a");
  EXPECT_TRUE(swarm.wait_for_line(swarm.path("a.err"), {"reach: none", closed, "HINT: --advertise HOST:PORT"}))
      << swarm.errors("a");
  EXPECT_TRUE(swarm.wait_for_line(swarm.path("launch.err"), {"cannot be dialled", closed})) << swarm.errors("launch");
  end_lasting_run(swarm);
}

// It comes from 127.0.0.1: another host is dialled behind a payment alone.
TEST(LiveRefusalTest, AnAddressElsewhereIsDialledForWhoPaid) {
  Processes swarm;
  join_lasting_run(swarm, {"--listen", "0.0.0.0:0", "--advertise", "127.0.0.2"});
  EXPECT_TRUE(
      swarm.wait_for_line(swarm.path("launch.err"), {"is not dialled, because the request comes from 127.0.0.1"}))
      << swarm.errors("launch");
  EXPECT_TRUE(swarm.wait_for_line(swarm.path("a.err"), {"reach: direct (127.0.0.2:"})) << swarm.errors("a");
  end_lasting_run(swarm);
}

TEST(LiveRefusalTest, CheckpointsAreWantedOrNot) {
  Processes swarm;
  std::string errors;
  EXPECT_EQ(run(swarm,
                {"--home", swarm.path("h"), "join", "hello", "--no-dht", "--checkpoints", swarm.path("c"),
                 "--no-checkpoints"},
                errors),
            64);
  EXPECT_TRUE(says(errors, "--checkpoints excludes --no-checkpoints")) << errors;
}

TEST(LiveRefusalTest, APortInUseIsNamed) {
  Processes swarm;
  const std::string run_file = swarm.write_run({});
  swarm.launch(run_file);
  const auto ticket = parse_ticket(swarm.ticket());
  ASSERT_TRUE(ticket.ok());
  const std::string address = ticket->contacts.front().address;
  std::string errors;
  EXPECT_EQ(run(swarm, {"launch", run_file, "--dir", swarm.path("second"), "--listen", address, "--no-dht"}, errors),
            75);
  EXPECT_TRUE(says(errors, "port " + address.substr(address.rfind(':') + 1)) && says(errors, "in use")) << errors;
}

// As when an outgoing connection of any program got it as its source port.
TEST(LiveRefusalTest, AResumedRunWaitsForItsPortUnlessItsOwnLaunchHoldsIt) {
  Processes swarm;
  swarm.launch(swarm.write_run({}));
  const std::string first_ticket = swarm.ticket();
  const auto ticket = parse_ticket(first_ticket);
  ASSERT_TRUE(ticket.ok());
  const auto port = parse_host_port(ticket->contacts.front().address)->port;
  std::string errors;
  EXPECT_EQ(run(swarm, {"launch", "--resume", swarm.path("run"), "--no-dht"}, errors), 75);
  EXPECT_TRUE(says(errors, "another process goes on with this run")) << errors;
  EXPECT_FALSE(says(errors, "waiting for it")) << errors;
  swarm.process("launch").send_signal(SIGKILL);
  ASSERT_EQ(swarm.exit_code("launch"), 128 + SIGKILL);
  auto borrowed = std::make_optional<ClosedPort>(static_cast<std::uint16_t>(port + 1));
  for (const std::string name : {"stopped", "resumed"}) {
    swarm.start(name, {"launch", "--resume", swarm.path("run"), "--no-dht"});
    ASSERT_TRUE(swarm.wait_for_line(swarm.path(name + ".err"), {"waiting for it", "at most 75 s"}))
        << swarm.errors(name);
    if (name == "stopped") {
      swarm.process(name).send_signal(SIGINT);
      EXPECT_EQ(swarm.exit_code(name), 128 + SIGINT) << "the wait heeds Ctrl-C";
    }
  }
  borrowed.reset();
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("resumed.out"), {"ticket " + first_ticket})) << swarm.errors("resumed");
}

TEST(LiveRefusalTest, AFolderThatHoldsARunIsNotOverwritten) {
  Processes swarm;
  const std::string run_file = swarm.write_run({});
  swarm.launch(run_file);
  std::string errors;
  EXPECT_NE(run(swarm, {"launch", run_file, "--dir", swarm.path("run"), "--listen", "127.0.0.1:0", "--no-dht"}, errors),
            0);
  EXPECT_TRUE(says(errors, swarm.path("run"))) << errors;
  swarm.process("launch").send_signal(SIGKILL);
  ASSERT_EQ(swarm.exit_code("launch"), 128 + SIGKILL);
  EXPECT_EQ(run(swarm, {"launch", run_file, "--dir", swarm.path("run"), "--listen", "127.0.0.1:0", "--no-dht"}, errors),
            65);
  EXPECT_TRUE(says(errors, "--resume")) << errors;
}

TEST(LiveRefusalTest, ARunFileThatWasChangedSinceDoesNotResumeTheRun) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .steps = 2}));
  swarm.join("a");
  EXPECT_EQ(swarm.exit_code("launch"), 0) << swarm.errors("launch");
  const std::string kept = swarm.path("run") + "/run.toml";
  const std::string text = ScratchFolder::read(kept);
  std::string changed = text, errors;
  changed.replace(changed.find("seed = "), 7, "seed = 9");
  std::ofstream(kept) << changed;
  EXPECT_EQ(run(swarm, {"launch", "--resume", swarm.path("run"), "--no-dht"}, errors), 65);
  EXPECT_TRUE(says(errors, "another manifest") && says(errors, "authority.log")) << errors;
  std::ofstream(kept) << text;
  EXPECT_EQ(run(swarm, {"launch", "--resume", swarm.path("run"), "--no-dht"}, errors), 0) << errors;
  EXPECT_FALSE(says(errors, "training begins")) << "it was over already";
}

// Serials are places in the order of the text's samples: with another text they would name other samples.
TEST(LiveRefusalTest, ATokenFileThatWasChangedSinceDoesNotResumeTheRun) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .steps = 2}));
  swarm.join("a");
  EXPECT_EQ(swarm.exit_code("launch"), 0) << swarm.errors("launch");
  const std::string text = ScratchFolder::read(swarm.path("text.bin"));
  std::string changed = text, errors;
  changed[100] = changed[100] == 'x' ? 'y' : 'x';
  swarm.write_file("text.bin", changed);
  EXPECT_EQ(run(swarm, {"launch", "--resume", swarm.path("run"), "--no-dht"}, errors), 65);
  EXPECT_TRUE(says(errors, "text.bin is not the one") && says(errors, "HINT: put the old file back")) << errors;
  swarm.write_file("text.bin", text);
  EXPECT_EQ(run(swarm, {"launch", "--resume", swarm.path("run"), "--no-dht"}, errors), 0) << errors;
}

TEST(LiveRefusalTest, AnOutputThatCannotBeMadeIsSaidAtTheStart) {
  Processes swarm;
  const std::string run_file = swarm.write_run({.stages = 1});
  swarm.launch(run_file);
  const std::string nowhere = swarm.path("nowhere") + "/e.jsonl", file = swarm.write_file("a-file", "x");
  const std::vector<std::string> launch = {"launch",   run_file,      "--dir",   swarm.path("other"),
                                           "--listen", "127.0.0.1:0", "--no-dht"};
  const auto with = [](std::vector<std::string> words, std::vector<std::string> more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  std::string errors;
  EXPECT_EQ(run(swarm, with(launch, {"--events", nowhere}), errors), 73);
  EXPECT_TRUE(says(errors, nowhere) && says(errors, "HINT: make its folder first")) << errors;
  EXPECT_EQ(run(swarm, {"launch", run_file, "--dir", file + "/run", "--no-dht"}, errors), 73) << errors;
  EXPECT_EQ(run(swarm, {"--home", swarm.path("h"), "join", swarm.ticket(), "--no-dht", "--events", nowhere}, errors),
            73)
      << errors;
  EXPECT_EQ(run(swarm, {"solo", run_file, "--events", nowhere}, errors), 73) << errors;
  const std::string model = swarm.write_file(
      "model.toml",
      ScratchFolder::read(run_file).replace(ScratchFolder::read(run_file).find("\"integer\""), 9, "\"torch\""));
  EXPECT_EQ(run(swarm, {"solo", model, "--save", file + "/model"}, errors), 73) << errors;
  EXPECT_EQ(run(swarm,
                {"launch", model, "--dir", swarm.path("other"), "--listen", "127.0.0.1:0", "--no-dht", "--save",
                 file + "/model"},
                errors),
            73)
      << errors;
  EXPECT_EQ(run(swarm, {"solo", run_file, "--save", swarm.path("model")}, errors), 78) << "an integer run has no model";
}

TEST(LiveRefusalTest, ASecondProcessOnOneHomeTakesATemporaryKeyAndSaysSo) {
  Processes swarm;
  swarm.launch(swarm.write_run(
      {.stages = 1, .steps = 100'000, .executor = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6"}));
  swarm.join("a", {}, "shared");
  ASSERT_TRUE(swarm.wait_for_event("a", {"\"event\":\"serving\""})) << swarm.errors("a");
  swarm.join("b", {}, "shared");
  ASSERT_TRUE(swarm.wait_for_event("b", {"\"event\":\"serving\""})) << swarm.errors("b");
  EXPECT_TRUE(says(swarm.errors("b"), "temporary key")) << swarm.errors("b");
  EXPECT_FALSE(says(swarm.errors("a"), "temporary key"));
  swarm.process("launch").send_signal(SIGTERM);
  EXPECT_EQ(swarm.exit_code("launch"), 143) << swarm.errors("launch");
  EXPECT_EQ(swarm.exit_code("a"), 0) << swarm.errors("a");
  EXPECT_EQ(swarm.exit_code("b"), 0) << swarm.errors("b");
}

TEST(LiveRefusalTest, ATokenFileOfTheWrongWidthIsNamed) {
  Processes swarm;
  const std::string run_file = swarm.write_run({});
  std::string text = ScratchFolder::read(run_file);
  text.replace(text.find("sequences = 2"), 13, "width = \"u16\"\nsequences = 2");
  const std::string other = swarm.write_file("wide.toml", text);
  std::string errors;
  EXPECT_EQ(run(swarm, {"launch", other, "--dir", swarm.path("wide"), "--listen", "127.0.0.1:0", "--no-dht"}, errors),
            65);
  EXPECT_TRUE(says(errors, "text.bin")) << errors;
}

}  // namespace
}  // namespace shoal
