// What goes in and out of a process besides its words: descriptors, signals, files that are none, its version, its end.
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <sstream>

#include "common/crypto/sign.h"
#include "runtime/config/ticket.h"
#include "tests/live/processes.h"

namespace shoal {
namespace {

constexpr char kPaced[] = "kind = \"paced\"\nforward_ms = 4\nbackward_ms = 6";

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int run(Processes& swarm, std::vector<std::string> words) {
  swarm.start("once", std::move(words));
  return swarm.exit_code("once");
}

int run_in_shell(Processes& swarm, const std::string& line, std::vector<std::string> words) {
  swarm.start_in_shell("once", line, std::move(words));
  return swarm.exit_code("once");
}

std::string file_of(const std::string& text, const std::string& line, const std::string& instead) {
  std::string changed = text;
  return changed.replace(changed.find(line), line.size(), instead);
}

// What the library says of itself when it is loaded, at the first start and at the one after it.
TEST(LiveEndsTest, ACommandThatComputesLoadsAnOpenMpWhoseThreadsWaitAsleep) {
  Processes swarm;
  EXPECT_EQ(run_in_shell(swarm, "unset OMP_WAIT_POLICY; OMP_DISPLAY_ENV=VERBOSE exec \"$0\" \"$@\"",
                         {"solo", "--threads", "2", "no such file"}),
            66);
  EXPECT_TRUE(says(swarm.errors("once"), "GOMP_SPINCOUNT = '0'")) << swarm.errors("once");
  EXPECT_TRUE(says(swarm.errors("once"), "no such file: no such file")) << "its words are kept";
  run_in_shell(swarm, "OMP_WAIT_POLICY=ACTIVE OMP_DISPLAY_ENV=VERBOSE exec \"$0\" \"$@\"", {"solo", "no such file"});
  EXPECT_TRUE(says(swarm.errors("once"), "OMP_WAIT_POLICY = 'ACTIVE'")) << swarm.errors("once");
  EXPECT_FALSE(says(swarm.errors("once"), "GOMP_SPINCOUNT = '0'")) << "the user's word stands";
}

// An event file that took the number of stderr got every line that was said.
TEST(LiveEndsTest, AFileNeverTakesThePlaceOfAnOutputThatWasClosed) {
  Processes swarm;
  const std::string run_file = swarm.write_run({.steps = 2}), events = swarm.path("solo.jsonl");
  for (const std::string closed : {"2>&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"}) {
    SCOPED_TRACE(closed);
    const bool mute = says(closed, "1>&-");
    EXPECT_EQ(run_in_shell(swarm, "exec \"$0\" \"$@\" " + closed, {"solo", run_file, "--events", events}),
              mute ? 74 : 0);
    std::istringstream lines(ScratchFolder::read(events));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(line.starts_with("{")) << line;
    EXPECT_GT(count, 0u);
  }
}

TEST(LiveEndsTest, AResultThatCannotBeWrittenIsNoSuccess) {
  Processes swarm;
  const std::string run_file = swarm.write_run({.steps = 2});
  const std::vector<std::vector<std::string>> commands = {
      {"version"}, {"--version"}, {"--help"}, {"--home", swarm.path("h"), "key"}, {"--json", "solo", run_file}};
  for (const auto& command : commands) {
    EXPECT_EQ(run_in_shell(swarm, "exec \"$0\" \"$@\" >/dev/full", command), 74) << command.front();
    EXPECT_TRUE(says(swarm.errors("once"), "stdout cannot be written")) << swarm.errors("once");
    EXPECT_EQ(run_in_shell(swarm, "exec \"$0\" \"$@\" >&-", command), 74) << command.front();
    EXPECT_TRUE(says(swarm.errors("once"), "stdout cannot be written")) << swarm.errors("once");
  }
  EXPECT_EQ(run_in_shell(swarm, "exec \"$0\" \"$@\" >/dev/full",
                         {"launch", run_file, "--dir", swarm.path("run"), "--listen", "127.0.0.1:0", "--no-dht"}),
            74)
      << "nobody would ever see its ticket";
  const std::string errors = swarm.errors("once");
  EXPECT_TRUE(says(errors, "stdout cannot be written")) << errors;
  EXPECT_EQ(errors.find("stdout cannot"), errors.rfind("stdout cannot")) << "said twice: " << errors;
  EXPECT_FALSE(std::filesystem::exists(swarm.path("run"))) << "found out before anything is made";
  EXPECT_EQ(run_in_shell(swarm, "exec \"$0\" \"$@\" >/dev/full", {"solo", "--no-such-option"}), 64)
      << "an error keeps its own code";
}

// Returns when nobody reads stdout any more: a write into the pipe has failed.
const std::string kReaderGone = "(trap '' PIPE; while echo; do :; done) 2>/dev/null; ";

TEST(LiveEndsTest, AReaderWhoGoesAwayEndsNoTraining) {
  signal(SIGPIPE, SIG_DFL);  // a test whose parent ignores it hands its children that
  Processes swarm;
  const std::string run_file = swarm.write_run({.steps = 20}), code = swarm.path("code");
  EXPECT_EQ(run_in_shell(swarm,
                         "{ " + kReaderGone + "\"$0\" \"$@\" 2>&1 >'" + swarm.path("out") + "'; echo $? >'" + code +
                             "'; } | true; exit $(cat '" + code + "')",
                         {"solo", run_file, "--line-every", "0"}),
            0);
  EXPECT_TRUE(says(ScratchFolder::read(swarm.path("out")), "steps 20")) << "trained to its end";
}

TEST(LiveEndsTest, ALaunchWhoseTicketNobodyReadsMakesNothing) {
  Processes swarm;
  const std::string run_file = swarm.write_run({.steps = 2}), code = swarm.path("code");
  EXPECT_EQ(
      run_in_shell(swarm,
                   "{ " + kReaderGone + "\"$0\" \"$@\"; echo $? >'" + code + "'; } | true; exit $(cat '" + code + "')",
                   {"launch", run_file, "--dir", swarm.path("run"), "--listen", "127.0.0.1:0", "--no-dht"}),
      74);
  EXPECT_TRUE(says(swarm.errors("once"), "stdout cannot be written")) << swarm.errors("once");
  EXPECT_FALSE(std::filesystem::exists(swarm.path("run"))) << "found out before anything is made";
}

TEST(LiveEndsTest, ATerminalThatGoesAwayEndsARunInOrder) {
  signal(SIGHUP, SIG_DFL);  // a test that runs under nohup hands its children that
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1, .replicas = 1, .steps = 100'000, .executor = kPaced}));
  swarm.join("a");
  ASSERT_TRUE(swarm.wait_for_event("launch", {"\"event\":\"commit\""}, 10)) << swarm.errors("launch");
  swarm.process("launch").send_signal(SIGHUP);
  EXPECT_EQ(swarm.exit_code("launch"), 128 + SIGHUP) << swarm.errors("launch");
  EXPECT_TRUE(says(swarm.output("launch"), "\"interrupted\": true")) << swarm.output("launch");
  EXPECT_EQ(swarm.exit_code("a"), 0) << swarm.errors("a");
  EXPECT_EQ(complaints(swarm.audit_events()), "");
}

TEST(LiveEndsTest, ASecondCtrlCBehindTheEndPromisesNoResume) {
  Processes swarm;
  swarm.launch(swarm.write_run({.stages = 1,
                                .steps = 2,
                                .executor = "kind = \"paced\"\nforward_ms = 400\nbackward_ms = 50",
                                .membership_s = 60}));
  swarm.join("a");
  swarm.join("b");
  ASSERT_TRUE(swarm.wait_for_event("b", {"\"event\":\"serving\""})) << swarm.errors("b");
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("launch.err"), {"validating"})) << swarm.errors("launch");
  swarm.process("b").send_signal(SIGSTOP);  // it will not hear the end, and the other one validates
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("launch.err"), {"members that have not heard the end"}))
      << swarm.errors("launch");
  swarm.process("launch").send_signal(SIGINT);
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("launch.err"), {"Ctrl-C: "})) << swarm.errors("launch");
  swarm.process("launch").send_signal(SIGINT);
  EXPECT_EQ(swarm.exit_code("launch"), 130) << swarm.errors("launch");
  EXPECT_TRUE(says(swarm.errors("launch"), "stopped at once: the run is over")) << swarm.errors("launch");
  EXPECT_FALSE(says(swarm.errors("launch"), "` goes on")) << swarm.errors("launch");
  EXPECT_TRUE(says(swarm.output("launch"), "shoal.launch/2")) << "its figures are whole";
}

