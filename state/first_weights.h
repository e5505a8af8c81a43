#pragma once
// Gives away first states (state/first_state.h), chunk by chunk from their source and never from memory: the launching
// process those of all stages, until rounds made newer versions; a peer whose stage trains adapters the base that it
// keeps on its disk, at any time.
// Thread: loop only; the source is read in jobs aside, one at a time.   Borrows: what its environment refers to.
//   Bounds: kQueuedMax chunk queries wait, kQueuedOfPeer of one peer; what is
// beyond is asked again.
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/lifetime.h"
#include "state/first_state.h"
#include "transport/messages.h"

namespace shoal {

// States of a source as they were measured.
struct FirstStates {
  struct Part {
    StageSpec spec;
    FirstState state;
  };
  std::shared_ptr<const WeightSource> source;
  std::vector<Part> parts;
};
// ERRORS: the source's.
Result<FirstStates> measure_first_states(std::vector<StageSpec> specs, std::shared_ptr<const WeightSource> source,
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
  // Null: it is not here.
  const FirstStates::Part* part(StageId stage, Version version) const;
  void read_next();

  const Environment env_;
  std::deque<std::pair<PeerId, ChunkQuery>> queue_;
  bool reading_ = false;
  bool failure_told_ = false;
  Lifetime lifetime_;
};

}  // namespace shoal
