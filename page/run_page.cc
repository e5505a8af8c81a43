#include "page/run_page.h"

#include <algorithm>

#include "common/log.h"
#include "page/live_page.h"
#include "runtime/config/config.h"
#include "runtime/data/entropy.h"
#include "runtime/data/samples.h"
#include "runtime/launch/launch.h"

namespace shoal {
namespace {

constexpr Duration kStandsFor = 2s;  // a full window for a moment is no standstill

}  // namespace

RunFacts run_facts(const RunConfig& config) {
  return {.name = config.run.name,
          .stages = static_cast<std::uint16_t>(config.pipeline.stages),
          .end_targets = config.end_targets()};
}

void count_entropies(const Samples& samples, const RunConfig& config, RunFacts& facts) {
  const TextEntropy entropy = training_entropy(samples.text(), config.token_dtype());
  facts.unigram = entropy.unigram;
  facts.bigram = entropy.bigram;
}

Result<RunFacts> facts_of_file(const std::string& path) {
  if (path.empty()) return RunFacts{};
  SHOAL_ASSIGN(const RunConfig config, load_config(path));
  RunFacts facts = run_facts(config);
  const auto samples = Samples::open(config.text_files());
  if (samples.ok())
    count_entropies(*samples, config, facts);
  else
    log_warning("the text's entropies are not shown: ", samples.error().message);
  return facts;
}

RunPage::RunPage(EventLoop& loop, const RunConfig& config) : loop_(loop), config_(config) {}
RunPage::~RunPage() = default;

Result<std::unique_ptr<RunPage>> RunPage::open(EventLoop& loop, const RunConfig& config, const RunId& run,
                                               const PagePort& port) {
  std::unique_ptr<RunPage> page(new RunPage(loop, config));
  page->run_ = run;
  SHOAL_ASSIGN(page->page_, LivePage::open(loop, page->facts(), port));
  tell_page(page->page_->port());
  return page;
}

std::unique_ptr<EventLog> RunPage::shown(std::unique_ptr<EventLog> inner) { return page_->shown(std::move(inner)); }

RunFacts RunPage::facts() const {
  RunFacts facts = run_facts(config_);
  facts.key = hex_of(run_).substr(0, 16);
  return facts;
}

void RunPage::start(const Launch& launch, const Samples& samples) {
  page_->start([this, &launch] { return word(launch); });
  auto counted = lifetime_.guard([this](const RunFacts& facts) { page_->set_facts(facts); });
  counter_ = std::jthread([this, &samples, facts = facts(), counted]() mutable {
    count_entropies(samples, config_, facts);
    loop_.post([facts = std::move(facts), counted]() mutable { counted(facts); });
  });
}

void RunPage::stop() { page_->stop(); }

RunWord RunPage::word(const Launch& launch) {
  RunWord word;
  for (const StageStatus& stage : launch.authority().status())
    if (stage.delay) word.delay = std::max(word.delay.value_or(0), *stage.delay);
  for (const MemberLife& member : launch.authority().lives())
    word.quiet.emplace_back(member.session, seconds_of(member.quiet));
  std::string parked = launch.ended() ? "" : launch.parked_text();
  if (parked.empty())
    stands_since_.reset();
  else if (!stands_since_)
    stands_since_ = loop_.now();
  if (stands_since_ && loop_.now() - *stands_since_ >= kStandsFor) word.parked = std::move(parked);
  return word;
}

}  // namespace shoal