TEST(LiveEndsTest, AStageThatWasAskedForAndNotGivenIsSaid) {
  Processes swarm;
  swarm.launch(swarm.write_run({}));
  swarm.join("a", {"--stage", "1"});
  ASSERT_TRUE(swarm.wait_for_event("a", {"\"event\":\"serving\""})) << swarm.errors("a");
  EXPECT_FALSE(says(swarm.errors("a"), "overridden")) << swarm.errors("a");
  swarm.join("b", {"--stage", "1"});
  ASSERT_TRUE(swarm.wait_for_line(swarm.path("b.err"), {"--stage 1 is overridden: stage 0 is given", "HINT:"}))
      << swarm.errors("b");
}

TEST(LiveEndsTest, WithoutAHomeItIsSaidWhereTheKeyIs) {
  Processes swarm;
  const std::string there = "unset HOME XDG_DATA_HOME; cd '" + swarm.path("") + "' && exec \"$0\" \"$@\"";
  EXPECT_EQ(run_in_shell(swarm, there, {"key"}), 0);
  EXPECT_TRUE(says(swarm.errors("once"), "neither HOME nor XDG_DATA_HOME is set")) << swarm.errors("once");
  EXPECT_TRUE(says(swarm.errors("once"), "HINT: --home DIR")) << swarm.errors("once");
  EXPECT_FALSE(ScratchFolder::read(swarm.path(".shoal/key")).empty());
  EXPECT_EQ(run_in_shell(swarm, there, {"--home", swarm.path("h"), "key"}), 0);
  EXPECT_EQ(swarm.errors("once"), "");
}

