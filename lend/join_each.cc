#include "lend/join_each.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "common/log.h"
#include "common/os/offspring.h"
#include "common/os/owner_socket.h"
#include "common/os/posix_file.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/os/work_thread.h"
#include "common/program/outcome.h"
#include "lend/control.h"
#include "lend/lend_unit.h"

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
  // A thread that says a word to a process and waits for its answer.
  struct Asker {
    std::unique_ptr<WorkQueue> thread{};
    bool waits = false;
  };
  struct Child {
    const EachProcess* process = nullptr;
    std::optional<Offspring> running{};
    std::optional<int> code{};  // it ended for good
    bool began = false;         // it was started once
    int last_code = 0;
    TimerId restart = 0;
    std::unique_ptr<WorkQueue> reader{};
    std::vector<Asker> askers{};  // a thread for each word that waits
  };
  using Said = std::function<void(const std::string& answer)>;  // empty: it has ended for good
  // The answers of all processes to one word, by their index.
  struct Answers {
    std::vector<std::string> said{};
    std::size_t missing = 0;
    OwnerSocket::Answer answer{};
  };

  void start(Child& child) {
    child.restart = 0;
    if (stopping_) return end(child, stop_wanted() ? stop_exit_code() : kExitOk);
    if (paused_) return start_later(child);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return on_no_start(child, error_of_errno("make", "a pipe", errno));
    auto reading = std::make_shared<Descriptor>(ends[0]);
    const Descriptor writing(ends[1]);
    OffspringCommand command{.words = child.process->words, .output_path = child.process->output, .error_path = {}};
    command.error_descriptor = writing.get();
    auto started = Offspring::start(command);
    if (!started.ok()) return on_no_start(child, started.error());
    child.running = *std::move(started);
    child.began = true;
    child.reader->run(
        WorkKind::kAside,
        [this, &child, reading] {
          read_lines(*reading, [&](std::string line) {
            loop_.post([this, &child, line = std::move(line)] { options_.print(child.process->name + ": " + line); });
          });
        },
        [this, &child] { on_silent(child); });
  }

  void start_later(Child& child) {
    child.restart = loop_.after(options_.restart_pause, [this, &child] { start(child); });
  }

  // At first it is a mistake of whoever asked for it; later, of a machine that may have what it takes the next time.
  void on_no_start(Child& child, Error error) {
    if (!child.began) return fail_all(std::move(error));
    log_warning(child.process->name, " could not be ", again_text(), ": ", error.message);
    start_later(child);
  }

  // It closed its stderr, which is the last thing it does; unless it did so long before it ends.
  void on_silent(Child& child) {
    const auto code = child.running->exit_code();
    if (!code) {
      loop_.after(kLookAgain, [this, &child] { on_silent(child); });
      return;
    }
    child.running.reset();
    const bool again = !stopping_ && !ends_for_good(*code);
    log_info(child.process->name, " ended with exit code ", *code, again ? ": " + again_text() : std::string());
    if (!again) return end(child, *code);
    child.last_code = *code;
    start_later(child);
  }

  std::string again_text() const {
    if (paused_) return "started again after resume";
    return "started again in " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(options_.restart_pause).count()) + " s";
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
    if (word == kPauseWord) paused_ = true;
    if (word == kResumeWord) paused_ = false;
    auto answers = std::make_shared<Answers>();
    answers->said.resize(children_.size());
    answers->missing = children_.size();
    answers->answer = answer;
    for (std::size_t i = 0; i < children_.size(); ++i)
      ask(children_[i], word, [this, answers, i](const std::string& said) {
        answers->said[i] = said;
        if (--answers->missing == 0) answer_all_of(*answers);
      });
    if (word == kFinishWord) no_more_starts();
  }

  // No word waits for the answer to another: each has a thread of its own.
  void ask(Child& child, const std::string& word, const Said& say) {
    if (child.code) return say("");
    if (!child.running) return say(answer_without(word));
    std::size_t free = 0;
    while (free < child.askers.size() && child.askers[free].waits) ++free;
    if (free == kSocketClientsMax) return say(control_answer("unreachable", "too many words wait for its answer"));
    if (free == child.askers.size()) child.askers.push_back({.thread = make_work_thread(loop_, "words")});
    child.askers[free].waits = true;
    auto line = std::make_shared<Result<std::string>>(std::string());
    child.askers[free].thread->run(
        WorkKind::kAside, [line, word, path = control_path(child.process->home)] { *line = ask_line(path, word); },
        [this, &child, free, line, word, say] {
          child.askers[free].waits = false;
          if (!line->ok() && line->code() == ErrorCode::kMissing)
            ask_again(child, word, say);
          else if (!line->ok())
            say(control_answer("unreachable", line->error().message));
          else
            say(state_of_answer(**line).empty() ? control_answer("over", "it ended before it answered") : **line);
        });
  }

  // Its socket is not there yet, or it has just ended.
  void ask_again(Child& child, const std::string& word, const Said& say) {
    loop_.after(kLookAgain, [this, &child, word, say] {
      if (word == kPauseWord && !paused_)
        say(control_answer("resumed", "it was resumed before it was paused"));
      else if (word == kResumeWord && paused_)
        say(control_answer("paused", "it was paused again before it was resumed"));
      else
        ask(child, word, say);
    });
  }

  // For one that does not run, and has not ended for good.
  std::string answer_without(std::string_view word) const {
    if (stopping_ || word == kFinishWord) return control_answer("over", "it does not run, and is not started again");
    return control_answer(paused_ ? "paused" : "waiting", "it does not run: " + again_text());
  }

  // The state that all are in, or "mixed"; a line of each.
  void answer_all_of(const Answers& answers) const {
    std::string state, text;
    const std::size_t most = kSocketLineMax / 2 / children_.size();
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (answers.said[i].empty()) continue;
      const std::string one = state_of_answer(answers.said[i]);
      state = state.empty() || state == one ? one : "mixed";
      text += (text.empty() ? "" : "\n") +
              (children_[i].process->name + ": " + text_of_answer(answers.said[i])).substr(0, most);
    }
    if (state.empty()) text = "all have ended";
    answers.answer(control_answer(state.empty() ? "over" : state, text));
  }

  const EachOptions options_;
  bool stopping_ = false;
  bool paused_ = false;  // by their owner: none is started before resume
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
