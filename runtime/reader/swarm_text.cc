#include "runtime/reader/swarm_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/check.h"
#include "kernels/accumulate.h"
#include "runtime/stage_peer/text_desk.h"

namespace shoal {
namespace {

constexpr Duration kAskAgain = 500ms;
constexpr int kSlower = 3;  // times the longest answer so far

template <class Value>
std::vector<Value> values_in(const Bytes& frame) {
  std::vector<Value> values(frame.size() / sizeof(Value));
  std::memcpy(values.data(), frame.data(), values.size() * sizeof(Value));
  return values;
}

}  // namespace

SwarmText::SwarmText(Options options, Environment environment)
    : options_(options), env_(std::move(environment)), stages_(env_.specs.size()) {
  SHOAL_CHECK(!stages_.empty());
  restart();
}

SwarmText::~SwarmText() { cancel(); }

void SwarmText::on_members(const MemberList& list) {
  for (const StageMembers& members : list.stages) {
    if (members.stage.value >= stages_.size()) continue;
    Stage& stage = stages_[members.stage.value];
    stage.serving.clear();
    for (const Member& member : members.members) {
      if (!member.serving) continue;
      env_.links.learn(member.peer, member.whereabouts);
      if (env_.links.reaches(member.peer)) stage.serving.push_back(member);
    }
  }
  if (done_ && !asked_ && !result_) go_on();
}

void SwarmText::restart() {
  cancel();
  ids_.clear();
  text_ = env_.rng.next();
  for (Stage& stage : stages_) {
    stage.at_peer = 0;
    stage.activations.clear();
  }
}

void SwarmText::cancel() {
  env_.loop.cancel(std::exchange(timer_, 0));
  if (asked_ && asked_->answer != 0) env_.links.refuse(asked_->peer, asked_->answer);
  asked_.reset();
  result_.reset();
  done_ = nullptr;
}

void SwarmText::extend(std::span<const std::uint32_t> ids, Done done) {
  SHOAL_CHECK(!done_ && !ids.empty());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  SHOAL_CHECK_LE(ids_.size(), env_.specs.front().model.context_length());
  done_ = std::move(done);
  deadline_ = env_.loop.now() + options_.patience;
  for (Stage& stage : stages_) stage.failed.clear();
  go_on();
}

// ---- stage by stage ----

// Places of its input that are here.
std::uint64_t SwarmText::rows_of(std::size_t stage) const {
  return stage == 0 ? ids_.size() : stages_[stage].activations.size() / env_.specs[stage].model.wire_width();
}

// Asks the first stage that lacks places which are here.
void SwarmText::go_on() {
  env_.loop.cancel(std::exchange(timer_, 0));
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    if (stages_[stage].at_peer >= ids_.size()) continue;
    SHOAL_CHECK_EQ(rows_of(stage), ids_.size());
    if (choose_peer(stages_[stage])) return ask(stage);
    return give_up_or_wait("no peer serves stage " + std::to_string(stage));
  }
}

// The one that has the text; else any that serves and has not failed; else the one that failed longest ago.
bool SwarmText::choose_peer(Stage& stage) {
  if (stage.peer) return true;
  if (stage.serving.empty()) return false;
  const auto failed_at = [&](const PeerId& peer) {  // from 1 on; 0: it did not
    const auto found = std::ranges::find(stage.failed, peer);
    return found == stage.failed.end() ? 0 : found - stage.failed.begin() + 1;
  };
  const std::size_t from = env_.rng.below(stage.serving.size());
  stage.peer = stage.serving[from].peer;
  for (std::size_t i = 1; i < stage.serving.size(); ++i) {
    const PeerId& peer = stage.serving[(from + i) % stage.serving.size()].peer;
    if (failed_at(peer) < failed_at(*stage.peer)) stage.peer = peer;
  }
  stage.at_peer = 0;
  return true;
}

