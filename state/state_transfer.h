#pragma once
// A stage's shared state from member to member, in hashed chunks of 1 MiB: donor and fetcher. State machines without
// I/O, threads or clock of their own. Thread: loop only.
//
// Vocabulary: an image (state/state_image.h) is the whole state of one version; its root is the BLAKE2b tree over its
// chunks. Members that agree on a version make the same image, so a chunk of one donor continues the fetch from another
// with the same root.
//
// clang-format off
//   fetcher -> donors  StateQuery          donors -> fetcher  StateOffer (version, digest, root, size)
//   fetcher -> donor   ChunkQuery(index)   donor  -> fetcher  Chunk + frame
// clang-format on
// A fetcher that asks again while the image is being made gets an offer of that version without an image. Of each donor
// so many chunks are in flight as fill its line (state/donor_pace.h); the next one is asked of the donor that has it
// here first.
//
// What is fetched is known in advance: the authority's list or a RoundCommit names version and digest. An offer of
// anything else is ignored; a finished image is checked against root and digest before anybody sees it.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/event_loop.h"
#include "state/state_image.h"
#include "transport/messages.h"

namespace shoal {

struct StateImage {
  StageId stage;
  Version version;
  Digest digest;  // digest_of_image
  Digest root;    // tree_digest
  std::uint64_t bytes = 0;
  std::vector<Bytes>
      chunks;  // of kHashChunkBytes and the rest, which know their sums: to send one costs a loop nothing
};
// Hashes the bytes for the digest and for the root and sums each chunk: on the device thread, beside make_state_image.
// ERRORS: kMalformed (no image).
Result<StateImage> hash_state_image(const Bytes& bytes);

// ---- donor ----
class DonorHost {
 public:
  virtual ~DonorHost() = default;
  // Makes the image of the anchor as it is now, on the device thread; `done` on the loop. ERRORS: kBusy (no anchor
  // yet).
  virtual void make_image(std::function<void(Result<StateImage>)> done) = 0;
  virtual Version version() const = 0;  // of the anchor
  virtual void send(const PeerId& to, Message message, std::vector<Bytes> frames) = 0;
};

struct DonorOptions {
  double bytes_per_second = 0;   // of all chunks; 0 = as asked. Keeps training's frames from waiting behind them
  std::size_t queued_max = 256;  // ChunkQueries that wait; beyond it they are dropped and asked again
  // An older image is kept while somebody asks for chunks of it; whoever has not for so long is gone.
  Duration idle = 10s;
};

// Holds the image of the newest version, made when somebody asks for it, and beside it an older one until its fetchers
// are done: rounds may be committed faster than a state travels. All fetchers of a version share its image; a fetcher
// that asks for another one is done with it.   Bounds: two images; an older one that nobody asks for goes, and so does
// the one that would be the third.
class StateDonor {
 public:
  StateDonor(DonorOptions options, DonorHost& host, EventLoop& loop, StageId stage);
  ~StateDonor();
  void on_query(const PeerId& from, const StateQuery& query);
  void on_chunk_query(const PeerId& from, const ChunkQuery& query);
  // The anchor is at another version: frees what nobody fetches.
  void moved_on();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// By the list, the member may hold its stage's anchor: also while it leaves and waits for somebody to hand it to.
inline bool may_donate(const Member& member) { return member.serving || member.version > Version(0); }

// ---- fetcher ----
enum class DonorWay : std::uint8_t { kNone, kRelay, kDirect };

class FetcherHost {
 public:
  virtual ~FetcherHost() = default;
  virtual void send(const PeerId& to, Message message) = 0;
  // How a message goes to the donor: one that it cannot go to is neither asked nor waited for until it can, and others
  // are asked before one that a relay leads to.
  virtual DonorWay way_to(const PeerId& /*donor*/) { return DonorWay::kDirect; }
  // More is here, also of chunks that are not whole yet: a line may take longer for one than others are patient. Never
  // less than was said of that image. 0 bytes: it is offered, and its chunks are asked for.
  virtual void on_progress(std::uint64_t bytes, std::uint64_t total) = 0;
  // Bytes that the link to a donor brought, of whatever, also of frames that are not whole yet.
  virtual std::uint64_t received(const PeerId& donor) const = 0;
  // Bytes that are here of a chunk that is on its way; 0: not known.
  virtual std::uint64_t arrived(const PeerId& /*donor*/, const Chunk&) const { return 0; }
  // Runs `job`, which goes through many chunks and touches nothing else, where it does not hold the loop up; then
  // `done`, on the loop.
  virtual void run_aside(std::function<void()> job, std::function<void()> done) = 0;
  // Checked: root and digest are those asked for. The fetch is over.
  virtual void on_fetched(Bytes image) = 0;
  // A donor makes the image: said as often as it is asked.
  virtual void on_making() {}
  // Nobody offers it (kNoPeer): said once in a while, with the reason; the fetch goes on.
  virtual void on_waiting(const std::string& why) = 0;
};

struct FetcherOptions {
  Duration query_period = 1s;                     // StateQuery to donors that have not offered
  Duration chunk_timeout = 5s;                    // without a byte of its donor a chunk is asked of another one
  std::uint64_t bytes_max = kStateImageBytesMax;  // a larger offer is ignored, and said once
  // That an image of the stage can have (image_sizes): offers of others are ignored. Empty: they are not known.
  std::vector<std::uint64_t> sizes{};
  bool allows(std::uint64_t bytes) const {
    return sizes.empty() || std::find(sizes.begin(), sizes.end(), bytes) != sizes.end();
  }
};

class StateFetcher {
 public:
  StateFetcher(FetcherOptions options, FetcherHost& host, EventLoop& loop, StageId stage);
  ~StateFetcher();
  // Fetches version/digest from `donors`; may be called again at any time: a newer target drops what belongs to the
  // older one, the same target only changes the donors.
  void fetch(Version version, const Digest& digest, std::vector<PeerId> donors);
  void on_offer(const PeerId& from, const StateOffer& offer);
  // `frame` is the chunk's bytes; empty when !chunk.has.
  void on_chunk(const PeerId& from, const Chunk& chunk, Bytes frame);
  void on_donor_down(const PeerId& donor);
  // Whether that donor was asked for this chunk and has not answered: nobody else's bytes are worth keeping.
  bool asked(const PeerId& donor, const Chunk& chunk) const;
  void cancel();
  bool active() const;
  std::optional<Version> target() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shoal
