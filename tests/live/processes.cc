#include "tests/live/processes.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "common/rng.h"
#include "demo/file_tail.h"

namespace shoal {
namespace {

bool holds(const std::string& line, const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return line.find(part) != std::string::npos; });
}

}  // namespace

Processes::Processes() { std::filesystem::create_directory(folder_ / "events"); }

std::string Processes::write_run(const RunShape& shape) {
  Rng rng(7);
  std::string text(1870 * 2 * 16 + 1, ' ');  // the last tenth of its microbatches is the last tenth of its sequences
  for (char& c : text) c = static_cast<char>('a' + rng.below(26));
  folder_.write("text.bin", text);
  std::ostringstream run;
  run << "[run]\nname = \"live\"\n[model]\nlayers = " << 2 * shape.stages << "\ndim = 16\nheads = 2\npositions = 16\n"
      << shape.model << "[data]\npath = \"text.bin\"\nsequences = 2\nvalidation_samples = 4\n"
      << "[pipeline]\nstages = " << shape.stages << "\nreplicas = " << shape.replicas
      << "\nin_flight = " << (shape.in_flight == 0 ? "\"auto\"" : std::to_string(shape.in_flight)) << "\n"
      << "[sync]\nrule = \"" << shape.rule << "\"\nmicrobatches_per_step = 8\ninner_batch = 128\ninner_steps = 4\n"
      << "[timing]\nlease_s = " << shape.lease_s << "\nmembership_s = " << shape.membership_s << "\n[executor]\n"
      << shape.executor << "\n[end]\nsteps = " << shape.steps << "\n"
      << shape.more;
  return folder_.write("run.toml", run.str());
}

void Processes::start(const std::string& name, std::vector<std::string> words) {
  words.insert(words.begin(), SHOAL_BINARY_DIR "/bin/shoal");
  start_words(name, std::move(words));
}

void Processes::start_in_shell(const std::string& name, const std::string& line, std::vector<std::string> words) {
  words.insert(words.begin(), {"/bin/sh", "-c", line, SHOAL_BINARY_DIR "/bin/shoal"});
  start_words(name, std::move(words));
}

void Processes::start_words(const std::string& name, std::vector<std::string> words) {
  OffspringCommand command;
  command.words = std::move(words);
  command.output_path = folder_ / (name + ".out");
  command.error_path = folder_ / (name + ".err");
  command.environment["OMP_NUM_THREADS"] = "1";
  auto child = Offspring::start(command);
  ASSERT_TRUE(child.ok()) << child.error().message;
  processes_.erase(name);
  processes_.emplace(name, std::move(*child));
}

void Processes::launch(const std::string& run_file, std::vector<std::string> more) {
  std::vector<std::string> words = {run_file, "--dir", folder_ / "run", "--listen", "127.0.0.1:0", "--no-dht"};
  words.insert(words.end(), more.begin(), more.end());
  launch_as("launch", std::move(words));
}

void Processes::launch_as(const std::string& name, std::vector<std::string> words) {
  words.insert(words.begin(), {"--json", "launch"});
  words.insert(words.end(), {"--events", event_file(name)});
  start(name, std::move(words));
  ASSERT_TRUE(wait_for_line(folder_ / (name + ".out"), {"ticket shoal1:"})) << errors(name);
  const std::string line = output(name);
  ticket_ = line.substr(7, line.find('\n') - 7);
}

void Processes::join(const std::string& name, std::vector<std::string> more, const std::string& home) {
  more.push_back("--no-dht");
  start_join(name, std::move(more), home.empty() ? name : home);
}

void Processes::join_in_dht(const std::string& name, std::vector<std::string> more) {
  start_join(name, std::move(more), name);
}

void Processes::start_join(const std::string& name, std::vector<std::string> more, const std::string& home) {
  std::vector<std::string> words = {"--json",   "--home",        folder_ / ("home-" + home),
                                    "join",     ticket_,         "--threads",
                                    "1",        "--listen",      "127.0.0.1:0",
                                    "--events", event_file(name)};
  words.insert(words.end(), more.begin(), more.end());
  start(name, std::move(words));
}

int Processes::exit_code(const std::string& name) {
  return process(name).wait_until(monotonic_now() + kPatience).value_or(-1);
}

bool Processes::wait_for_line(const std::string& file, const std::vector<std::string>& parts, int times) {
  const Descriptor watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string folder = std::filesystem::path(file).parent_path();
  if (::inotify_add_watch(watch.get(), folder.c_str(), IN_MODIFY | IN_CREATE) < 0) return false;
  FileTail tail(file);
  const TimePoint deadline = monotonic_now() + kPatience;
  for (int seen = 0;;) {
    for (const std::string& line : tail.new_lines()) seen += holds(line, parts);
    if (seen >= times) return true;
    const Duration left = deadline - monotonic_now();
    if (left <= Duration(0)) return false;
    pollfd changed{watch.get(), POLLIN, 0};
    ::poll(&changed, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    char drained[16384];
    while (::read(watch.get(), drained, sizeof drained) > 0) continue;
  }
}

bool Processes::wait_for_event(const std::string& name, const std::vector<std::string>& parts, int times) {
  return wait_for_line(event_file(name), parts, times);
}

int Processes::count_events(const std::string& name, const std::vector<std::string>& parts) const {
  int count = 0;
  for (const std::string& line : FileTail(event_file(name)).new_lines()) count += holds(line, parts);
  return count;
}

AuditReport Processes::audit_events() const {
  const auto report = audit_folder(folder_ / "events");
  EXPECT_TRUE(report.ok());
  return report.ok() ? *report : AuditReport{};
}

std::string complaints(const AuditReport& report) {
  std::string text = report.ended ? "" : "the run has not ended\n";
  for (const std::string& violation : report.violations) text += violation + "\n";
  for (const std::string& gap : report.incomplete) text += "incomplete: " + gap + "\n";
  return text;
}

}  // namespace shoal