void SwarmText::ask(std::size_t number) {
  Stage& stage = stages_[number];
  const StageSpec& spec = env_.specs[number];
  const auto first = static_cast<std::uint32_t>(stage.at_peer);
  const auto count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(TextDesk::kPlacesMax, ids_.size() - stage.at_peer));
  std::vector<Bytes> frames{Bytes::copy_of(bytes_of(std::span<const std::uint32_t>(ids_).subspan(first, count)))};
  const std::size_t width = spec.model.wire_width();
  if (number > 0)
    frames.push_back(
        Bytes::copy_of(bytes_of(std::span<const float>(stage.activations).subspan(first * width, count * width))));
  asked_ = Asked{*stage.peer, number, first, count, 0, env_.loop.now()};
  const auto sent = env_.links.send(*stage.peer, Extend{text_, spec.stage, first, count, options_.likeliest}, frames);
  if (!sent.ok()) return fail_peer(sent.error().message);
  arm(std::max(options_.answer_timeout, kSlower * longest_answer_), &SwarmText::too_late);
}

void SwarmText::arm(Duration after, void (SwarmText::*what)()) {
  env_.loop.cancel(std::exchange(timer_, 0));
  timer_ = env_.loop.after(after, lifetime_.guard([this, what] {
    timer_ = 0;
    (this->*what)();
  }));
}

// Perhaps it is slow and not gone: the next answer is waited for longer. Behind a job the peer's device rests from
// texts.
void SwarmText::too_late() {
  if (asked_) longest_answer_ = std::max(longest_answer_, env_.loop.now() - asked_->since);
  fail_peer("no answer came in time");
}

// What it has of the text is not known: another peer, or the same one, begins with place 0.
void SwarmText::fail_peer(const std::string& why) {
  if (!asked_) return;
  const Asked asked = *asked_;
  asked_.reset();
  if (asked.answer != 0) env_.links.refuse(asked.peer, asked.answer);
  Stage& stage = stages_[asked.stage];
  if (stage.at_peer > 0) ++replays_;
  stage.peer.reset();
  stage.at_peer = 0;
  std::erase(stage.failed, asked.peer);
  stage.failed.push_back(asked.peer);
  last_failure_ = "stage " + std::to_string(asked.stage) + ", peer " + short_name(asked.peer) + ": " + why;
  const bool all_failed = std::ranges::all_of(stage.serving, [&](const Member& member) {
    return std::ranges::find(stage.failed, member.peer) != stage.failed.end();
  });
  all_failed ? give_up_or_wait(last_failure_) : arm(Duration(0), &SwarmText::go_on);
}

void SwarmText::give_up_or_wait(const std::string& why) {
  last_failure_ = why;
  if (env_.loop.now() + kAskAgain < deadline_) return arm(kAskAgain, &SwarmText::go_on);
  finish(make_error(ErrorCode::kUnreachable, "the text cannot go on: " + why));
}

// ---- answers ----

std::uint64_t SwarmText::bytes_wanted(const Asked& asked) const {
  const ModelSpec& model = env_.specs[asked.stage].model;
  if (!env_.specs[asked.stage].is_last()) return std::uint64_t{asked.count} * model.wire_width() * sizeof(float);
  return std::uint64_t{std::min(options_.likeliest, model.vocabulary)} * (sizeof(std::uint32_t) + sizeof(float));
}

bool SwarmText::on_extended(const Remote& from, const Extended& message, TransferId transfer,
                            std::uint64_t frame_bytes) {
  if (!asked_ || asked_->peer != from.peer || asked_->answer != 0 || message.text != text_ ||
      message.stage.value != asked_->stage || message.first != asked_->first || message.count != asked_->count)
    return false;
  const bool sound = transfer != 0 && frame_bytes == bytes_wanted(*asked_);
  if (message.answer == TextAnswer::kDone && sound) {
    Stage& stage = stages_[asked_->stage];
    if (stage.version && *stage.version != message.version) ++anchors_moved_;
    stage.version = message.version;
    asked_->answer = transfer;
    return true;
  }
  fail_peer(message.reason.empty() ? "an answer without the frames that belong to it" : message.reason);
  return false;
}