TEST(LiveEndsTest, NumbersAndAddressesThatCannotBeMeantAreRefused) {
  Processes swarm;
  const std::string run_file = swarm.write_run({});
  swarm.launch(run_file);
  const auto join = [&](const std::string& option, const std::string& value) {
    return run(swarm, {"--home", swarm.path("h"), "join", swarm.ticket(), "--no-dht", option, value});
  };
  for (const std::string memory : {"0", "-1", "99999999999999", "18446744073709551615"}) {
    EXPECT_EQ(join("--memory", memory), 64) << memory;
    EXPECT_TRUE(says(swarm.errors("once"), "--memory")) << swarm.errors("once");
  }
  EXPECT_EQ(join("--advertise", "0.0.0.0"), 65);
  EXPECT_TRUE(says(swarm.errors("once"), "--advertise 0.0.0.0: that is where one listens")) << swarm.errors("once");
  for (const std::string seconds : {"-1", "1e300"})
    EXPECT_EQ(run(swarm, {"solo", run_file, "--line-every", seconds}), 64) << seconds;
}

// Else nobody answers for as long as one has patience, and the cause stays unsaid.
TEST(LiveEndsTest, ANetworkThatIsDownIsNamedAtOnce) {
  Processes swarm;
  const std::string nowhere = "[fe80::1]:9";  // without an interface no machine has a route there
  const KeyPair key = KeyPair::generate();
  const auto ticket = pack_ticket({.run = RunId{key.id().bytes}, .network = 1, .contacts = {{key.id(), nowhere}}});
  ASSERT_TRUE(ticket.ok()) << ticket.error().message;
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"--home", swarm.path("h"), "join", *ticket, "--no-dht"},
                                             {"inspect", *ticket},
                                             {"inspect", hex_of(key.id()), "--network", "1", "--bootstrap", nowhere}}) {
    EXPECT_EQ(run(swarm, command), 69);
    EXPECT_TRUE(says(swarm.errors("once"), "no route to " + nowhere)) << swarm.errors("once");
    EXPECT_TRUE(says(swarm.errors("once"), "HINT: is its network up?")) << swarm.errors("once");
  }
}

TEST(LiveEndsTest, EveryProgramTellsItsVersion) {
  Processes swarm;
  for (const std::string program : {"shoal", "shoal-dht", "shoal-sim", "shoal-bench"}) {
    EXPECT_EQ(run_in_shell(swarm, "exec " SHOAL_BINARY_DIR "/bin/" + program + " \"$@\"", {"--version"}), 0);
    EXPECT_TRUE(swarm.output("once").starts_with(program + " " SHOAL_VERSION)) << swarm.output("once");
  }
  EXPECT_EQ(run(swarm, {"join", "--version"}), 0) << "whatever else a command wants";
}

// A package's GPU computes without them as well: only the program can tell which it is.
TEST(LiveEndsTest, VersionSaysWhetherTheProgramHasCudaKernels) {
  Processes swarm;
  const std::string kernels = std::string(SHOAL_WITH_CUDA ? "" : "not ") + "in this build: ";
  EXPECT_EQ(run(swarm, {"version"}), 0);
  EXPECT_TRUE(says(swarm.output("once"), "\nCUDA kernels " + kernels)) << swarm.output("once");
  EXPECT_EQ(run(swarm, {"--json", "version"}), 0);
  EXPECT_TRUE(says(swarm.output("once"), "\"CUDA kernels\":\"" + kernels)) << swarm.output("once");
}

