#pragma once
// The base that a stage's adapters stand beside, at this peer: taken from this machine's disk, where an earlier session
// kept it, or fetched; put into the executor, kept by its digest, and given to others. As a state it is the first one
// (state/first_state.h) of base_of(spec). It goes as version 0, which a stage with adapters never has as a state: they
// begin from the seed.
//
// Thread: loop only; the executor is touched inside device jobs, the files in jobs aside. Borrows everything in its
// environment, which outlives it. Bounds: FirstWeights', StateFetcher's and BaseFolder's.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/work_queue.h"
#include "runtime/config/base_folder.h"
#include "state/first_weights.h"
#include "state/state_transfer.h"

namespace shoal {

class BaseWeights {
 public:
  struct Options {
    StageSpec spec;
    Digest digest;      // of the base, as the manifest names it
    BaseFolder folder;  // where it is kept; where that is nowhere, nobody gets it from here
  };
  struct Environment {
    EventLoop& loop;
    WorkQueue& device;
    Lifetime& session;
    std::shared_ptr<StageExecutor> executor;
    FetcherHost& host;  // of its fetch; gives what came to on_fetched(), and hears why it is not here yet
    std::function<void(const PeerId& to, Message message, std::vector<Bytes> frames)> send;
    std::function<void(const std::string& line)> on_notice;
    std::function<void()> on_loaded;
    std::function<void(const std::string& why)> on_failed;
  };
  BaseWeights(Options options, Environment environment);

  void begin();
  bool loaded() const { return loaded_; }
  // The peers that may have it, by the newest list. They change nothing once the base is here.
  void set_donors(std::vector<PeerId> donors);
  void on_fetched(Bytes image);

  // ---- from the transport: of version 0 ----
  StateFetcher& fetcher() { return *fetcher_; }
  void on_query(const PeerId& from, const StateQuery& query);
  void on_chunk_query(const PeerId& from, const ChunkQuery& query);

 private:
  using Fill = std::function<Status(std::span<float> into)>;
  void fetch();
  void load(Fill fill);
  void keep(Bytes image);
  // What the disk holds, once it is measured and is that base.
  struct Kept {
    std::shared_ptr<const WeightSource> source;
    Result<FirstState> state{FirstState{}};
  };
  void give(const Kept& kept);

  const Options options_;
  const Environment env_;
  const std::function<void(std::function<void()> job, std::function<void()> done)> aside_;
  std::unique_ptr<StateFetcher> fetcher_;
  std::vector<PeerId> donors_;
  bool fetching_ = false, loaded_ = false;
  FirstStates kept_;
  std::unique_ptr<FirstWeights> given_;  // null: nothing is kept
};

}  // namespace shoal
