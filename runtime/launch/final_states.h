#pragma once
// The states of all stages, fetched one after the other at the end of a run from the peers that hold them.
//
// Thread: loop only.   Borrows: all that Environment refers to.   Bounds: one stage's fetch at a time
// (state/state_transfer.h); every stage's image is kept until the last one is here.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "authority/authority.h"
#include "common/lifetime.h"
#include "runtime/launch/launch_port.h"
#include "state/state_transfer.h"
#include "transport/links.h"

namespace shoal {

class FinalStates final : private FetcherHost {
 public:
  struct Environment {
    EventLoop& loop;
    Links& links;
    const Authority& authority;  // its rounds are over: the newest list says what each stage's state is
    const RunConfig& config;
    LaunchOwner& owner;
    const std::function<void(std::function<void()> job, std::function<void()> done)>& run_aside;
  };
  struct Fetched {
    std::map<std::uint16_t, Bytes> images;
    std::optional<Error> unsaved;  // kMissing: a stage never secured a round, so there is nothing to save
  };
  // `done`: in a turn of its own, once.
  FinalStates(Environment environment, std::function<void(Fetched)> done);

  void start() { fetch_next(); }
  StageId fetching() const { return StageId(next_); }
  bool has(StageId stage) const { return stage.value < next_; }

  void on_members();  // the list changed: other donors
  void on_offer(const PeerId& from, const StateOffer& offer);
  // False: nobody wants its frames. `frames`: transfer 0 when it has none.
  bool on_chunk(const Chunk& chunk, const InboundFrames& frames, std::uint64_t frame_bytes);
  void on_frames(const InboundFrames& of, Result<std::vector<Bytes>> frames);
  void on_link_down(const PeerId& peer);

 private:
  // FetcherHost
  void send(const PeerId& to, Message message) override;
  std::uint64_t received(const PeerId& donor) const override { return env_.links.stats(donor).received_bytes; }
  void on_progress(std::uint64_t bytes, std::uint64_t total) override;
  void run_aside(std::function<void()> job, std::function<void()> done) override;
  void on_fetched(Bytes image) override;
  void on_waiting(const std::string& why) override;

  void fetch_next();
  void fetch_next_later(Duration after);
  void ask_donors();

  Environment env_;
  std::function<void(Fetched)> done_;
  std::uint16_t next_ = 0;
  std::unique_ptr<StateFetcher> fetcher_;
  std::map<InboundFrames, Chunk> chunks_;  // their frames are on the way
  Fetched fetched_;
  std::string waiting_told_;  // why, as it was said last
  Lifetime lifetime_;
};

}  // namespace shoal
