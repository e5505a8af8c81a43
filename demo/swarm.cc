#include "demo/swarm.h"

#include <csignal>
#include <cstdlib>
#include <thread>

#include "common/os/thread_loop.h"

namespace shoal {
namespace {

constexpr Duration kPoll = 50ms;
constexpr Duration kStartBudget = 60s;
constexpr std::size_t kLinesShown = 8;

}  // namespace

Status DemoSwarm::died(const std::string& name, int code, const std::string& error_path) const {
  return make_error(ErrorCode::kUnreachable, name + " ended too early (exit code " + std::to_string(code) +
                                                 "). It said:" + last_lines(error_path, kLinesShown));
}

Result<std::string> DemoSwarm::line_of(FileTail& file, Offspring& child, const std::string& begins,
                                       const std::string& error_path) {
  return wait_for_line(file, begins, error_path, kStartBudget, [&]() -> Status {
    if (!child.running()) return died(file.path(), child.exit_code().value_or(-1), error_path);
    if (options_.stop && options_.stop()) return make_error(ErrorCode::kInterrupted, "interrupted");
    return {};
  });
}

Status DemoSwarm::start_dht() {
  for (int i = 0; i < 2; ++i) {
    const std::string log = options_.folder + "/logs/dht-" + std::to_string(i);
    OffspringCommand command{
        {options_.dht_program, "--serve", "--bind", "127.0.0.1", "--network", std::to_string(options_.network)},
        log + ".out",
        log + ".err"};
    for (const std::string& address : dht_addresses_)
      command.words.insert(command.words.end(), {"--bootstrap", address});
    SHOAL_ASSIGN(Offspring child, Offspring::start(command));
    FileTail output(command.output_path);
    SHOAL_ASSIGN(const std::string port, line_of(output, child, "shoal-dht port ", command.error_path));
    dht_addresses_.push_back("127.0.0.1:" + std::to_string(std::stoi(port)));
    dht_.push_back(std::move(child));
  }
  return {};
}

Status DemoSwarm::start_launch() {
  const std::string log = options_.folder + "/logs/launch";
  OffspringCommand command{
      {options_.program, "launch", options_.folder + "/RUN.toml", "--dir", options_.folder + "/run", "--listen",
       "127.0.0.1:0", "--save", options_.folder + "/model", "--events", events_folder() + "/launch.jsonl", "--network",
       std::to_string(options_.network), "--line-every", "2", "--linger", "0"},
      log + ".out",
      log + ".err"};
  for (const std::string& address : dht_addresses_) command.words.insert(command.words.end(), {"--bootstrap", address});
  if (!options_.page.empty()) command.words.push_back(options_.page);
  SHOAL_ASSIGN(launch_, Offspring::start(command));
  launch_lines_ = std::make_unique<FileTail>(command.error_path);
  SHOAL_ASSIGN(launch_events_, events_of("launch"));
  FileTail output(command.output_path);
  SHOAL_ASSIGN(ticket_, line_of(output, *launch_, "ticket ", command.error_path));
  return {};
}

std::string DemoSwarm::name_of(std::size_t peer, std::uint32_t life) const {
  return "peer-" + std::to_string(peer) + (life > 1 ? "-life-" + std::to_string(life) : "");
}

Result<Offspring> DemoSwarm::start_join(std::size_t peer, std::uint32_t life) {
  const std::string name = name_of(peer, life), log = options_.folder + "/logs/" + name;
  OffspringCommand command{
      {options_.program, "join", ticket_, "--home", options_.folder + "/homes/" + std::to_string(peer), "--listen",
       "127.0.0.1:0", "--device", "cpu", "--threads", "1", "--events", events_folder() + "/" + name + ".jsonl"},
      log + ".out",
      log + ".err"};
  for (const std::string& address : dht_addresses_) command.words.insert(command.words.end(), {"--bootstrap", address});
  return Offspring::start(command);
}

Status DemoSwarm::start() {
  SHOAL_TRY(start_dht());
  SHOAL_TRY(start_launch());
  options_.say("ticket: " + ticket_);
  const char* const launcher = std::getenv("SHOAL_PROGRAM");  // of a package: it finds libtorch first
  const std::string program = launcher != nullptr ? launcher : options_.program;
  options_.say("from another terminal: " + program + " inspect " + ticket_);
  options_.say("and to lend a hand:    " + program + " join " + ticket_);
  for (std::size_t i = 0; i < std::size_t{options_.stages} * options_.replicas; ++i) {
    SHOAL_ASSIGN(Offspring child, start_join(i, 1));
    SHOAL_ASSIGN(EventLines events, events_of(name_of(i, 1)));
    peers_.push_back({std::move(child), std::move(events), name_of(i, 1)});
  }
  const TimePoint deadline = monotonic_now() + kStartBudget;
  while (first_commit_ == 0) {
    SHOAL_TRY(poll());
    if (monotonic_now() > deadline)
      return make_error(ErrorCode::kUnreachable,
                        "no microbatch was committed within " +
                            std::to_string(static_cast<int>(seconds_of(kStartBudget))) +
                            " s. launch said:" + last_lines(launch_lines_->path(), kLinesShown));
    std::this_thread::sleep_for(kPoll);
  }
  return {};
}

Result<EventLines> DemoSwarm::events_of(const std::string& name) const {
  SHOAL_ASSIGN(const EventSource source, growing_source(events_folder() + "/" + name + ".jsonl"));
  return EventLines(source, true);
}

Status DemoSwarm::read_events(DemoPeer& peer) {
  while (true) {
    SHOAL_ASSIGN(const ReadEvent* const event, peer.events.next());
    if (event == nullptr) return {};
    const bool serving = event->is(EventKind::kServing) && event->stage;
    if (serving || event->is(EventKind::kFenced)) peer.serving_at.reset();
    if (!serving) continue;
    peer.stage = event->stage->value;
    peer.serving_at = event->time;
  }
}

Status DemoSwarm::read_commits() {
  while (true) {
    SHOAL_ASSIGN(const ReadEvent* const event, launch_events_->next());
    if (event == nullptr) return {};
    if (!event->is(EventKind::kCommit)) continue;
    if (first_commit_ == 0) first_commit_ = event->time;
    tokens_ += event->targets.value_or(0);
  }
}

void DemoSwarm::pass_lines_on() {
  for (const std::string& line : launch_lines_->new_lines()) options_.say(line);
}

Status DemoSwarm::poll() {
  if (options_.stop && options_.stop()) return make_error(ErrorCode::kInterrupted, "interrupted");
  processors_.look(seconds_of(wall_now().time_since_epoch()));
  const bool launch_ran = launch_->running();
  pass_lines_on();
  SHOAL_TRY(read_commits());
  for (DemoPeer& peer : peers_) SHOAL_TRY(read_events(peer));
  if (!launch_ran) return died("launch", launch_->exit_code().value_or(-1), launch_lines_->path());
  if (first_commit_ != 0) return {};
  for (DemoPeer& peer : peers_) {
    if (!peer.child.running())
      return died(peer.name, peer.child.exit_code().value_or(-1), options_.folder + "/logs/" + peer.name + ".err");
  }
  return {};
}

Status DemoSwarm::run_until(TimePoint until) {
  while (monotonic_now() < until) {
    SHOAL_TRY(poll());
    std::this_thread::sleep_for(std::min(kPoll, std::max<Duration>(until - monotonic_now(), 1ms)));
  }
  return {};
}

std::optional<std::size_t> DemoSwarm::spare_peer(std::uint16_t stage) const {
  std::vector<std::size_t> serving;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].serving_at && peers_[i].stage == stage && !peers_[i].killed && !peers_[i].frozen)
      serving.push_back(i);
  }
  if (serving.size() < 2) return std::nullopt;
  return serving.front();
}

