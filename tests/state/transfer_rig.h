#pragma once
// A fetcher and its donors in virtual time, 10 ms apart.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "common/bulk_bytes.h"
#include "common/crypto/hash.h"
#include "common/rng.h"
#include "sim/sim_loop.h"
#include "state/state_image.h"
#include "state/state_transfer.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal {

using test::peer_of;

// An image of `megabytes` MiB and a bit, made by hand: the layout is what state/state_image.h says.
inline Bytes big_image(std::size_t megabytes, std::uint64_t version, std::uint64_t seed) {
  const std::uint64_t floats = megabytes * (1u << 18) + 5;
  Buffer buffer(kStateHeaderBytes + 2 * floats * 4);
  std::memcpy(buffer.data(), "shoalst1", 8);
  buffer.data()[8] = 1;
  buffer.data()[9] = 1;
  for (std::size_t i = 0; i < 8; ++i) buffer.data()[16 + i] = static_cast<std::uint8_t>(version >> (8 * i));
  for (std::size_t i = 0; i < 8; ++i) buffer.data()[32 + i] = static_cast<std::uint8_t>(floats >> (8 * i));
  Rng rng(seed);
  for (std::size_t at = kStateHeaderBytes; at + 8 <= buffer.size(); at += 8) {
    const std::uint64_t word = rng.next();
    std::memcpy(buffer.data() + at, &word, 8);
  }
  return std::move(buffer).freeze();
}

class TransferTest : public testing::Test, public FetcherHost {
 protected:
  struct Donor final : DonorHost {
    Donor(TransferTest& test, std::uint64_t n, DonorOptions options)
        : test(test), self(peer_of(n)), donor(options, *this, test.loop, StageId(0)) {}
    void make_image(std::function<void(Result<StateImage>)> done) override {
      ++images_made;
      test.loop.after(making_time, [this, done] {
        const BulkElsewhere on_the_device;
        Result<StateImage> made = hash_state_image(image);
        if (lies) {
          Bytes& last = made->chunks.back();
          std::vector<std::uint8_t> bytes(last.data(), last.data() + last.size());
          bytes.back() ^= 1;
          last = Bytes::from_vector(std::move(bytes)).summed();
        }
        done(std::move(made));
      });
    }
    Version version() const override { return parse_state_header(image)->version; }
    void send(const PeerId&, Message message, std::vector<Bytes> frames) override {
      if (auto* offer = std::get_if<StateOffer>(&message); offer != nullptr && claims) offer->digest = *claims;
      const auto* chunk = std::get_if<Chunk>(&message);
      const std::uint64_t before = bulk_bytes();
      for (const Bytes& frame : frames) (void)frame.sum();  // as a link does
      EXPECT_EQ(bulk_bytes(), before) << "on a loop";
      if (!up || (chunk != nullptr && chunk->index == 0 && std::exchange(loses_first, false))) return;
      test.loop.after(10ms, [this, message, frames] { test.to_fetcher(self, message, frames); });
    }
    TransferTest& test;
    PeerId self;
    StateDonor donor;
    Bytes image;
    bool up = true, lies = false, loses_first = false;
    std::optional<Digest> claims{};  // that its image has this one
    int images_made = 0, chunks_asked = 0;
    Duration making_time = 5ms;
  };

  TransferTest() : fetcher(FetcherOptions{}, *this, loop, StageId(0)) {}
  Donor& add(std::uint64_t n, const Bytes& image, DonorOptions options = {}) {
    donors.push_back(std::make_unique<Donor>(*this, n, options));
    donors.back()->image = image;
    return *donors.back();
  }
  DonorWay way_to(const PeerId& donor) override {
    return unreached.contains(donor) ? DonorWay::kNone : relayed.contains(donor) ? DonorWay::kRelay : DonorWay::kDirect;
  }
  void send(const PeerId& to, Message message) override {
    EXPECT_NE(way_to(to), DonorWay::kNone);
    loop.after(10ms, [this, to, message] {
      for (const auto& donor : donors) {
        if (donor->self != to || !donor->up) continue;
        if (const auto* query = std::get_if<StateQuery>(&message)) donor->donor.on_query(peer_of(99), *query);
        if (const auto* query = std::get_if<ChunkQuery>(&message)) {
          ++donor->chunks_asked;
          donor->donor.on_chunk_query(peer_of(99), *query);
        }
      }
    });
  }
  void to_fetcher(const PeerId& from, const Message& message, const std::vector<Bytes>& frames) {
    if (const auto* offer = std::get_if<StateOffer>(&message)) fetcher.on_offer(from, *offer);
    const auto* chunk = std::get_if<Chunk>(&message);
    if (chunk != nullptr && when_chunk) when_chunk(*chunk);
    if (chunk != nullptr) fetcher.on_chunk(from, *chunk, frames.empty() ? Bytes() : frames[0]);
  }
  void on_progress(std::uint64_t bytes, std::uint64_t total) override {
    EXPECT_LE(bytes, total);
    progress = bytes;
    if (when_progress) when_progress();
  }
  void on_making() override { ++making; }
  std::uint64_t received(const PeerId&) const override {
    return bytes_move ? static_cast<std::uint64_t>(1000 * seconds_of(loop.now().time_since_epoch())) : 0;
  }
  std::uint64_t arrived(const PeerId&, const Chunk& chunk) const override { return arrives ? arrives(chunk) : 0; }
  void run_aside(std::function<void()> job, std::function<void()> done) override {
    ++asides;
    loop.after(aside_time, [job, done] {
      {
        const BulkElsewhere on_another_thread;
        job();
      }
      done();
    });
  }
  void on_fetched(Bytes image) override { fetched = image; }
  void on_waiting(const std::string& why) override { waiting.push_back(why); }
  std::vector<PeerId> all() {
    std::vector<PeerId> peers;
    for (const auto& donor : donors) peers.push_back(donor->self);
    return peers;
  }
  bool run_until_fetched(Duration limit = 60s) {
    return loop.run_until_true([&] { return !fetched.empty(); }, loop.now() + limit);
  }
  bool equal(const Bytes& a, const Bytes& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
  }

  SimLoop loop;
  std::vector<std::unique_ptr<Donor>> donors;
  std::set<PeerId> unreached, relayed;
  StateFetcher fetcher;
  Bytes fetched;
  std::uint64_t progress = 0;
  int making = 0, asides = 0;
  bool bytes_move = false;  // by every donor's link, all the time
  Duration aside_time = 1ms;
  std::function<void()> when_progress;
  std::function<void(const Chunk&)> when_chunk;
  std::function<std::uint64_t(const Chunk&)> arrives;
  std::vector<std::string> waiting;
};

}  // namespace shoal
