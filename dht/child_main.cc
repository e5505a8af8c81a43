// shoal-dht: one node of the run's DHT, in a process of its own (docs/dht.md). The only program here that links OpenDHT
// (GPL-3+).
//   shoal-dht --supervised ...   commands on stdin, events on stdout (dht/child_protocol.h); ends at end of input
//   shoal-dht --serve ...        a plain member that others bootstrap from; ends at SIGTERM, SIGINT or SIGHUP
// Exit codes: 0 ended as asked, 64 usage, 69 the port is in use, 70 internal.
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>

#include "common/os/program_start.h"
#include "common/os/thread_loop.h"
#include "common/program/options.h"
#include "common/program/outcome.h"
#include "dht/child_protocol.h"
#include "dht/opendht_member.h"
#include "dht/record.h"

namespace shoal {
namespace {

struct Arguments {
  OpenDhtOptions dht;
  std::vector<std::string> bootstrap;
  bool supervised = false;
  bool serve = false;
  bool die_with_parent = false;
  std::uint64_t memory_bytes = 512ull << 20;
};

// Writes whole lines to the supervisor, from any thread. A supervisor that does not read holds the DHT back, and
// nothing else.
class LineWriter {
 public:
  explicit LineWriter(int descriptor) : descriptor_(descriptor) {}
  void write_event(const ChildEvent& event) {
    const std::string line = pack_line(event);
    const std::lock_guard lock(mutex_);
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t size = write(descriptor_, line.data() + done, line.size() - done);
      if (size < 0 && errno != EINTR) _exit(0);  // the supervisor is gone
      if (size > 0) done += static_cast<std::size_t>(size);
    }
  }

 private:
  int descriptor_;
  std::mutex mutex_;
};

void confine(const Arguments& arguments) {
  if (arguments.supervised || arguments.die_with_parent) prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  mallopt(M_ARENA_MAX, 2);  // an arena takes 64 MiB of address space
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // their shadow memory is terabytes of address space
  const rlimit memory{arguments.memory_bytes, arguments.memory_bytes};
  if (setrlimit(RLIMIT_AS, &memory) != 0) std::perror("shoal-dht: RLIMIT_AS");
#endif
}

void obey(OpenDhtMember& node, LineWriter& out, const std::string& line) {
  const Result<ChildCommand> command = parse_command(line);
  if (!command.ok()) {
    std::fprintf(stderr, "shoal-dht: %s\n", command.error().message.c_str());
    return;
  }
  if (const auto* put = std::get_if<PutCommand>(&*command)) {
    node.put(*put);
  } else if (const auto* withdraw = std::get_if<WithdrawCommand>(&*command)) {
    node.withdraw(*withdraw);
  } else if (const auto* get = std::get_if<GetCommand>(&*command)) {
    const std::uint64_t tag = get->tag;
    node.get(
        get->key,
        [&out, tag](const std::string& text) {
          out.write_event(ValueEvent{tag, text});
        },
        [&out, tag] { out.write_event(DoneEvent{tag}); });
  } else {
    node.bootstrap(std::get<BootstrapCommand>(*command).address);
  }
}

int run_supervised(OpenDhtMember& node) {
  // Ctrl-C and a terminal's end go to the whole group; our end is the supervisor's to say.
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  // Stray prints of a library must not end up among the events.
  LineWriter out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  dup2(STDERR_FILENO, STDOUT_FILENO);
  out.write_event(ReadyEvent{node.port()});
  LineBuffer lines;
  TimePoint next_status = monotonic_now();
  for (;;) {
    const TimePoint now = monotonic_now();
    if (now >= next_status) {
      const DhtStatus status = node.status();
      out.write_event(status);
      next_status = now + (status.good_nodes == 0 ? 200ms : Duration(1s));
    }
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready =
        poll(&input, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(next_status - now).count()));
    if (ready <= 0) continue;
    char bytes[4096];
    const ssize_t size = read(STDIN_FILENO, bytes, sizeof bytes);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) _exit(0);  // no farewells: the DHT forgets a silent node by itself
    for (const std::string& line : lines.append({bytes, static_cast<std::size_t>(size)})) obey(node, out, line);
  }
}

// `ends`: SIGINT, SIGTERM and SIGHUP, blocked before the DHT's threads started.
int run_serving(OpenDhtMember& node, const Arguments& arguments, const sigset_t& ends) {
  std::printf("shoal-dht port %u network %u\n", node.port(), arguments.dht.network);
  std::fflush(stdout);
  int received = 0;
  sigwait(&ends, &received);
  _exit(0);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CommandLine line("One node of a run's DHT.", "shoal-dht", "shoal-dht " SHOAL_VERSION);
  Command app = line.top();
  app.add_option("--bind", arguments.dht.bind, "address of the UDP socket").show_default();
  app.add_option("--port", arguments.dht.port, "UDP port; 0: any").show_default();
  app.add_option("--bootstrap", arguments.bootstrap, "host:port of a node; repeatable");
  app.add_option("--network", arguments.dht.network, "number of the run's own DHT network, not 0").required();
  app.add_option("--memory-bytes", arguments.memory_bytes, "limit of the address space").show_default();
  app.add_flag("--supervised", arguments.supervised, "speak to a supervisor over stdin and stdout");
  app.add_flag("--serve", arguments.serve, "be a plain member; prints the port");
  app.add_flag("--die-with-parent", arguments.die_with_parent, "end when the process that started it ends");
  if (const auto over = line.parse_or_say(argc, argv)) return *over;
  if (arguments.supervised == arguments.serve) {
    std::fprintf(stderr, "shoal-dht: give either --serve or --supervised\n");
    return kExitUsage;
  }
  for (const std::string& address : arguments.bootstrap) {
    if (const Status status = check_address(address); !status.ok()) {
      std::fprintf(stderr, "shoal-dht: --bootstrap %s: not host:port\n", address.c_str());
      return kExitUsage;
    }
  }
  confine(arguments);
  sigset_t ends;
  sigemptyset(&ends);
  if (arguments.serve) {
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  }
  auto node = OpenDhtMember::start(arguments.dht);
  if (!node.ok()) {
    std::fprintf(stderr, "shoal-dht: %s\n", node.error().message.c_str());
    return node.code() == ErrorCode::kInput ? kExitUsage : kExitUnavailable;
  }
  for (const std::string& address : arguments.bootstrap) (*node)->bootstrap(address);
  return arguments.serve ? run_serving(**node, arguments, ends) : run_supervised(**node);
}

}  // namespace
}  // namespace shoal

int main(int argc, char** argv) {
  shoal::hold_standard_descriptors();
  try {
    return shoal::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shoal-dht: %s\n", error.what());
    return shoal::kExitSoftware;
  }
}
