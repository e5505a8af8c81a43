// What donors and askers of a stage's state say to each other, in any order: the bytes are a script.
#include "state/state_transfer.h"

#include "common/byte_codec.h"
#include "common/crypto/hash.h"
#include "sim/sim_loop.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

enum Act : std::uint8_t { kFetch, kOffer, kForgedOffer, kChunk, kForgedChunk, kDown, kWait, kQuery, kCancel, kActs };
constexpr std::size_t kImages = 3;  // of one chunk, of two, and another of two
constexpr std::uint64_t kForgedBytesMax = 4u << 20;

PeerId donor_of(std::uint8_t number) {
  PeerId peer;
  peer.bytes[0] = static_cast<std::uint8_t>(1 + number % 3);
  return peer;
}

Bytes image_of(std::size_t number) {
  const std::uint64_t floats = number == 0 ? 3 : kHashChunkBytes / 8 + number;
  Buffer buffer(kStateHeaderBytes + 2 * floats * sizeof(float));
  std::memcpy(buffer.data(), "shoalst1", 8);
  buffer.data()[8] = 1;
  buffer.data()[9] = 1;
  put_le(buffer.data() + 16, std::uint64_t{7 + number / 2});
  put_le(buffer.data() + 32, floats);
  buffer.data()[buffer.size() - 1] = static_cast<std::uint8_t>(number);
  return std::move(buffer).freeze();
}

const StateImage& image(std::size_t number) {
  static const std::array<StateImage, kImages> all{*hash_state_image(image_of(0)), *hash_state_image(image_of(1)),
                                                   *hash_state_image(image_of(2))};
  return all[number % kImages];
}

class World final : private FetcherHost, private DonorHost {
 public:
  explicit World(ByteView script)
      : script_(script),
        fetcher_({.bytes_max = kForgedBytesMax}, *this, loop_, StageId(0)),
        donor_({.queued_max = 8}, *this, loop_, StageId(0)) {}

  bool run() {
    for (std::size_t turns = 0; !script_.bad() && !script_.whole() && turns < 200; ++turns) act();
    loop_.run_for(30s);
    return fetched_;
  }

 private:
  void act() {
    const auto act = static_cast<Act>(script_.get<std::uint8_t>() % kActs);
    const auto number = script_.get<std::uint8_t>();
    const PeerId from = donor_of(number);
    const StateImage& named = image(number / 4);
    if (act == kFetch) {
      fetcher_.fetch(named.version, named.digest, {donor_of(0), donor_of(1), donor_of(2)});
      if (fetcher_.target() == named.version) wanted_ = named.digest;  // an older one is not gone back to
    } else if (act == kOffer) {
      fetcher_.on_offer(from, {StageId(0), named.version, true, named.root, named.bytes,
                               static_cast<std::uint32_t>(named.chunks.size()), named.digest});
    } else if (act == kForgedOffer) {
      fetcher_.on_offer(from, forged_offer(named));
    } else if (act == kChunk) {
      const auto index = static_cast<std::uint32_t>(script_.get<std::uint8_t>() % named.chunks.size());
      fetcher_.on_chunk(from, {StageId(0), named.version, index, true}, named.chunks[index]);
    } else if (act == kForgedChunk) {
      forged_chunk(from, named);
    } else if (act == kDown) {
      fetcher_.on_donor_down(from);
    } else if (act == kWait) {
      loop_.run_for(100ms * number);
    } else if (act == kQuery) {
      donor_.on_query(from, {StageId(0), Version(script_.get<std::uint8_t>())});
      donor_.on_chunk_query(from, {StageId(0), Version(script_.get<std::uint8_t>()), script_.get<std::uint32_t>()});
    } else {
      fetcher_.cancel();
    }
  }

  StateOffer forged_offer(const StateImage& named) {
    StateOffer offer{StageId(script_.get<std::uint8_t>() % 2u),
                     named.version,
                     script_.get<std::uint8_t>() % 2 == 0,
                     named.root,
                     named.bytes,
                     0,
                     named.digest};
    if (script_.get<std::uint8_t>() % 2 == 0) offer.root.bytes[0] = script_.get<std::uint8_t>();
    if (script_.get<std::uint8_t>() % 2 == 0) offer.bytes = script_.get<std::uint64_t>();
    offer.chunks = static_cast<std::uint32_t>((offer.bytes + kHashChunkBytes - 1) / kHashChunkBytes);
    if (script_.get<std::uint8_t>() % 2 == 0) offer.chunks = script_.get<std::uint32_t>();
    return offer;
  }

  void forged_chunk(const PeerId& from, const StateImage& named) {
    const Chunk chunk{StageId(0), named.version, script_.get<std::uint32_t>(), script_.get<std::uint8_t>() % 2 == 0};
    std::vector<std::uint8_t> bytes(script_.get<std::uint16_t>(), script_.get<std::uint8_t>());
    if (script_.get<std::uint8_t>() % 2 == 0) bytes.resize(kHashChunkBytes);
    (void)fetcher_.asked(from, chunk);
    fetcher_.on_chunk(from, chunk, Bytes::from_vector(std::move(bytes)));
  }

  // FetcherHost
  void send(const PeerId&, Message) override {}
  std::uint64_t received(const PeerId&) const override { return 0; }
  void on_progress(std::uint64_t bytes, std::uint64_t total) override { SHOAL_CHECK_LE(bytes, total); }
  void run_aside(std::function<void()> job, std::function<void()> done) override {
    loop_.after(1ms, [job = std::move(job), done = std::move(done)] {
      job();
      done();
    });
  }
  // Whatever donors said: what comes out is what was asked for.
  void on_fetched(Bytes bytes) override {
    SHOAL_CHECK(digest_of_image(bytes) == wanted_);
    fetched_ = true;
  }
  void on_waiting(const std::string&) override {}
  // DonorHost
  void make_image(std::function<void(Result<StateImage>)> done) override {
    loop_.after(1ms, [done = std::move(done)] { done(image(0)); });
  }
  Version version() const override { return image(0).version; }
  void send(const PeerId&, Message, std::vector<Bytes>) override {}

  SimLoop loop_;
  ByteReader script_;
  StateFetcher fetcher_;
  StateDonor donor_;
  Digest wanted_;
  bool fetched_ = false;
};

bool take(ByteView bytes) { return World(bytes).run(); }

std::vector<Bytes> seeds() {
  const std::vector<std::uint8_t> simple{kFetch, 0, kOffer, 0, kChunk, 0, 0, kWait, 1};
  // Two chunks; a lie, a donor that goes, another one that goes on.
  const std::vector<std::uint8_t> harder{kQuery, 0, 7,      7, 0, 0,      0, 0,     kFetch, 4,      kOffer, 4,
                                         kOffer, 5, kChunk, 4, 0, kDown,  4, kWait, 60,     kOffer, 6,      kChunk,
                                         4,      0, kChunk, 4, 1, kChunk, 5, 0,     kChunk, 5,      1,      kChunk,
                                         6,      0, kChunk, 6, 1, kWait,  1};
  return {Bytes::from_vector(simple), Bytes::from_vector(harder)};
}

}  // namespace

const Target state_transfer{"state_transfer", take, seeds};

}  // namespace shoal::fuzz
