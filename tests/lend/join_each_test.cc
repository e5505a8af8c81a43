// Processes for each of several devices: which devices a list means, with which words, and which are started
// again.
#include "lend/join_each.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <future>
#include <mutex>

#include "common/log.h"
#include "common/os/owner_socket.h"
#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "lend/control.h"
#include "lend/device_list.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

constexpr Duration kPatience = 40s;  // of every wait: a loaded machine is slow and not wrong

using testing::ElementsAre;
using testing::HasSubstr;

// A machine with so many GPUs.
ChooseDevice machine_with(int gpus) {
  return [gpus](const std::string& wish) -> Result<std::string> {
    if (wish == "cpu") return wish;
    if (wish.starts_with("cuda:") && std::stoi(wish.substr(5)) < gpus) return wish;
    return make_error(ErrorCode::kUnsupported, "device " + wish + ": this machine has " + std::to_string(gpus));
  };
}

std::vector<std::string> names_of(const std::string& wish, int gpus) {
  const auto devices = listed_devices(wish, machine_with(gpus));
  if (!devices.ok()) return {devices.error().message};
  std::vector<std::string> names;
  for (const ListedDevice& device : *devices) names.push_back(device.name);
  return names;
}

TEST(DeviceListTest, IsAllGpusOrWhatIsListed) {
  EXPECT_FALSE(lists_devices("auto"));
  EXPECT_FALSE(lists_devices("cuda:1"));
  EXPECT_TRUE(lists_devices("all"));
  EXPECT_TRUE(lists_devices("cpu,cpu"));
  EXPECT_THAT(names_of("all", 3), ElementsAre("cuda-0", "cuda-1", "cuda-2"));
  EXPECT_THAT(names_of("cuda:2,cpu,cuda:0,cpu", 3), ElementsAre("cuda-2", "cpu-0", "cuda-0", "cpu-1"));
  EXPECT_THAT(names_of("all", 0),
              ElementsAre(HasSubstr("--device all lends each GPU, and there is none: device cuda:0")));
  EXPECT_THAT(names_of("cuda:0,cuda:0", 1), ElementsAre(HasSubstr("lists cuda:0 twice")));
  EXPECT_THAT(names_of("cpu,", 1), ElementsAre(HasSubstr("is no list of devices")));
  EXPECT_THAT(names_of("cpu,all", 1), ElementsAre(HasSubstr("is no list of devices")));
  EXPECT_THAT(names_of("cpu,cuda:1", 1), ElementsAre(HasSubstr("device cuda:1")));
}

TEST(DeviceListTest, EachHasWordsThatDoNotMeetThoseOfTheOthers) {
  const auto devices = *listed_devices("cuda:0,cuda:1", machine_with(2));
  const SharedWords shared{
      .words = {"-v", "--home=all", "join", "TICKET", "--device", "cuda:0,cuda:1", "--events", "/tmp/e.jsonl",
                "--listen=0.0.0.0:5000", "--advertise", "[::1]:5000", "--advertise", "host", "--stage", "1"},
      .home = "all",
      .threads = 8};
  EXPECT_THAT(words_of(shared, devices, 1),
              ElementsAre("-v", "--home=all/cuda-1", "join", "TICKET", "--device", "cuda:1", "--threads", "8",
                          "--events", "/tmp/e-cuda-1.jsonl", "--listen=0.0.0.0:5002", "--advertise", "[::1]:5002",
                          "--advertise", "host", "--stage", "1"));
  EXPECT_THAT(words_of({.words = {"join", "--page", "T", "--threads", "2", "--device=all", "--page=80", "--listen",
                                  "0.0.0.0:0"},
                        .home = "/h",
                        .threads = 8},
                       devices, 1),
              ElementsAre("--home", "/h/cuda-1", "join", "--page", "T", "--threads", "2", "--device=cuda:1",
                          "--page=81", "--listen", "0.0.0.0:0"));
}

EachProcess shell(const std::string& name, const std::string& line) {
  return {.name = name, .words = {"/bin/sh", "-c", line}, .home = {}, .output = {}};
}

struct Ran {
  std::vector<int> codes;
  std::vector<std::string> lines;
};
Ran run_shells(std::vector<EachProcess> processes) {
  Ran ran;
  auto codes = run_each({.processes = std::move(processes),
                         .home = {},
                         .restart_pause = std::chrono::milliseconds(1),
                         .print = [&](const std::string& line) { ran.lines.push_back(line); }});
  EXPECT_TRUE(codes.ok());
  if (codes.ok()) ran.codes = *codes;
  return ran;
}

