#include "state/first_weights.h"

#include <algorithm>
#include <memory>

#include "common/log.h"

namespace shoal {

Result<FirstStates> measure_first_states(std::vector<StageSpec> specs, std::shared_ptr<const WeightSource> source,
                                         const std::function<void(std::uint64_t done, std::uint64_t of)>& measured) {
  FirstStates first{.source = std::move(source), .parts = {}};
  for (const StageSpec& spec : specs) {
    SHOAL_ASSIGN(const FirstState state, measure_first_state(spec, *first.source));
    first.parts.push_back({spec, state});
    measured(first.parts.size(), specs.size());
  }
  return first;
}

const FirstStates::Part* FirstWeights::part(StageId stage, Version version) const {
  const auto found = std::ranges::find(env_.first.parts, stage, [](const auto& part) { return part.spec.stage; });
  return version == Version(0) && found != env_.first.parts.end() ? &*found : nullptr;
}

void FirstWeights::on_query(const PeerId& from, const StateQuery& query) {
  const FirstStates::Part* here = part(query.stage, query.version);
  if (here == nullptr) return;
  const FirstState& state = here->state;
  StateOffer offer;
  offer.stage = query.stage;
  offer.version = Version(0);
  offer.has = true;
  offer.root = state.root;
  offer.digest = state.digest;
  offer.bytes = state.bytes;
  offer.chunks = state.chunks;
  env_.send(from, std::move(offer), {});
}

void FirstWeights::on_chunk_query(const PeerId& from, const ChunkQuery& query) {
  const FirstStates::Part* here = part(query.stage, query.version);
  if (here == nullptr || query.index >= here->state.chunks) return;
  const auto of_peer = std::ranges::count_if(queue_, [&](const auto& item) { return item.first == from; });
  if (queue_.size() >= kQueuedMax || static_cast<std::size_t>(of_peer) >= kQueuedOfPeer) return;
  queue_.emplace_back(from, query);
  read_next();
}

void FirstWeights::read_next() {
  if (reading_ || queue_.empty()) return;
  reading_ = true;
  const auto [to, query] = queue_.front();
  queue_.pop_front();
  auto made = std::make_shared<Result<Bytes>>(Bytes{});
  env_.run_aside([made, query = query, spec = part(query.stage, query.version)->spec,
                  source = env_.first.source] { *made = first_chunk(spec, *source, query.index); },
                 lifetime_.guard([this, made, to = to, query = query] {
                   reading_ = false;
                   if (!made->ok() && !std::exchange(failure_told_, true))
                     log_warning("the first weights cannot be read, and peers that ask for them wait: ",
                                 made->error().message);
                   Chunk chunk{query.stage, query.version, query.index, made->ok()};
                   env_.send(to, chunk, made->ok() ? std::vector<Bytes>{(*made)->summed()} : std::vector<Bytes>{});
                   read_next();
                 }));
}

}  // namespace shoal
