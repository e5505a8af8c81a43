#pragma once
// The newest commits of a stage, from the first that it may go back to: the digest of each version, and what the rounds
// behind it secured. What a stage went back from is on no line any more and is forgotten here.
//
// Thread: loop only.   Bounds: kBytes, but for the newest kCommitsMin.
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "transport/messages.h"

namespace shoal {

class RecentCommits {
 public:
  // Serials are packed (transport/serial_list.h): a round of two members that bring a few runs each takes about 150
  // bytes, so that a stage may go back by a thousand such versions.
  static constexpr std::size_t kBytes = 256u << 10;
  static constexpr std::size_t kCommitsMin = 4;

  // REQUIRES: versions rise; a commit with `back_to` names a version that digest_of() knows; it can be packed
  // (pack_log_record).
  void push(const RoundCommit& commit);
  // The version has this digest and lies on the line of the newest one.
  bool known(const HeldState& state) const { return digest_of(state.version) == state.digest; }
  std::optional<Digest> digest_of(Version version) const;
  // What a stage loses that goes back to this version: by session, in their order, and the sum of the tags.
  struct TakenBack {
    std::vector<Secured> secured;
    CountTag tag = 0;
    std::size_t entries() const;
  };
  TakenBack behind(Version version) const;
  // Whether a session of this peer (Session::peer_tag) took part in the round that made the version, or in a later one:
  // it may have it.
  bool took_part(std::uint64_t peer_tag, Version version) const;
  // All of it, and back. ERRORS: kCorrupt.
  Bytes pack() const;
  static Result<RecentCommits> parse(ByteView bytes);

 private:
  struct Part {
    Session session;
    std::vector<std::uint8_t> serials;  // packed
  };
  struct Commit {
    Version version;
    Digest digest;
    CountTag tag = 0;
    std::vector<Part> parts;
    std::size_t bytes() const;
  };
  std::deque<Commit> commits_;  // the older first
  std::size_t bytes_ = 0;
};

}  // namespace shoal