void DemoSwarm::kill_peer(std::size_t peer) {
  peers_[peer].child.send_signal(SIGKILL);
  peers_[peer].killed = true;
  peers_[peer].serving_at.reset();
}

void DemoSwarm::freeze_peer(std::size_t peer) {
  peers_[peer].child.send_signal(SIGSTOP);
  peers_[peer].frozen = true;
}

void DemoSwarm::thaw_peer(std::size_t peer) {
  peers_[peer].child.send_signal(SIGCONT);
  peers_[peer].frozen = false;
}

Status DemoSwarm::restart_peer(std::size_t peer) {
  DemoPeer& p = peers_[peer];
  p.child.wait_until(monotonic_now() + 5s);
  ++p.lives;
  SHOAL_ASSIGN(p.child, start_join(peer, p.lives));
  p.name = name_of(peer, p.lives);
  SHOAL_ASSIGN(p.events, events_of(p.name));
  p.killed = false;
  return {};
}

std::optional<double> DemoSwarm::serving_since(std::size_t peer) const { return peers_[peer].serving_at; }

Result<std::vector<std::string>> DemoSwarm::finish(Duration budget) {
  const TimePoint deadline = monotonic_now() + budget;
  launch_->send_signal(SIGINT);
  while (launch_->running() && monotonic_now() < deadline) {
    const Status status = poll();
    if (!status.ok() && status.code() == ErrorCode::kInterrupted) return status.error();
    std::this_thread::sleep_for(kPoll);
  }
  pass_lines_on();
  std::vector<std::string> failures;
  const std::optional<int> code = launch_->exit_code();
  if (!code) {
    failures.push_back("launch did not end within " + std::to_string(static_cast<int>(seconds_of(budget))) + " s");
  } else if (*code != 130) {  // by our Ctrl-C, in order
    failures.push_back(died("launch", *code, launch_lines_->path()).error().message);
  }
  const TimePoint last = monotonic_now() + 15s;
  for (DemoPeer& peer : peers_) {
    if (peer.killed) continue;
    const std::optional<int> left = code ? peer.child.wait_until(last) : peer.child.exit_code();
    if (left && *left == 0) continue;
    failures.push_back(peer.name +
                       (left ? " ended with exit code " + std::to_string(*left) : " did not end with the run") +
                       "; it said:" + last_lines(options_.folder + "/logs/" + peer.name + ".err", 3));
  }
  dht_.clear();
  return failures;
}

}  // namespace shoal
