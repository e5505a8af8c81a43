#include "cli/join_each.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>

#include "cli/control.h"
#include "cli/lend_unit.h"
#include "common/log.h"
#include "common/os/owner_socket.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/os/work_thread.h"
#include "demo/offspring.h"

namespace shoal {
namespace {

constexpr std::size_t kLinePrintedMax = 16384;  // bytes; a longer one is cut in pieces

// Whole lines of `end`, until nobody can write there any more. On a thread of its own.
void read_lines(const Descriptor& end, const std::function<void(std::string)>& take) {
  std::array<char, 4096> piece;
  std::string line;
  while (true) {
    const ssize_t size = ::read(end.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    for (const char letter : std::string_view(piece.data(), static_cast<std::size_t>(size))) {
      if (letter != '\n') line += letter;
      if (letter == '\n' || line.size() >= kLinePrintedMax) take(std::exchange(line, {}));
    }
  }
  if (!line.empty()) take(std::move(line));
}

class Each {
 public:
  explicit Each(EachOptions options) : options_(std::move(options)) {}

  Result<std::vector<int>> run() {
    SHOAL_ASSIGN(signals_, StopSignals::listen(
                               loop_, [this] { stop(); }, [this] { stop(); }));
    if (!options_.home.empty()) {
      auto socket = OwnerSocket::listen(
          loop_, control_path(options_.home),
          [this](const std::string& word, const OwnerSocket::Answer& answer) { hear(word, answer); });
      if (socket.ok()) socket_ = *std::move(socket);
      if (!socket_) log_warning("pause, resume and finish cannot reach these processes: ", socket.error().message);
    }
    for (const EachProcess& process : options_.processes) {
      children_.emplace_back();
      children_.back().process = &process;
      children_.back().reader = make_work_thread(loop_, "lines");
      children_.back().asker = make_work_thread(loop_, "words");
    }
    loop_.post([this] {
      for (Child& child : children_) start(child);
    });
    loop_.run();
    for (Child& child : children_) child.running.reset();  // what still runs here could not be watched
    if (failure_) return *failure_;
    std::vector<int> codes;
    for (const Child& child : children_) codes.push_back(*child.code);
    return codes;
  }

 private:
  struct Child {
    const EachProcess* process = nullptr;
    std::optional<Offspring> running{};
    std::optional<int> code{};  // it ended for good
    int last_code = 0;
    TimerId restart = 0;
    std::unique_ptr<WorkQueue> reader{}, asker{};
  };
  // What all who run answer to one word.
  struct Answers {
    std::map<std::string, std::string> by_name{};
    std::size_t missing = 0;
    OwnerSocket::Answer answer{};
  };

  void start(Child& child) {
    child.restart = 0;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_all(error_of_errno("make", "a pipe", errno));
    auto reading = std::make_shared<Descriptor>(ends[0]);
    const Descriptor writing(ends[1]);
    OffspringCommand command{.words = child.process->words, .output_path = child.process->output, .error_path = {}};
    command.error_descriptor = writing.get();
    auto started = Offspring::start(command);
    if (!started.ok()) return fail_all(started.error());
    child.running = *std::move(started);
    child.reader->run(
        WorkKind::kAside,
        [this, &child, reading] {
          read_lines(*reading, [&](std::string line) {
            loop_.post([this, &child, line = std::move(line)] { options_.print(child.process->name + ": " + line); });
          });
        },
        [this, &child] { on_silent(child); });
  }

  // It closed its stderr, which is the last thing it does.
  void on_silent(Child& child) {
    const int code = child.running->wait_until(TimePoint::max()).value_or(0);
    child.running.reset();
    const bool again = !stopping_ && !ends_for_good(code);
    log_info(child.process->name, " ended with exit code ", code,
             again ? ": started again in " +
                         std::to_string(std::chrono::ceil<std::chrono::seconds>(options_.restart_pause).count()) + " s"
                   : std::string());
    if (!again) return end(child, code);
    child.last_code = code;
    child.restart = loop_.after(options_.restart_pause, [this, &child] { start(child); });
  }

  void end(Child& child, int code) {
    child.code = code;
    if (std::ranges::all_of(children_, [](const Child& one) { return one.code.has_value(); })) loop_.stop();
  }

  void fail_all(Error error) {
    failure_ = std::move(error);
    loop_.stop();
  }

  // None is started again; what waits for that has ended.
  void no_more_starts() {
    stopping_ = true;
    for (Child& child : children_) {
      if (child.restart == 0) continue;
      loop_.cancel(std::exchange(child.restart, 0));
      end(child, child.last_code);
    }
  }

  void stop() {
    for (Child& child : children_)
      if (child.running) child.running->send_signal(stop_exit_code() - 128);
    no_more_starts();
  }

  void hear(const std::string& word, const OwnerSocket::Answer& answer) {
    auto answers = std::make_shared<Answers>();
    answers->answer = answer;
    for (Child& child : children_) {
      if (!child.running) continue;
      ++answers->missing;
      auto said = std::make_shared<std::string>();
      child.asker->run(
          WorkKind::kAside,
          [said, word, path = control_path(child.process->home)] {
            const auto line = ask_line(path, word);
            *said = line.ok() ? *line : control_answer("unreachable", line.error().message);
          },
          [this, answers, said, name = child.process->name] {
            answers->by_name[name] = *said;
            if (--answers->missing == 0) answer_all_of(*answers);
          });
    }
    if (answers->missing == 0) answer_all_of(*answers);
    if (word == kFinishWord) no_more_starts();
  }

  // The state that all are in, or "mixed"; a line of each.
  void answer_all_of(const Answers& answers) const {
    std::string state, text;
    const std::size_t most = kSocketLineMax / 2 / std::max<std::size_t>(1, answers.by_name.size());
    for (const auto& [name, said] : answers.by_name) {
      const std::string one = state_of_answer(said).empty() ? "over" : state_of_answer(said);
      state = state.empty() || state == one ? one : "mixed";
      const std::string words = state_of_answer(said).empty() ? "it ended before it answered" : text_of_answer(said);
      text += (text.empty() ? "" : "\n") + (name + ": " + words).substr(0, most);
    }
    if (answers.by_name.empty()) text = "none of its processes runs just now";
    answers.answer(control_answer(state.empty() ? "over" : state, text));
  }

  const EachOptions options_;
  bool stopping_ = false;
  std::optional<Error> failure_;

  // Destroyed from the last to the first: each borrows from those above it.
  ThreadLoop loop_;
  std::unique_ptr<StopSignals> signals_;
  std::vector<Child> children_;
  std::unique_ptr<OwnerSocket> socket_;
};

}  // namespace

Result<std::vector<int>> run_each(EachOptions options) { return Each(std::move(options)).run(); }

}  // namespace shoal
