#include "runtime/launch/final_states.h"

#include <utility>

#include "common/log.h"
#include "runtime/config/frames_allowed.h"
#include "runtime/plan/split_limits.h"

namespace shoal {

namespace {
constexpr Duration kAskAgain = 200ms;  // for the list that names the last rounds' states
}  // namespace

FinalStates::FinalStates(Environment environment, std::function<void(Fetched)> done)
    : env_(environment), done_(std::move(done)) {}

void FinalStates::fetch_next_later(Duration after) {
  env_.loop.after(after, lifetime_.guard([this] { fetch_next(); }));
}

void FinalStates::fetch_next() {
  fetcher_.reset();
  const auto& stages = env_.authority.members().stages;
  if (next_ >= stages.size()) {
    // `done` may end this object.
    return env_.loop.post(lifetime_.guard(
        [done = std::move(done_), fetched = std::move(fetched_)]() mutable { done(std::move(fetched)); }));
  }
  const StageMembers& stage = stages[next_];
  for (const StageStatus& now : env_.authority.status()) {
    // The list that names the last round's state is still on its way to the disk.
    if (now.stage == stage.stage && (now.secured != stage.secured || now.version != stage.version))
      return fetch_next_later(kAskAgain);
  }
  if (!stage.secured) {
    fetched_.unsaved = make_error(ErrorCode::kMissing, "nothing was saved: stage " + std::to_string(stage.stage.value) +
                                                           " never secured a round. HINT: let the run make more steps");
    env_.owner.on_notice(fetched_.unsaved->message);
    ++next_;
    return fetch_next_later(Duration(0));
  }
  FetcherOptions fetching;
  // The manifest tells how much a stage holds for the torch executor alone.
  if (env_.config.executor.kind == ExecutorKind::kTorch)
    fetching.sizes = image_sizes(payload_bytes(env_.config).at(next_) / sizeof(float));
  fetcher_ = std::make_unique<StateFetcher>(fetching, static_cast<FetcherHost&>(*this), env_.loop, stage.stage);
  ask_donors();
}

// Donors are those of the newest list: a peer that was there at first may go, and one that joined since has the state.
void FinalStates::ask_donors() {
  const StageMembers& stage = env_.authority.members().stages[next_];
  std::vector<PeerId> donors;
  for (const Member& member : stage.members)
    if (may_donate(member)) donors.push_back(member.peer);
  fetcher_->fetch(stage.version, stage.digest, std::move(donors));
}

void FinalStates::on_members() {
  if (fetcher_ && fetcher_->active()) ask_donors();
}

void FinalStates::on_offer(const PeerId& from, const StateOffer& offer) {
  if (fetcher_) fetcher_->on_offer(from, offer);
}

bool FinalStates::on_chunk(const Chunk& chunk, const InboundFrames& frames, std::uint64_t frame_bytes) {
  if (!chunk_wanted(fetcher_.get(), frames.peer, chunk, frame_bytes)) return false;
  if (frames.transfer == 0)
    fetcher_->on_chunk(frames.peer, chunk, {});
  else
    chunks_[frames] = chunk;
  return true;
}

void FinalStates::on_frames(const InboundFrames& of, Result<std::vector<Bytes>> frames) {
  const auto it = chunks_.find(of);
  if (it == chunks_.end()) return;
  const Chunk chunk = it->second;
  chunks_.erase(it);
  if (fetcher_ && frames.ok() && frames->size() == 1) fetcher_->on_chunk(of.peer, chunk, frames->front());
}

void FinalStates::on_link_down(const PeerId& peer) {
  if (fetcher_) fetcher_->on_donor_down(peer);
  std::erase_if(chunks_, [&](const auto& item) { return item.first.peer == peer; });
}

void FinalStates::send(const PeerId& to, Message message) {
  if (const auto sent = env_.links.send(to, std::move(message)); !sent.ok())
    log_debug("not sent: ", sent.error().message);
}

void FinalStates::run_aside(std::function<void()> job, std::function<void()> done) {
  env_.run_aside(std::move(job), std::move(done));
}

void FinalStates::on_progress(std::uint64_t bytes, std::uint64_t total) {
  env_.owner.on_headway(
      {.what = "fetching the state of stage " + std::to_string(next_), .done = bytes, .total = total, .bytes = true});
}

void FinalStates::on_fetched(Bytes image) {
  fetched_.images[env_.authority.members().stages[next_].stage.value] = std::move(image);
  ++next_;
  waiting_told_.clear();
  fetch_next_later(Duration(0));
}

void FinalStates::on_waiting(const std::string& why) {
  if (std::exchange(waiting_told_, why) != why) env_.owner.on_notice("saving: " + why);
}

}  // namespace shoal
