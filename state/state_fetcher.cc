#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "common/bulk_bytes.h"
#include "common/crypto/hash.h"
#include "common/lifetime.h"
#include "state/donor_pace.h"
#include "state/state_transfer.h"

namespace shoal {
namespace {

// Chunks, some 40 ms of BLAKE2b for digest and root: parts of rounds wait for no longer job.
constexpr std::size_t kHashedAtOnce = 16;
constexpr int kChunkTimeouts = 12;  // a chunk that takes so many is given up, whatever else its donor sends
constexpr int kMuchLater = 2;
constexpr std::size_t kAskedFirst = 5;       // looks without an offer in which no donor is asked over a relay
constexpr std::size_t kTicksToAskAgain = 3;  // a donor that has our questions for a while keeps the image

std::size_t chunk_size(std::uint64_t bytes, std::uint32_t index) {
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(kHashChunkBytes, bytes - std::uint64_t{index} * kHashChunkBytes));
}

}  // namespace

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
  std::set<PeerId> gave;             // a chunk, since they offered last
  std::map<PeerId, TimePoint> late;  // gave none, or went at once: until then the others come first
  Digest root;
  std::shared_ptr<Assembly> image;  // null: nobody offered it yet
  std::size_t hashed = 0;           // chunks, by the jobs that are over
  bool hashing = false;             // a job is
  std::vector<bool> have;
  std::uint32_t have_count = 0;
  std::uint64_t have_bytes = 0;
  std::uint64_t seen = 0, told = 0;    // bytes here, with parts of chunks: now, and the most that the host heard
  TimePoint whole_at{};                // the last chunk was here whole, or the image was offered
  std::map<std::uint32_t, Ask> asked;  // chunks in flight
  std::uint32_t next = 0;              // below it every chunk is here or in flight
  struct Moved {
    std::uint64_t received = 0;
    TimePoint at{};
  };
  std::map<PeerId, Moved> moved;      // bytes by the links of donors that were asked, and when they changed
  std::map<PeerId, DonorPace> paces;  // of donors
  std::size_t queries = 0;            // rounds of StateQueries since anybody said a word of the version
  TimerId timer = 0;
  std::size_t ticks = 0;
  std::uint64_t generation = 0;  // of the image
  Lifetime lifetime;

  void restart(Version new_version, const Digest& new_digest) {
    active = true;
    version = new_version;
    digest = new_digest;
    refused.clear();
    queries = 0;
    drop_image();
  }

  // A donor can be asked and is not among `these`.
  bool reaches(const PeerId& donor) const { return host.way_to(donor) != DonorWay::kNone; }
  bool has_other_than(const auto& these) const {
    return std::ranges::any_of(donors, [&](const PeerId& one) { return !these.contains(one) && reaches(one); });
  }
  // One that no relay is needed to may have the state: it is asked first.
  bool direct_first() const {
    return queries < kAskedFirst && std::ranges::any_of(donors, [&](const PeerId& one) {
             return host.way_to(one) == DonorWay::kDirect && !late.contains(one) && !refused.contains(one);
           });
  }
  bool passed_over(const PeerId& donor) const {
    return (late.contains(donor) && has_other_than(late)) || (host.way_to(donor) == DonorWay::kRelay && direct_first());
  }

  void drop_image() {
    offering.clear();
    ++generation;
    image.reset();
    hashed = 0;
    hashing = false;
    have.clear();
    have_count = 0;
    have_bytes = seen = told = next = 0;
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
    note_parts();
    lose_silent();
    query_donors();
    if (++ticks % kTicksToAskAgain == 0)
      for (const PeerId& donor : offering) host.send(donor, StateQuery{stage, version});
    ask_chunks();
    if (offering.empty() && ++queries % 5 == 0)
      host.on_waiting(donors.empty() ? "nobody serves the stage that could give its state"
                      : has_other_than(std::set<PeerId>())
                          ? "no member offers version " + std::to_string(version.value) + " yet"
                          : "members have the stage's state, and there is no way to them from here");
  }

  std::uint64_t arrived() const {
    std::uint64_t bytes = have_bytes;
    for (const auto& [index, ask] : asked)
      bytes += std::min<std::uint64_t>(host.arrived(ask.donor, Chunk{stage, version, index, true}),
                                       chunk_size(image->buffer.size(), index));
    return bytes;
  }

  void tell_progress() {
    seen = arrived();
    told = std::max(told, seen);
    host.on_progress(told, image->buffer.size());
  }

  // What a donor that was left had sent of a chunk comes again and is progress again, but not for longer than a chunk
  // may take.
  void note_parts() {
    if (image == nullptr || loop.now() - whole_at >= kChunkTimeouts * options.chunk_timeout) return;
    if (const std::uint64_t here = arrived(); here <= seen) {
      seen = here;
    } else {
      tell_progress();
    }
  }

  void query_donors() {
    for (const PeerId& donor : donors)
      if (!offering.count(donor) && !refused.count(donor) && !passed_over(donor) && reaches(donor))
        host.send(donor, StateQuery{stage, version});
  }

  // A donor is silent while no byte of it comes; one that is slow is asked for fewer.
  void lose_silent() {
    const TimePoint now = loop.now();
    std::map<PeerId, TimePoint> oldest;
    for (const auto& [index, ask] : asked) {
      const auto [at, first] = oldest.emplace(ask.donor, ask.since);
      if (!first) at->second = std::min(at->second, ask.since);
    }
    std::erase_if(moved, [&](const auto& entry) { return !oldest.contains(entry.first); });
    for (const auto& [donor, since] : oldest) {
      Moved& bytes = moved[donor];
      if (const std::uint64_t received = host.received(donor); received != bytes.received) bytes = {received, now};
      const bool silent = now - std::max(since, bytes.at) >= options.chunk_timeout;
      if (silent || now - since >= kChunkTimeouts * options.chunk_timeout) lose(donor);
    }
  }

  void lose(const PeerId& donor) {
    const bool gave_none = gave.erase(donor) == 0;
    if (offering.erase(donor) > 0 && gave_none) late[donor] = loop.now() + options.chunk_timeout;
    forget_asked([&](const PeerId& one) { return one == donor; });
    paces.erase(donor);
  }

  void forget_asked(const std::function<bool(const PeerId&)>& of) {
    std::erase_if(asked, [&](const auto& entry) { return of(entry.second.donor); });
    next = 0;
  }

  std::size_t in_flight(const PeerId& donor) const {
    return static_cast<std::size_t>(
        std::count_if(asked.begin(), asked.end(), [&](const auto& entry) { return entry.second.donor == donor; }));
  }

  // Until what it was asked for and one chunk more are here.
  Duration expected(const PeerId& donor, std::size_t chunks) {
    return paces[donor].time_for((chunks + 1) * std::min<std::uint64_t>(kHashChunkBytes, image->buffer.size()));
  }

  // The donor that has a chunk here first, among those with room in their windows; null: none has.
  const PeerId* best_donor() {
    const PeerId* best = nullptr;
    std::pair<Duration, std::size_t> first;
    for (const PeerId& donor : offering) {
      const std::size_t chunks = in_flight(donor);
      if (chunks >= paces[donor].window()) continue;
      const std::pair<Duration, std::size_t> wait{expected(donor, chunks), chunks};
      if (best != nullptr && wait >= first) continue;
      best = &donor;
      first = wait;
    }
    return best;
  }

  void ask(const PeerId& donor, std::uint32_t index) {
    asked[index] = Ask{donor, loop.now()};
    host.send(donor, ChunkQuery{stage, version, index});
  }

  void ask_chunks() {
    if (offering.empty()) return;
    for (; next < have.size(); ++next) {
      if (have[next] || asked.contains(next)) continue;
      const PeerId* const donor = best_donor();
      if (donor == nullptr) return;
      ask(*donor, next);
    }
    relieve_the_slowest();
  }

  // The last chunks: a donor that has nothing to do takes over what would come much later from another one.
  void relieve_the_slowest() {
    for (const PeerId& idle : offering) {
      const Duration own = expected(idle, 0);
      if (in_flight(idle) > 0 || own == Duration(0)) continue;
      const auto slowest = std::max_element(asked.begin(), asked.end(), [&](const auto& a, const auto& b) {
        return expected(a.second.donor, 0) < expected(b.second.donor, 0);
      });
      if (slowest == asked.end() || expected(slowest->second.donor, 0) <= kMuchLater * own) continue;
      ask(idle, slowest->first);
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
      if (!has_other_than(refused)) refused.clear();
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
  s.forget_asked([&](const PeerId& donor) { return !s.offering.contains(donor); });
  std::erase_if(s.paces, [&](const auto& entry) { return !s.offering.contains(entry.first); });
  s.query_donors();
  s.ask_chunks();
  if (s.timer == 0) s.arm();
}

void StateFetcher::on_offer(const PeerId& from, const StateOffer& offer) {
  State& s = *state_;
  if (!s.active || offer.stage != s.stage || offer.version != s.version) return;
  if (std::find(s.donors.begin(), s.donors.end(), from) == s.donors.end() || s.refused.count(from)) return;
  if (!offer.has) {
    s.queries = 0;  // it is on its way
    return s.host.on_making();
  }
  if (offer.digest != s.digest || s.passed_over(from) || !s.options.allows(offer.bytes)) return;
  if (offer.bytes > s.options.bytes_max) {
    if (!std::exchange(s.too_large_told, true))
      s.host.on_waiting("the stage's state has " + std::to_string(offer.bytes) + " bytes, and at most " +
                        std::to_string(s.options.bytes_max) +
                        " are fetched: this peer cannot join the stage. HINT: a run of more [pipeline] stages has "
                        "smaller ones");
    return;
  }
  if (offer.bytes < kStateHeaderBytes || offer.chunks != (offer.bytes + kHashChunkBytes - 1) / kHashChunkBytes) return;
  // Nobody offers that root any more. An image that is here whole is judged by its hashes.
  if (s.offering.empty() && offer.root != s.root && s.have_count < s.have.size()) s.drop_image();
  if (s.image == nullptr) {
    s.root = offer.root;
    s.image = std::make_shared<State::Assembly>(offer.bytes);
    s.have.assign(offer.chunks, false);
    s.whole_at = s.loop.now();
    s.host.on_progress(0, offer.bytes);
    if (!s.active || s.image == nullptr) return;
  } else if (offer.root != s.root || offer.bytes != s.image->buffer.size()) {
    return;
  }
  s.offering.insert(from);
  s.queries = 0;
  s.ask_chunks();
}

void StateFetcher::on_chunk(const PeerId& from, const Chunk& chunk, Bytes frame) {
  State& s = *state_;
  if (!s.active || chunk.stage != s.stage || chunk.version != s.version) return;
  const auto ask = s.asked.find(chunk.index);
  if (ask == s.asked.end() || ask->second.donor != from) return;
  const TimePoint since = ask->second.since;
  s.asked.erase(ask);
  const std::uint64_t total = s.image->buffer.size();
  if (!chunk.has || frame.size() != chunk_size(total, chunk.index)) {
    s.lose(from);
    return s.ask_chunks();
  }
  s.paces[from].came(frame.size(), since, s.loop.now());
  std::memcpy(s.image->buffer.data() + std::size_t{chunk.index} * kHashChunkBytes, frame.data(), frame.size());
  note_bulk(frame.size());
  s.have[chunk.index] = true;
  s.gave.insert(from);
  ++s.have_count;
  s.have_bytes += frame.size();
  s.whole_at = s.loop.now();
  s.tell_progress();
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
  return state_->active ? std::optional(state_->version) : std::nullopt;
}

}  // namespace shoal
