#include "lend/owner_desk.h"

#include <ctime>
#include <utility>

#include "common/log.h"
#include "lend/control.h"

namespace shoal {
namespace {

constexpr Duration kLookEvery = 2s;  // at the clock
constexpr Duration kGpuEvery = 5s;   // at what else the GPU does

// By the clock on the wall, in this machine's time zone.
int minute_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  ::localtime_r(&now, &local);
  return 60 * local.tm_hour + local.tm_min;
}

void answer_all(std::vector<OwnerSocket::Answer>& waiting, const std::string& text) {
  for (const auto& answer : std::exchange(waiting, {})) answer(text);
}

}  // namespace

Status OwnerDesk::listen(const std::string& home) {
  SHOAL_ASSIGN(socket_, OwnerSocket::listen(loop_, control_path(home),
                                            [this](const std::string& word, const OwnerSocket::Answer& answer) {
                                              hear(word, answer);
                                            }));
  return {};
}

void OwnerDesk::watch_gpu(int index, WorkQueue& aside) {
  aside_ = &aside;
  gpu_ = index;
}

void OwnerDesk::start() {
  tick();
  if (aside_ != nullptr) look_at_gpu();
}

// In a container a process may be shown under another number, or not at all: then others cannot be told from us.
void OwnerDesk::look_at_gpu() {
  if (over_) return;
  auto use = std::make_shared<Result<GpuUse>>(GpuUse{});
  aside_->run(
      WorkKind::kAside, [use, gpu = gpu_] { *use = ask_gpu_use(gpu); }, lifetime_.guard([this, use] {
        const bool holds = peer_.report().phase == PeerPhase::kServing;
        const bool mixed = use->ok() && holds && !(*use)->own;
        if ((!use->ok() || mixed) && !std::exchange(gpu_warned_, true))
          log_warning("--gpu-busy cannot be honoured just now: ",
                      mixed ? "nvidia-smi does not show this process among those of the GPU" : use->error().message,
                      ". HINT: shoal pause frees the GPU");
        busy_.note(use->ok() && !mixed ? (*use)->others : "", loop_.now());
        look();
        loop_.after(kGpuEvery, lifetime_.guard([this] { look_at_gpu(); }));
      }));
}

void OwnerDesk::tick() {
  if (over_) return;
  look();
  loop_.after(kLookEvery, lifetime_.guard([this] { tick(); }));
}

void OwnerDesk::look() { peer_.set_pause(plan_.look(minute_of_day(), busy_.text())); }

void OwnerDesk::hear(const std::string& word, const OwnerSocket::Answer& answer) {
  if (over_) return answer(control_answer("over", "it ends just now"));
  const std::optional<PeerPause> before = peer_.report().pause;
  if (word == kPauseWord) {
    plan_.owner_pauses();
    look();
    const std::optional<PeerPause> pause = peer_.report().pause;
    if (!pause) return answer(control_answer("leaving", "it leaves for good, and does not pause"));
    if (pause->took > Duration(0)) return answer(control_answer("paused", "it is paused already", &*pause));
    asked_pause_.push_back(answer);
  } else if (word == kResumeWord) {
    plan_.owner_resumes();
    answer_all(asked_pause_, control_answer("resumed", "it was resumed before it was paused"));
    look();
    answer(control_answer("resumed", before ? "resumed: joining again" : "it was not paused"));
  } else if (word == kFinishWord) {
    asked_finish_.push_back(answer);
    peer_.leave();
  } else if (word == kStatusWord) {
    const PeerReport report = peer_.report();
    std::string text(name_of(report.phase));
    if (report.stage) text += " " + std::to_string(report.stage->value);
    if (!report.reason.empty()) text += " (" + report.reason + ")";
    answer(control_answer(std::string(name_of(report.phase)), text));
  } else {
    answer(control_answer("unknown", "this process knows no word \"" + word + "\""));
  }
}

void OwnerDesk::on_paused(const PeerPause& pause) {
  const std::string text = pause_text(pause);
  log_info(text);
  answer_all(asked_pause_, control_answer("paused", text, &pause));
}

void OwnerDesk::on_finished(const std::string& how) {
  over_ = true;
  answer_all(asked_pause_, control_answer("over", how));
  answer_all(asked_finish_, control_answer("over", how));
}

}  // namespace shoal
