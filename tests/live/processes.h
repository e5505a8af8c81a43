#pragma once
// A swarm of real processes in a folder of its own, for tests: starts `shoal launch` and `shoal join`, waits for what
// they write (never for time), ends whatever still runs with the object.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/os/offspring.h"
#include "common/time.h"
#include "events/audit/audit.h"
#include "tests/common/scratch_folder.h"

namespace shoal {

inline constexpr Duration kPatience = 40s;  // of every wait: generous, because a loaded machine is slow and not wrong

struct RunShape {
  int stages = 2, replicas = 2, steps = 30;
  std::string rule = "allreduce";
  std::string executor = "kind = \"integer\"";
  std::string more{};  // further sections, whole
  int in_flight = 0;   // of the trainer; 0: "auto"
  int lease_s = 1, membership_s = 3;
  std::string model{};  // more of [model], whole lines
};

class Processes {
 public:
  Processes();

  // RUN.toml and its text; returns the file's path.
  std::string write_run(const RunShape& shape);

  std::string write_file(const std::string& name, const std::string& text) { return folder_.write(name, text); }

  // `name`.out, `name`.err and, for launch and join, events/`name`.jsonl hold what the process writes.
  void start(const std::string& name, std::vector<std::string> words);
  // The same through a shell that runs `line` first, in which "$0" "$@" is the program with `words`: closed and full
  // outputs, another environment.
  void start_in_shell(const std::string& name, const std::string& line, std::vector<std::string> words);
  // Any program, by its path.
  void start_words(const std::string& name, std::vector<std::string> words);
  // Without the DHT, on loopback; waits for the ticket.
  void launch(const std::string& run_file, std::vector<std::string> more = {});
  void launch_as(const std::string& name, std::vector<std::string> words);
  // On a home of its own unless `home` names one.
  void join(const std::string& name, std::vector<std::string> more = {}, const std::string& home = "");
  void join_in_dht(const std::string& name, std::vector<std::string> more = {});
  Offspring& process(const std::string& name) { return processes_.at(name); }
  const std::string& ticket() const { return ticket_; }
  void join_by(std::string ticket) { ticket_ = std::move(ticket); }  // from now on

  // Its exit code; -1 when it still runs after kPatience.
  int exit_code(const std::string& name);
  std::string output(const std::string& name) const { return ScratchFolder::read(folder_ / (name + ".out")); }
  std::string errors(const std::string& name) const { return ScratchFolder::read(folder_ / (name + ".err")); }
  // Until a line of the file holds all of `parts`, `times` times. False after kPatience.
  bool wait_for_line(const std::string& file, const std::vector<std::string>& parts, int times = 1);
  bool wait_for_event(const std::string& name, const std::vector<std::string>& parts, int times = 1);
  // Lines of the process's event file that hold all of `parts`.
  int count_events(const std::string& name, const std::vector<std::string>& parts) const;

  AuditReport audit_events() const;
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  void start_join(const std::string& name, std::vector<std::string> more, const std::string& home);
  std::string event_file(const std::string& name) const { return folder_ / ("events/" + name + ".jsonl"); }
  ScratchFolder folder_;
  std::map<std::string, Offspring> processes_;
  std::string ticket_;
};

// Everything the audit may complain of, for EXPECT_EQ with "".
std::string complaints(const AuditReport& report);

}  // namespace shoal
