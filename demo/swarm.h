#pragma once
// The processes of a demo on this machine: two DHT processes, one `launch`, a `join` for every stage and replica, all
// with logs and event files under one folder. Everything started here ends with this object. Thread: the one that made
// it (common to all Offspring). Waiting: polls files that the processes write.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/os/offspring.h"
#include "common/result.h"
#include "common/time.h"
#include "demo/file_tail.h"
#include "demo/processor_watch.h"
#include "events/event_lines.h"

namespace shoal {

struct DemoSwarmOptions {
  std::string program, dht_program;  // paths of shoal and shoal-dht
  std::string folder;                // exists and holds RUN.toml
  std::uint16_t stages = 4, replicas = 2;
  std::string page{};                           // launch's option --page[=PORT], or empty
  std::uint32_t network = 0;                    // of the DHT
  std::function<void(const std::string&)> say;  // one line of progress
  std::function<bool()> stop;                   // asked often: the user wants an end (kInterrupted)
};

class DemoSwarm {
 public:
  explicit DemoSwarm(DemoSwarmOptions options) : options_(std::move(options)) {}

  // Until the first microbatch is committed. ERRORS: kIo, kMissing (a program), kUnreachable (a process ended or said
  // nothing in time; the message holds its last lines), kInterrupted.
  Status start();
  const std::string& ticket() const { return ticket_; }
  double first_commit() const { return first_commit_; }  // seconds since 1970
  std::uint64_t tokens() const { return tokens_; }       // committed, as of the last poll
  const ProcessorWatch& processors() const { return processors_; }

  // Reads what was written since, passes launch's lines on, and sees who ended. ERRORS: kUnreachable (launch ended),
  // kInterrupted.
  Status poll();
  // Polls until `until`.
  Status run_until(TimePoint until);

  // ---- faults ----
  // A peer of `stage` that serves while another of that stage does too.
  std::optional<std::size_t> spare_peer(std::uint16_t stage) const;
  void kill_peer(std::size_t peer);
  void freeze_peer(std::size_t peer);
  void thaw_peer(std::size_t peer);
  Status restart_peer(std::size_t peer);                        // a new process on the same home
  std::optional<double> serving_since(std::size_t peer) const;  // seconds since 1970, of its newest process

  // launch finishes the run in order; waits until every process has ended. The returned lines name those that ended
  // otherwise than they should.
  Result<std::vector<std::string>> finish(Duration budget);
  std::string events_folder() const { return options_.folder + "/events"; }

 private:
  struct DemoPeer {
    Offspring child;
    EventLines events;
    std::string name;
    std::uint32_t lives = 1;
    bool killed = false, frozen = false;
    std::optional<std::uint16_t> stage{};
    std::optional<double> serving_at{};
  };

  void pass_lines_on();
  Status start_dht();
  Status start_launch();
  Result<Offspring> start_join(std::size_t peer, std::uint32_t life);
  std::string name_of(std::size_t peer, std::uint32_t life) const;
  Result<std::string> line_of(FileTail& file, Offspring& child, const std::string& begins,
                              const std::string& error_path);
  Result<EventLines> events_of(const std::string& name) const;
  Status read_events(DemoPeer& peer);
  Status read_commits();
  Status died(const std::string& name, int code, const std::string& error_path) const;

  DemoSwarmOptions options_;
  std::vector<Offspring> dht_;
  std::vector<std::string> dht_addresses_;
  std::optional<Offspring> launch_;
  std::unique_ptr<FileTail> launch_lines_;
  std::optional<EventLines> launch_events_;
  std::vector<DemoPeer> peers_;
  std::string ticket_;
  double first_commit_ = 0;
  std::uint64_t tokens_ = 0;
  ProcessorWatch processors_;
};

}  // namespace shoal