TEST(JoinEachTest, OneThatEndsForGoodIsNotStartedAgainAndTheOthersGoOn) {
  const ScratchFolder folder;
  const std::string marks = folder / "marks";
  // Refused, a failure that may be over by itself, which it is at the third start, and a signal.
  const Ran ran = run_shells(
      {shell("a", "echo refused >&2; exit 77"),
       shell("b", "echo b >> " + marks + "; test $(wc -l < " + marks + ") -ge 3 || exit 69"),
       shell("c", "printf 'one\\ntwo' >&2; test -e " + marks + "c || { : > " + marks + "c; kill -KILL $$; }")});
  EXPECT_THAT(ran.codes, ElementsAre(77, 0, 0));
  EXPECT_EQ(std::ranges::count(ran.lines, "a: refused"), 1);
  EXPECT_EQ(std::ranges::count(ran.lines, "c: one"), 2);
  EXPECT_EQ(std::ranges::count(ran.lines, "c: two"), 2) << "a last line without an end";
  EXPECT_EQ(ScratchFolder::read(marks), "b\nb\nb\n");
}

TEST(JoinEachTest, AProgramThatIsNotThereIsNamed) {
  const auto codes = run_each({.processes = {{.name = "a", .words = {"/no/such/program"}, .home = {}, .output = {}}},
                               .home = {},
                               .restart_pause = {},
                               .print = [](const std::string&) {}});
  EXPECT_EQ(codes.code(), ErrorCode::kMissing);
}

// ---- their owner's words: the test serves the socket of each ----
class JoinEachWordsTest : public testing::Test {
 protected:
  ~JoinEachWordsTest() override {
    open_gates();
    servers_.call([this] { sockets_.clear(); });
  }

  // Runs `line`, in which $0 is this test's folder; `read go < $0/NAME.gate` waits for open_gate().
  EachProcess owned(const std::string& name, const std::string& line) {
    const std::string home = folder_ / name, gate = folder_ / (name + ".gate");
    std::filesystem::create_directory(home);
    EXPECT_EQ(::mkfifo(gate.c_str(), 0600), 0);
    gates_.emplace(name, Descriptor(::open(gate.c_str(), O_RDWR | O_CLOEXEC)));
    return {.name = name, .words = {"/bin/sh", "-c", line, folder_.path()}, .home = home, .output = {}};
  }
  void open_gate(const std::string& name) { EXPECT_EQ(::write(gates_.at(name).get(), "\n", 1), 1); }
  void open_gates() {
    for (const auto& [name, gate] : gates_) open_gate(name);
  }

  // `take` on a loop, as that of a join.
  void serve(const std::string& name, OwnerSocket::Take take) {
    servers_.call([&] {
      auto socket = OwnerSocket::listen(servers_.loop(), control_path(folder_ / name), std::move(take));
      ASSERT_TRUE(socket.ok());
      sockets_.push_back(*std::move(socket));
    });
  }
  // What a join answers that has nothing to settle.
  static void answer_at_once(const std::string& word, const OwnerSocket::Answer& answer) {
    answer(control_answer(word == "pause" ? "paused" : word == "resume" ? "resumed" : "serving", "it is"));
  }

  void run(std::vector<EachProcess> processes) {
    codes_ = std::async(std::launch::async, [this, processes = std::move(processes)] {
      return run_each({.processes = processes,
                       .home = folder_.path(),
                       .restart_pause = std::chrono::milliseconds(1),
                       .print = [this](const std::string& line) {
                         const std::lock_guard lock(mutex_);
                         lines_.push_back(line);
                         printed_.notify_all();
                       }});
    });
  }
  bool wait_for_line(const std::string& line, int times = 1) {
    std::unique_lock lock(mutex_);
    return printed_.wait_for(lock, kPatience, [&] { return std::ranges::count(lines_, line) >= times; });
  }
  // As `shoal pause` does it; once they listen.
  std::future<std::string> say(const std::string& word) {
    return std::async(std::launch::async, [path = control_path(folder_.path()), word] {
      const TimePoint until = monotonic_now() + kPatience;
      auto answer = ask_line(path, word);
      while (!answer.ok() && answer.code() == ErrorCode::kMissing && monotonic_now() < until)
        answer = ask_line(path, word);
      return answer.ok() ? *answer : answer.error().message;
    });
  }
  std::vector<int> codes() {
    const auto codes = codes_.get();
    EXPECT_TRUE(codes.ok());
    return codes.ok() ? *codes : std::vector<int>();
  }

  ScratchFolder folder_;
  std::map<std::string, Descriptor> gates_;
  std::mutex mutex_;
  std::condition_variable printed_;
  std::vector<std::string> lines_;
  LoopThread servers_;
  std::vector<OwnerSocket::Answer> kept_;  // on the servers' loop
  std::vector<std::unique_ptr<OwnerSocket>> sockets_;
  std::future<Result<std::vector<int>>> codes_;
};

