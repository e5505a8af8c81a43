#include "page/live_page.h"

#include <mutex>

#include "common/os/thread_loop.h"
#include "page/run_json.h"

namespace shoal {

// Swapped by the loop, read by the server's thread; neither waits for more than the swap.
struct LivePage::Told {
  std::mutex mutex;
  std::shared_ptr<const std::string> moment = std::make_shared<const std::string>("{}"), story = moment;
  TimePoint at = monotonic_now();

  std::string snapshot() {
    std::shared_ptr<const std::string> now, grown;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      now = moment;
      grown = story;
    }
    return snapshot_json(*now, *grown);
  }
  PageAnswer health() {
    const std::lock_guard<std::mutex> lock(mutex);
    const Duration silent = monotonic_now() - at;
    if (silent < kSilentAfter) return {200, "text/plain; charset=utf-8", std::make_shared<const std::string>("ok\n")};
    return {503, "text/plain; charset=utf-8",
            std::make_shared<const std::string>("the loop told nothing for " +
                                                std::to_string(static_cast<long long>(seconds_of(silent))) + " s\n")};
  }
};

class LivePage::ShownLog final : public EventLog {
 public:
  ShownLog(LivePage& page, std::unique_ptr<EventLog> inner) : page_(page), inner_(std::move(inner)) {}
  void write(const EventRecord& record) override {
    inner_->write(record);
    page_.take(record, session_);
  }
  void set_session(const Session& session) override {
    session_ = session;
    inner_->set_session(session);
  }
  void set_stage(StageId stage) override { inner_->set_stage(stage); }

 private:
  LivePage& page_;
  std::unique_ptr<EventLog> inner_;
  Session session_{};
};

LivePage::LivePage(EventLoop& loop, RunFacts facts) : loop_(loop), told_(std::make_shared<Told>()) {
  view_.set_facts(std::move(facts));
}

Result<std::unique_ptr<LivePage>> LivePage::open(EventLoop& loop, RunFacts facts, const PagePort& port) {
  std::unique_ptr<LivePage> page(new LivePage(loop, std::move(facts)));
  const auto answers = [told = page->told_, metrics = &page->metrics_, of_peer = page->view_.facts().of_peer()](
                           std::string_view path, std::optional<double>) -> std::optional<PageAnswer> {
    const auto whole = [](std::string text) { return std::make_shared<const std::string>(std::move(text)); };
    if (path == "/snapshot.json") return PageAnswer{200, "application/json", whole(told->snapshot())};
    if (path == "/metrics" && !of_peer) return PageAnswer{200, RunMetrics::kType, whole(metrics->text())};
    if (path == "/healthz") return told->health();
    return std::nullopt;
  };
  SHOAL_ASSIGN(page->http_, LoopbackHttp::open({.at = port, .answers = answers}));
  page->publish();
  return page;
}

// The server first: it asks for what stands above it.
LivePage::~LivePage() {
  loop_.cancel(timer_);
  http_.reset();
}

std::unique_ptr<EventLog> LivePage::shown(std::unique_ptr<EventLog> inner) {
  return std::make_unique<ShownLog>(*this, std::move(inner));
}

void LivePage::take(const EventRecord& record, const Session& session) {
  view_.take({record, seconds_of(loop_.wall().time_since_epoch()), !view_.facts().of_peer(), session});
}

void LivePage::tell(const EventRecord& record) {
  view_.take({record, seconds_of(loop_.wall().time_since_epoch()), true, {}});
}

void LivePage::start(std::function<RunWord()> word) {
  word_ = std::move(word);
  tick();
}

void LivePage::stop() {
  loop_.cancel(timer_);
  timer_ = 0;
  word_ = nullptr;
  story_at_ = {};
  publish();
}

void LivePage::tick() {
  loop_.name_callback("page");
  timer_ = loop_.after(kPeriod, lifetime_.guard([this] { tick(); }));
  const RunWord word = word_();
  view_.set_delay(word.delay);
  view_.set_parked(word.parked);
  for (const auto& [session, seconds] : word.quiet) view_.set_quiet(session, seconds);
  if (word.member) view_.take_word(*word.member, seconds_of(loop_.wall().time_since_epoch()));
  publish();
}

void LivePage::publish() {
  view_.advance(seconds_of(loop_.wall().time_since_epoch()));
  metrics_.update(view_);
  const auto moment = std::make_shared<const std::string>(moment_json(view_));
  std::shared_ptr<const std::string> story;
  const std::uint64_t tales = view_.story().tales().size() + view_.story().forgotten();
  if (story_at_ == TimePoint{} || tales != tales_told_ || loop_.now() - story_at_ >= kStoryPeriod) {
    story = std::make_shared<const std::string>(story_json(view_));
    story_at_ = loop_.now();
    tales_told_ = tales;
  }
  {
    const std::lock_guard<std::mutex> lock(told_->mutex);
    told_->moment = moment;
    if (story) told_->story = story;
    told_->at = monotonic_now();
  }
  if (story) http_->publish("story", *story);
  http_->publish("moment", *moment);
}

}  // namespace shoal
