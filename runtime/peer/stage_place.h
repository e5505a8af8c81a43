#pragma once
// A session's stage at this peer, from the stage that the authority gave to the session's end: makes the executor,
// brings the base of adapters, begins from the seed or brings the state (kept, or fetched from others), serves, follows
// what was committed without it, writes checkpoints and gives the state to others.
//
// Thread: loop only; the executor is touched inside device jobs. Borrows everything in its environment, which outlives
// it; it is taken down with its session.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "authority/membership.h"
#include "common/lifetime.h"
#include "runtime/peer/base_weights.h"
#include "runtime/peer/inbound_chunks.h"
#include "runtime/peer/missed_version.h"
#include "runtime/peer/session_environment.h"
#include "runtime/stage_peer/stage_peer.h"
#include "runtime/stage_peer/text_desk.h"
#include "state/state_image.h"
#include "state/state_transfer.h"
#include "transport/transport.h"

namespace shoal {

struct StagePlaceEnvironment : PeerSessionEnvironment {
  Session self;
  JoinAnswer answer;  // by which it serves
  Transport& transport;
  Membership& membership;
  Lifetime& session;  // callbacks about the session end with it
  std::function<void()> on_serving;
  std::function<void(Error)> on_failed;  // this process cannot serve the stage: not begin to, or not on
};

class StagePlace final : private StagePeerOwner, private DonorHost, private FetcherHost {
 public:
  // Makes the executor and goes on from there. REQUIRES: what is known of the run has the stage, and with what it is
  // served.
  explicit StagePlace(StagePlaceEnvironment environment);

  // ---- from the transport and the authority ----
  void on_link_down(const Remote& remote);
  void on_members(const MemberList& list);
  // One about the stage, its state, its texts. Frames that nobody takes are refused.
  void on_message(const Remote& remote, const Message& message, TransferId transfer, std::uint64_t frame_bytes);
  void on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>>& frames);
  void tick(TimePoint now);  // what is missed for too long, a checkpoint that is due

  // ---- look ----
  // Null before the executor is made.
  StagePeer* peer() const { return peer_.get(); }
  const std::shared_ptr<StageExecutor>& executor() const { return executor_; }
  bool serving() const { return peer_ && peer_->serving(); }
  Version version() const override;  // of the anchor; 0: not serving
  // Bytes of the state that are here, and in all.
  std::pair<std::uint64_t, std::uint64_t> fetched() const { return {fetched_, fetch_total_}; }
  void add_to(Beat& beat) const;  // what it says of the stage. REQUIRES: peer()
  // What may be kept over the session's end; none: nothing.
  std::optional<KeptState::Source> source() const;

 private:
  // StagePeerOwner
  void on_session_lost(const std::string& why) override;
  void on_version(Version version) override;
  void on_inner_step() override;
  void on_out_of_memory(const std::string& why) override;
  // Also of a joiner: the stage's newest version, as the list or a commit says, or an older one that is on its way.
  void on_behind(Version version, const Digest& digest) override;
  // DonorHost
  void make_image(std::function<void(Result<StateImage>)> done) override;
  void send(const PeerId& to, Message message, std::vector<Bytes> frames) override;
  // FetcherHost
  void send(const PeerId& to, Message message) override { send(to, std::move(message), {}); }
  DonorWay way_to(const PeerId& donor) override {
    if (!peer_->reaches(donor)) return DonorWay::kNone;
    return env_.transport.needs_relay(donor) ? DonorWay::kRelay : DonorWay::kDirect;
  }
  void on_progress(std::uint64_t bytes, std::uint64_t total) override;
  std::uint64_t received(const PeerId& donor) const override { return env_.transport.stats(donor).received_bytes; }
  std::uint64_t arrived(const PeerId& donor, const Chunk& chunk) const override;
  void on_making() override;
  void run_aside(std::function<void()> job, std::function<void()> done) override {
    env_.process.aside.run(WorkKind::kAside, std::move(job), std::move(done));
  }
  void on_fetched(Bytes image) override;
  void on_waiting(const std::string& why) override;

  void on_chunk(const Remote& remote, const Chunk& chunk, TransferId transfer, std::uint64_t frame_bytes);
  void begin();  // the executor is here
  void begin_base();
  void begin_state();                 // the base is here, or there is none
  void tell(const MemberList& list);  // what serves the stage
  // The base; null: something of this version is not of it.
  BaseWeights* base_of_version(Version version) const { return version == Version(0) ? base_.get() : nullptr; }
  StateFetcher* fetcher_of(Version version) const {
    return base_of_version(version) != nullptr ? &base_->fetcher() : fetcher_.get();
  }
  void load(Bytes image, Version version);  // as which it serves then
  void serve(Version version);
  void fetch_missed();
  void write_checkpoint();  // when one is due

  const StagePlaceEnvironment env_;
  const StageSpec spec_;
  const bool first_is_fetched_;              // the state of version 0, and not drawn
  std::shared_ptr<StageExecutor> executor_;  // shared with device jobs
  std::unique_ptr<StagePeer> peer_;
  std::unique_ptr<BaseWeights> base_;  // null: no adapters
  std::unique_ptr<StateDonor> donor_;
  std::unique_ptr<TextDesk> texts_;
  std::unique_ptr<StateFetcher> fetcher_;
  InboundChunks inbound_;
  std::optional<MissedVersion> missed_;          // while it fetches: a joiner, or a session that is behind
  Version reached_;                              // before it serves: the newest version that was here whole
  RuleId rule_{};                                // whose roles belong to the anchor now
  std::uint64_t fetched_ = 0, fetch_total_ = 0;  // bytes
  TimePoint next_step_beat_{};
  std::string waiting_told_;  // why its state is not here, as it was said last
};

}  // namespace shoal