TEST_F(JoinEachWordsTest, ASecondWordReachesOneThatHasNotAnsweredTheFirst) {
  std::promise<void> first_came;
  run({owned("a", "echo up >&2; read go < $0/a.gate")});
  ASSERT_TRUE(wait_for_line("a: up"));
  serve("a", [&](const std::string&, const OwnerSocket::Answer& answer) {
    kept_.push_back(answer);
    if (kept_.size() == 1) return first_came.set_value();
    for (const auto& one : kept_) one(control_answer("over", "it left at once"));
  });
  auto first = say("finish");
  first_came.get_future().wait();
  auto second = say("finish");
  EXPECT_EQ(second.wait_for(kPatience), std::future_status::ready);
  servers_.call([&] { kept_.front()(control_answer("over", "it heard no second word")); });
  EXPECT_EQ(first.wait_for(kPatience), std::future_status::ready);  // with the last process the socket goes
  open_gates();
  EXPECT_EQ(text_of_answer(second.get()), "a: it left at once");
  EXPECT_EQ(text_of_answer(first.get()), "a: it left at once");
  EXPECT_THAT(codes(), ElementsAre(0));
}

TEST_F(JoinEachWordsTest, NoneIsStartedAgainWhileTheirOwnerHasThemPaused) {
  run({owned("a", "echo a >> $0/starts; echo up >&2; read go < $0/a.gate; test $(wc -l < $0/starts) -ge 2 || exit 69"),
       owned("b", "read go < $0/b.gate")});
  serve("a", answer_at_once);
  serve("b", answer_at_once);
  ASSERT_TRUE(wait_for_line("a: up"));
  const std::string both = say("pause").get();
  EXPECT_EQ(state_of_answer(both), "paused");
  EXPECT_EQ(text_of_answer(both), "a: it is\nb: it is");
  open_gate("a");
  const std::string gone = "a: it does not run: started again after resume\nb: it is";
  const TimePoint until = monotonic_now() + kPatience;
  while (text_of_answer(say("status").get()) != gone && monotonic_now() < until) {
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(text_of_answer(say("status").get()), gone);
  const std::string again = say("pause").get();
  EXPECT_EQ(state_of_answer(again), "paused");
  EXPECT_EQ(text_of_answer(again), gone);
  EXPECT_EQ(ScratchFolder::read(folder_ / "starts"), "a\n");

  const std::string resumed = say("resume").get();
  EXPECT_EQ(state_of_answer(resumed), "mixed");
  EXPECT_EQ(text_of_answer(resumed), "a: it does not run: started again in 1 s\nb: it is");
  EXPECT_TRUE(wait_for_line("a: up", 2));
  open_gates();
  EXPECT_THAT(codes(), ElementsAre(0, 0));
}

TEST_F(JoinEachWordsTest, AWordWaitsForTheSocketOfOneThatHasJustBegun) {
  std::promise<void> heard;
  run({owned("a", "echo up >&2; read go < $0/a.gate"), owned("b", "echo up >&2; read go < $0/b.gate")});
  ASSERT_TRUE(wait_for_line("a: up") && wait_for_line("b: up"));
  serve("b", [&](const std::string& word, const OwnerSocket::Answer& answer) {
    answer_at_once(word, answer);
    heard.set_value();
  });
  auto said = say("pause");
  heard.get_future().wait();
  serve("a", answer_at_once);
  const std::string answer = said.get();
  EXPECT_EQ(state_of_answer(answer), "paused");
  EXPECT_EQ(text_of_answer(answer), "a: it is\nb: it is");
  open_gates();
  EXPECT_THAT(codes(), ElementsAre(0, 0));
}

TEST_F(JoinEachWordsTest, OneThatClosedItsErrorsEarlyHoldsNobodyUp) {
  // More lines of b than a turn takes, after nothing can come from a any more.
  run({owned("a", "exec 2>&-; : > $0/closed; read go < $0/a.gate"),
       owned("b",
             "until test -e $0/closed; do :; done; i=0; while test $i -lt 2000; do i=$((i + 1)); echo $i >&2; done")});
  EXPECT_TRUE(wait_for_line("b: 2000"));
  open_gates();
  EXPECT_THAT(codes(), ElementsAre(0, 0));
}

TEST_F(JoinEachWordsTest, AStartThatFailsLaterIsTriedAgainAndTheOthersGoOn) {
  // It takes its own program away, which comes back after three starts that failed.
  const std::string program =
      folder_.write("program", "#!/bin/sh\ntest -e $0.ran && exit 0\n: > $0.ran\nmv $0 $0.gone\nexit 69\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  std::atomic<int> failed = 0;
  set_log_sink([&](LogLevel level, std::string_view line) {
    if (level != LogLevel::kWarning || !line.starts_with("a could not be started again in 1 s: ")) return;
    if (++failed != 3) return;
    std::filesystem::rename(program + ".gone", program);
    open_gate("b");
  });
  auto b = owned("b", "read go < $0/b.gate");
  run({{.name = "a", .words = {program}, .home = {}, .output = {}}, std::move(b)});
  EXPECT_THAT(codes(), ElementsAre(0, 0));
  set_log_sink({});
  EXPECT_EQ(failed, 3);
}

}  // namespace
}  // namespace shoal
