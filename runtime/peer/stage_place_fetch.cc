// A version that is fetched: a joiner's first one, or one that was committed without this session.
#include <algorithm>
#include <utility>

#include "runtime/peer/peer.h"

namespace shoal {

void StagePlace::on_behind(Version version, const Digest& digest) {
  const TimePoint now = env_.process.loop.now();
  // A donor makes the image between two jobs, and its jobs are like ours.
  const Duration patience = std::max(env_.run.served->membership(), 2 * peer_->status().longest_job);
  if (!missed_) {
    missed_.emplace(version, digest, now, patience);
    if (env_.state.in_session()) env_.membership.beat_now();
  }
  missed_->aim(version, digest);
  fetch_missed();
}

void StagePlace::fetch_missed() {
  if (const StageMembers* stage = env_.membership.stage_members()) missed_->aim(stage->version, stage->digest);
  if (serving() && missed_->overtaken_too_often())
    return env_.owner.end_session("rounds are committed faster than their state can be fetched here");
  if (!missed_->to_fetch()) return;
  inbound_.refuse_others(missed_->version(),
                         [this](const PeerId& donor, TransferId transfer) { env_.transport.refuse(donor, transfer); });
  fetcher_->fetch(missed_->version(), missed_->digest(), env_.membership.donors());
}

void StagePlace::on_progress(std::uint64_t bytes, std::uint64_t total) {
  if (env_.state.is(PeerPhase::kFetching)) env_.state.because("");  // whatever it waited for before
  fetched_ = bytes;
  fetch_total_ = total;
  if (missed_) missed_->flows(env_.process.loop.now(), static_cast<double>(bytes) / static_cast<double>(total));
}

std::uint64_t StagePlace::arrived(const PeerId& donor, const Chunk& chunk) const {
  const std::optional<TransferId> transfer = inbound_.transfer_of(donor, chunk);
  return transfer ? env_.transport.received_of(donor, *transfer) : 0;
}

void StagePlace::on_making() {
  if (missed_) missed_->is_made(env_.process.loop.now());
}

void StagePlace::on_waiting(const std::string& why) {
  env_.state.because(why);
  if (base_ && !base_->loaded()) return;
  if (std::exchange(waiting_told_, why) != why) env_.owner.on_notice("waiting for state: " + why);
}

void StagePlace::on_fetched(Bytes image) {
  if (base_ && !base_->loaded()) return base_->on_fetched(std::move(image));
  waiting_told_.clear();
  if (missed_) missed_->arrived();
  if (serving()) {
    if (missed_ && !peer_->catch_up(std::move(image))) missed_.reset();  // else the version came another way
    return;
  }
  // One that rounds overtook is of no use, but the authority hears how long it took, and holds the next round for the
  // newest.
  const Version version = parse_state_header(image)->version;
  if (!missed_ || !missed_->go_on(env_.process.loop.now())) return load(std::move(image), version);
  env_.owner.on_notice("version " + std::to_string(version.value) + " is here, and version " +
                       std::to_string(missed_->version().value) + " is the stage's newest by now: fetching that one");
  reached_ = version;
  if (env_.state.in_session()) env_.membership.beat_now();
  env_.process.loop.post(env_.session.guard([this] {  // the fetcher is not done with the one before
    if (missed_) fetch_missed();
  }));
}

}  // namespace shoal
