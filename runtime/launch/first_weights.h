#pragma once
// Gives away the first state of each stage of a run that begins from a model that exists (state/first_state.h), chunk
// by chunk from its source: the launching process stands there as one more donor until rounds made newer versions.
// Thread: loop only; the source is read in jobs aside, one at a time.   Borrows: what its environment refers to; the
// source outlives the thread that reads it.   Bounds: kQueuedMax chunk queries wait, kQueuedOfPeer of one peer; what is
// beyond is asked again.
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "common/lifetime.h"
#include "state/first_state.h"
#include "transport/messages.h"

namespace shoal {

// What a run begins from, if not from its seed: the source, and the state of each stage as it was measured.
struct FirstStates {
  const WeightSource* source = nullptr;
  std::vector<StageSpec> specs;
  std::vector<FirstState> states;
};
// ERRORS: the source's.
Result<FirstStates> measure_first_states(std::vector<StageSpec> specs, const WeightSource& source,
                                         const std::function<void(std::uint64_t done, std::uint64_t of)>& measured);

class FirstWeights {
 public:
  static constexpr std::size_t kQueuedMax = 1024, kQueuedOfPeer = 4;  // as many as a fetcher has in flight
  struct Environment {
    const FirstStates& first;
    const std::function<void(std::function<void()> job, std::function<void()> done)>& run_aside;
    std::function<void(const PeerId& to, Message message, std::vector<Bytes> frames)> send;
  };
  explicit FirstWeights(Environment environment) : env_(std::move(environment)) {}

  void on_query(const PeerId& from, const StateQuery& query);
  void on_chunk_query(const PeerId& from, const ChunkQuery& query);

 private:
  bool has(StageId stage, Version version) const;
  void read_next();

  const Environment env_;
  std::deque<std::pair<PeerId, ChunkQuery>> queue_;
  bool reading_ = false;
  bool failure_told_ = false;
  Lifetime lifetime_;
};

}  // namespace shoal
