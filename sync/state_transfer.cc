#include "sync/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "common/bulk_bytes.h"
#include "common/hash.h"
#include "common/lifetime.h"

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

namespace {

// Chunks, some 40 ms of BLAKE2b for digest and root: parts of rounds wait for no longer job.
constexpr std::size_t kHashedAtOnce = 16;

std::size_t chunk_size(std::uint64_t bytes, std::uint32_t index) {
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(kHashChunkBytes, bytes - std::uint64_t{index} * kHashChunkBytes));
}

}  // namespace

// ---- donor ----
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
    TimePoint asked{};  // for a chunk of it
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
      if (made.ok()) newest = Kept{std::move(*made), loop.now()};
      for (const PeerId& asker : std::exchange(askers, {})) offer(asker, newest ? &*newest : nullptr);
    }));
  }

  bool fetched(const Kept& kept) const { return loop.now() - kept.asked < options.idle; }

  // The newest image is so no more: it stays while it is fetched, unless another one does.
  void retire() {
    if (older && !fetched(*older)) older.reset();
    if (!older && newest && fetched(*newest)) older = std::move(newest);
    newest.reset();
    if (older && idle_timer == 0) idle_timer = loop.at(older->asked + options.idle, [this] { look(); });
  }

  void look() {
    idle_timer = 0;
    if (older && !fetched(*older)) older.reset();
    if (older) idle_timer = loop.at(older->asked + options.idle, [this] { look(); });
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
      from->asked = loop.now();
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

// ---- fetcher ----
struct StateFetcher::State {
  State(FetcherOptions options, FetcherHost& host, EventLoop& loop, StageId stage)
      : options(options), host(host), loop(loop), stage(stage) {}
  ~State() {
    if (timer != 0) loop.cancel(timer);
  }

  struct Ask {
    PeerId donor;
    TimePoint since;
  };
  // Shared with the job that hashes it: the loop writes chunks that no job has come to, and none again.
  struct Assembly {
    explicit Assembly(std::uint64_t bytes) : buffer(Buffer::on_demand(bytes)), hasher(buffer.view()) {}
    Buffer buffer;
    ImageHasher hasher;  // over the buffer
  };

  const FetcherOptions options;
  FetcherHost& host;
  EventLoop& loop;
  const StageId stage;

  bool active = false, too_large_told = false;
  Version version;
  Digest digest;
  std::vector<PeerId> donors;
  std::set<PeerId> offering;         // have the image with `root`
  std::set<PeerId> refused;          // offered an image that turned out wrong
  std::map<PeerId, TimePoint> late;  // gave no chunk, or went: until then the others come first
  Digest root;
  std::shared_ptr<Assembly> image;  // null: nobody offered it yet
  std::size_t hashed = 0;           // chunks, by the jobs that are over
  bool hashing = false;             // a job is
  std::vector<bool> have;
  std::uint32_t have_count = 0;
  std::map<std::uint32_t, Ask> asked;  // chunks in flight
  std::size_t turn = 0;                // donors take turns
  std::size_t queries = 0;             // rounds of StateQueries without an offer
  TimerId timer = 0;
  std::uint64_t generation = 0;  // of the image
  Lifetime lifetime;

  void restart(Version new_version, const Digest& new_digest) {
    active = true;
    version = new_version;
    digest = new_digest;
    refused.clear();
    drop_image();
  }

  bool passed_over(const PeerId& donor) const { return late.contains(donor) && late.size() < donors.size(); }

  void drop_image() {
    offering.clear();
    ++generation;
    image.reset();
    hashed = 0;
    hashing = false;
    have.clear();
    have_count = 0;
    asked.clear();
  }

  void arm() {
    if (timer != 0) loop.cancel(timer);
    timer = loop.after(std::min(options.query_period, options.chunk_timeout), [this] {
      timer = 0;
      on_timer();
    });
  }

  void on_timer() {
    if (!active) return;
    arm();
    std::erase_if(late, [&](const auto& entry) { return loop.now() >= entry.second; });
    std::vector<PeerId> slow;
    for (const auto& [index, ask] : asked)
      if (loop.now() - ask.since >= options.chunk_timeout) slow.push_back(ask.donor);
    for (const PeerId& donor : slow) lose(donor);
    query_donors();
    ask_chunks();
    if (offering.empty() && ++queries % 5 == 0)
      host.on_waiting(donors.empty() ? "nobody serves the stage that could give its state"
                                     : "no member offers version " + std::to_string(version.value) + " yet");
  }

  void query_donors() {
    for (const PeerId& donor : donors)
      if (!offering.count(donor) && !refused.count(donor) && !passed_over(donor))
        host.send(donor, StateQuery{stage, version});
  }

  void lose(const PeerId& donor) {
    if (offering.erase(donor) > 0) late[donor] = loop.now() + options.chunk_timeout;
    std::erase_if(asked, [&](const auto& entry) { return entry.second.donor == donor; });
  }

  void ask_chunks() {
    if (offering.empty()) return;
    for (std::uint32_t i = 0; i < have.size() && asked.size() < options.window; ++i) {
      if (have[i] || asked.count(i)) continue;
      auto donor = offering.begin();
      std::advance(donor, static_cast<std::ptrdiff_t>(turn++ % offering.size()));
      asked[i] = Ask{*donor, loop.now()};
      host.send(*donor, ChunkQuery{stage, version, i});
    }
  }

  // What is here and follows what is hashed, one job at a time.
  void hash_more() {
    if (hashing) return;
    std::size_t end = hashed;
    while (end < have.size() && have[end] && end - hashed < kHashedAtOnce) ++end;
    if (end == hashed) return;
    hashing = true;
    auto job = [image = image, count = end - hashed] {
      for (std::size_t i = 0; i < count; ++i) image->hasher.next();
    };
    auto done = lifetime.guard([this, mine = generation, end] {
      if (mine != generation) return;
      hashing = false;
      hashed = end;
      hashed == have.size() ? finish() : hash_more();
    });
    if (have.size() > 1) return host.run_aside(std::move(job), std::move(done));
    job();
    done();
  }

  void finish() {
    const auto hashes = image->hasher.finish();
    const bool good = hashes.ok() && hashes->header.stage == stage && hashes->header.version == version &&
                      hashes->root == root && hashes->digest == digest;
    if (!good) {
      // Some donor lied or is broken, and without the leaves' digests we cannot say which.
      refused = offering;
      drop_image();
      if (refused.size() >= donors.size()) refused.clear();
      return host.on_waiting("the state that was fetched does not have the committed digest; fetching again");
    }
    active = false;
    Bytes bytes = std::move(image->buffer).freeze();
    drop_image();
    host.on_fetched(std::move(bytes));
  }
};

StateFetcher::StateFetcher(FetcherOptions options, FetcherHost& host, EventLoop& loop, StageId stage)
    : state_(std::make_unique<State>(options, host, loop, stage)) {}
StateFetcher::~StateFetcher() = default;

void StateFetcher::fetch(Version version, const Digest& digest, std::vector<PeerId> donors) {
  State& s = *state_;
  if (s.active && version < s.version) return;
  if (!s.active || version != s.version || digest != s.digest) s.restart(version, digest);
  s.donors = std::move(donors);
  std::erase_if(s.offering, [&](const PeerId& peer) {
    return std::find(s.donors.begin(), s.donors.end(), peer) == s.donors.end();
  });
  std::erase_if(s.asked, [&](const auto& entry) { return !s.offering.count(entry.second.donor); });
  s.query_donors();
  s.ask_chunks();
  if (s.timer == 0) s.arm();
}

void StateFetcher::on_offer(const PeerId& from, const StateOffer& offer) {
  State& s = *state_;
  if (!s.active || offer.stage != s.stage || offer.version != s.version) return;
  if (std::find(s.donors.begin(), s.donors.end(), from) == s.donors.end() || s.refused.count(from)) return;
  if (!offer.has) return s.host.on_making();
  if (offer.digest != s.digest || s.passed_over(from)) return;
  const std::vector<std::uint64_t>& sizes = s.options.sizes;
  if (!sizes.empty() && std::find(sizes.begin(), sizes.end(), offer.bytes) == sizes.end()) return;
  if (s.offering.empty() && offer.root != s.root) s.drop_image();  // of a root that nobody offers any more
  if (offer.bytes > s.options.bytes_max) {
    if (!std::exchange(s.too_large_told, true))
      s.host.on_waiting("the stage's state has " + std::to_string(offer.bytes) + " bytes: more than is fetched");
    return;
  }
  if (offer.bytes < kStateHeaderBytes || offer.chunks != (offer.bytes + kHashChunkBytes - 1) / kHashChunkBytes) return;
  if (s.image == nullptr) {
    s.root = offer.root;
    s.image = std::make_shared<State::Assembly>(offer.bytes);
    s.have.assign(offer.chunks, false);
  } else if (offer.root != s.root || offer.bytes != s.image->buffer.size()) {
    return;
  }
  s.offering.insert(from);
  s.ask_chunks();
}

void StateFetcher::on_chunk(const PeerId& from, const Chunk& chunk, Bytes frame) {
  State& s = *state_;
  if (!s.active || chunk.stage != s.stage || chunk.version != s.version) return;
  const auto ask = s.asked.find(chunk.index);
  if (ask == s.asked.end() || ask->second.donor != from) return;
  s.asked.erase(ask);
  const std::uint64_t total = s.image->buffer.size();
  if (!chunk.has || frame.size() != chunk_size(total, chunk.index)) {
    s.lose(from);
    return s.ask_chunks();
  }
  std::memcpy(s.image->buffer.data() + std::size_t{chunk.index} * kHashChunkBytes, frame.data(), frame.size());
  note_bulk(frame.size());
  s.have[chunk.index] = true;
  ++s.have_count;
  s.host.on_progress(std::min<std::uint64_t>(std::uint64_t{s.have_count} * kHashChunkBytes, total), total);
  if (!s.active || chunk.version != s.version) return;
  s.ask_chunks();
  s.hash_more();
}

void StateFetcher::on_donor_down(const PeerId& donor) {
  state_->lose(donor);
  state_->ask_chunks();
}

bool StateFetcher::asked(const PeerId& donor, const Chunk& chunk) const {
  const State& s = *state_;
  if (!s.active || chunk.stage != s.stage || chunk.version != s.version) return false;
  const auto ask = s.asked.find(chunk.index);
  return ask != s.asked.end() && ask->second.donor == donor;
}

void StateFetcher::cancel() {
  state_->active = false;
  state_->drop_image();
}

bool StateFetcher::active() const { return state_->active; }

std::optional<Version> StateFetcher::target() const {
  if (!state_->active) return std::nullopt;
  return state_->version;
}

}  // namespace shoal
