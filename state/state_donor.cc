#include <algorithm>
#include <deque>
#include <map>

#include "common/crypto/hash.h"
#include "common/lifetime.h"
#include "state/state_transfer.h"
#include "transport/limits.h"

namespace shoal {

Result<StateImage> hash_state_image(const Bytes& bytes) {
  ImageHasher hasher(bytes);
  while (!hasher.done()) hasher.next();
  SHOAL_ASSIGN(const ImageHasher::Hashes hashes, hasher.finish());
  StateImage image{hashes.header.stage, hashes.header.version, hashes.digest, hashes.root, bytes.size(), {}};
  for (std::size_t at = 0; at < bytes.size(); at += kHashChunkBytes)
    image.chunks.push_back(bytes.slice(at, std::min(kHashChunkBytes, bytes.size() - at)).summed());
  return image;
}

struct StateDonor::State {
  State(DonorOptions options, DonorHost& host, EventLoop& loop, StageId stage)
      : options(options), host(host), loop(loop), stage(stage) {}
  ~State() {
    for (const TimerId one : {timer, idle_timer})
      if (one != 0) loop.cancel(one);
  }

  const DonorOptions options;
  DonorHost& host;
  EventLoop& loop;
  const StageId stage;
  struct Kept {
    StateImage image;
    std::map<PeerId, TimePoint> fetchers;  // when they asked for it last
  };
  std::optional<Kept> newest, older;
  bool making = false;
  std::vector<PeerId> askers;  // wait for the image that is being made
  std::deque<std::pair<PeerId, ChunkQuery>> queue;
  TimePoint next_send{};
  TimerId timer = 0, idle_timer = 0;
  Lifetime lifetime;

  Kept* kept(Version version) {
    for (std::optional<Kept>* one : {&newest, &older})
      if (*one && (*one)->image.version == version) return &**one;
    return nullptr;
  }

  // It fetches this image now and the other one no more.
  void note_fetcher(Kept& image, const PeerId& fetcher) {
    for (std::optional<Kept>* one : {&newest, &older})
      if (*one && &**one != &image) (*one)->fetchers.erase(fetcher);
    if (image.fetchers.size() < limits::kReplicasMax || image.fetchers.contains(fetcher))
      image.fetchers.insert_or_assign(fetcher, loop.now());
  }

  void offer(const PeerId& to, const Kept* kept) {
    StateOffer message;
    message.stage = stage;
    message.version = host.version();
    if (kept != nullptr) {
      message.version = kept->image.version;
      message.has = true;
      message.root = kept->image.root;
      message.digest = kept->image.digest;
      message.bytes = kept->image.bytes;
      message.chunks = static_cast<std::uint32_t>(kept->image.chunks.size());
    }
    host.send(to, std::move(message), {});
  }

  void make() {
    making = true;
    host.make_image(lifetime.guard([this](Result<StateImage> made) {
      making = false;
      retire();
      if (made.ok()) newest = Kept{std::move(*made), {}};
      for (const PeerId& asker : std::exchange(askers, {})) {
        if (newest) note_fetcher(*newest, asker);
        offer(asker, newest ? &*newest : nullptr);
      }
    }));
  }

  bool fetched(const Kept& kept) const {
    return !kept.fetchers.empty() && loop.now() - last_asked(kept) < options.idle;
  }
  static TimePoint last_asked(const Kept& kept) {
    TimePoint last{};
    for (const auto& [fetcher, asked] : kept.fetchers) last = std::max(last, asked);
    return last;
  }

  // The newest image is so no more: it stays while it is fetched, unless another one does.
  void retire() {
    if (older && !fetched(*older)) older.reset();
    if (!older && newest && fetched(*newest)) older = std::move(newest);
    newest.reset();
    if (older && idle_timer == 0) idle_timer = loop.at(last_asked(*older) + options.idle, [this] { look(); });
  }

  void look() {
    idle_timer = 0;
    if (older && !fetched(*older)) older.reset();
    if (older) idle_timer = loop.at(last_asked(*older) + options.idle, [this] { look(); });
  }

  void serve() {
    while (!queue.empty() && timer == 0) {
      if (options.bytes_per_second > 0 && loop.now() < next_send) {
        timer = loop.at(next_send, [this] {
          timer = 0;
          serve();
        });
        return;
      }
      const auto [to, query] = queue.front();
      queue.pop_front();
      answer(to, query);
    }
  }

  void answer(const PeerId& to, const ChunkQuery& query) {
    Chunk chunk{stage, query.version, query.index, false};
    std::vector<Bytes> frames;
    Kept* const from = kept(query.version);
    if (from != nullptr && query.index < from->image.chunks.size()) {
      frames.push_back(from->image.chunks[query.index]);
      note_fetcher(*from, to);
      chunk.has = true;
      if (options.bytes_per_second > 0)
        next_send = std::max(next_send, loop.now()) +
                    from_seconds(static_cast<double>(frames.back().size()) / options.bytes_per_second);
    }
    host.send(to, chunk, std::move(frames));
  }
};

StateDonor::StateDonor(DonorOptions options, DonorHost& host, EventLoop& loop, StageId stage)
    : state_(std::make_unique<State>(options, host, loop, stage)) {}
StateDonor::~StateDonor() = default;

void StateDonor::on_query(const PeerId& from, const StateQuery& query) {
  State& s = *state_;
  if (query.stage != s.stage) return;
  // Another anchor than asked for is of no use to the asker: it asks again when we may have it.
  State::Kept* const kept = s.kept(query.version);
  if (kept != nullptr) s.note_fetcher(*kept, from);
  if (kept != nullptr || s.host.version() != query.version) return s.offer(from, kept);
  if (std::find(s.askers.begin(), s.askers.end(), from) != s.askers.end()) return s.offer(from, nullptr);
  s.askers.push_back(from);
  if (!s.making) s.make();
}

void StateDonor::on_chunk_query(const PeerId& from, const ChunkQuery& query) {
  State& s = *state_;
  if (query.stage != s.stage || s.queue.size() >= s.options.queued_max) return;
  s.queue.emplace_back(from, query);
  s.serve();
}

void StateDonor::moved_on() { state_->retire(); }

}  // namespace shoal