bool SwarmText::on_frames(const PeerId& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
  if (!asked_ || asked_->answer != transfer || asked_->peer != from) return false;
  asked_->answer = 0;
  if (!frames.ok()) {
    fail_peer(frames.error().message);
  } else {
    take(*asked_, *frames);
  }
  return true;
}

void SwarmText::on_link_down(const PeerId& peer) {
  for (Stage& stage : stages_) {
    if (stage.peer != peer || (asked_ && asked_->peer == peer)) continue;
    if (stage.at_peer > 0) ++replays_;
    stage.peer.reset();  // it forgets a reader whose link is down
    stage.at_peer = 0;
  }
  if (asked_ && asked_->peer == peer) fail_peer("its link is down");
}

void SwarmText::take(const Asked& asked, const std::vector<Bytes>& frames) {
  Stage& stage = stages_[asked.stage];
  const bool last = env_.specs[asked.stage].is_last();
  const bool whole = asked.first + asked.count == ids_.size();
  std::optional<std::vector<float>> logits;
  if (last && whole) {
    auto taken = take_logits(frames);
    if (!taken.ok()) return fail_peer(taken.error().message);
    logits = *std::move(taken);
  } else if (!last) {
    if (const Status taken = take_activation(asked, frames); !taken.ok()) return fail_peer(taken.error().message);
  }
  longest_answer_ = std::max(longest_answer_, env_.loop.now() - asked.since);
  stage.at_peer = asked.first + asked.count;
  asked_.reset();
  if (logits) return finish(*std::move(logits));
  go_on();
}

// A stage that begins anew says again what is here already.
Status SwarmText::take_activation(const Asked& asked, const std::vector<Bytes>& frames) {
  const std::size_t width = env_.specs[asked.stage].model.wire_width();
  if (frames.size() != 1 || frames.front().size() != asked.count * width * sizeof(float))
    return make_error(ErrorCode::kMalformed,
                      "its answer is no activation of " + std::to_string(asked.count) + " places");
  const std::vector<float> rows = values_in<float>(frames.front());
  if (!all_finite(rows)) return make_error(ErrorCode::kMalformed, "its answer is not finite");
  std::vector<float>& next = stages_[env_.specs[asked.stage].route().next->value].activations;
  const std::size_t known =
      std::min<std::size_t>(rows.size(), next.size() - std::min(next.size(), asked.first * width));
  next.insert(next.end(), rows.begin() + static_cast<std::ptrdiff_t>(known), rows.end());
  return {};
}

Result<std::vector<float>> SwarmText::take_logits(const std::vector<Bytes>& frames) const {
  const std::uint32_t vocabulary = env_.specs.back().model.vocabulary;
  const auto malformed = [] { return make_error(ErrorCode::kMalformed, "its answer is no ids and logits"); };
  if (frames.size() != 2 || frames[0].size() != frames[1].size() || frames[0].size() % sizeof(float) != 0 ||
      frames[0].empty() || frames[0].size() > vocabulary * sizeof(float))
    return malformed();
  const auto ids = values_in<std::uint32_t>(frames[0]);
  const auto values = values_in<float>(frames[1]);
  std::vector<float> logits(vocabulary, kUnsaid);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= vocabulary || !std::isfinite(values[i])) return malformed();
    logits[ids[i]] = values[i];
  }
  return logits;
}

void SwarmText::finish(Result<std::vector<float>> result) {
  env_.loop.cancel(std::exchange(timer_, 0));
  asked_.reset();
  result_ = std::move(result);
  env_.loop.post(lifetime_.guard([this] {
    if (!done_ || !result_) return;  // cancelled meanwhile
    const Done done = std::exchange(done_, nullptr);
    done(*std::exchange(result_, std::nullopt));
  }));
}

}  // namespace shoal