TEST(LiveEndsTest, ATextThatIsNoFileIsNamedAndNotWaitedFor) {
  Processes swarm;
  const std::string text = ScratchFolder::read(swarm.write_run({}));
  ASSERT_EQ(mkfifo(swarm.path("fifo").c_str(), 0600), 0);
  swarm.write_file("empty", "");
  const std::pair<std::string, std::string> none[] = {{swarm.path("fifo"), "is a FIFO"},
                                                      {swarm.path("events"), "is a folder"},
                                                      {"/dev/zero", "is a device"},
                                                      {swarm.path("empty"), "is empty"}};
  for (const auto& [path, why] : none) {
    SCOPED_TRACE(path);
    const std::string run_file = swarm.write_file("none.toml", file_of(text, "text.bin", path));
    EXPECT_EQ(run(swarm, {"launch", run_file, "--dir", swarm.path("run"), "--listen", "127.0.0.1:0", "--no-dht"}), 65);
    EXPECT_TRUE(says(swarm.errors("once"), path) && says(swarm.errors("once"), why)) << swarm.errors("once");
    EXPECT_TRUE(says(swarm.errors("once"), "HINT: ")) << swarm.errors("once");
    if (why == "is empty") continue;
    EXPECT_EQ(run(swarm, {"launch", path, "--no-dht"}), 78) << "as the run's file";
    EXPECT_TRUE(says(swarm.errors("once"), why)) << swarm.errors("once");
  }
}

TEST(LiveEndsTest, AModelThatNoMemoryHoldsIsNamedBeforeTheTensorLibraryIsAsked) {
  Processes swarm;
  const std::string text =
      file_of(ScratchFolder::read(swarm.write_run({.executor = "kind = \"torch\""})), "dim = 16", "dim = 65536");
  EXPECT_EQ(run(swarm, {"solo", swarm.write_file("large.toml", file_of(text, "layers = 4", "layers = 1000")),
                        "--device", "cpu"}),
            65);
  EXPECT_TRUE(says(swarm.errors("once"), "the model has 51") && says(swarm.errors("once"), "this machine has"))
      << swarm.errors("once");
  EXPECT_TRUE(says(swarm.errors("once"), "lower [model] layers or dim")) << swarm.errors("once");
  EXPECT_FALSE(says(swarm.errors("once"), "libtorch")) << swarm.errors("once");
}

// It lies beside the model, so all would be trained before it fails.
TEST(LiveEndsTest, AManifestThatIsTooLargeToBeSavedIsNamedBeforeTheTraining) {
  constexpr int kStages = 200;
  Processes swarm;
  std::string keys, codecs;
  for (int i = 0; i < 96; ++i) keys += (i == 0 ? "\"" : ", \"") + std::string(64, 'a') + "\"";
  for (int i = 0; i < kStages - 1; ++i) codecs += i == 0 ? "\"int8\"" : ", \"int8\"";
  const std::string run_file = swarm.write_run(
      {.stages = kStages,
       .steps = 1,
       .executor = "kind = \"torch\"",
       .more = "[admission]\nmode = \"keys\"\nkeys = [" + keys + "]\n[wire]\nforward = [" + codecs + "]\n"});
  EXPECT_EQ(run(swarm, {"solo", run_file, "--save", swarm.path("model"), "--device", "cpu"}), 78);
  EXPECT_TRUE(says(swarm.errors("once"), "the manifest would have")) << swarm.errors("once");
  EXPECT_FALSE(says(swarm.errors("once"), "step ")) << swarm.errors("once");
}

TEST(LiveEndsTest, WhoHoldsTheRunsKeyLeavesNoCore) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_CORE, &limit), 0);
  if (limit.rlim_max == 0) GTEST_SKIP() << "no process writes one here";
  Processes swarm;
  swarm.launch(swarm.write_run({}));
  const std::string limits = ScratchFolder::read("/proc/" + std::to_string(swarm.process("launch").pid()) + "/limits");
  std::istringstream line(limits.substr(limits.find("Max core file size") + 18));
  std::string soft, hard;
  line >> soft >> hard;
  EXPECT_EQ(soft + " " + hard, "0 0") << limits;
}

}  // namespace
}  // namespace shoal
