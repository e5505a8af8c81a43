#pragma once
// The newest commits of a stage, from the first that it may go back to: the digest of each version, and what the rounds
// behind it secured. What a stage went back from is on no line any more and is forgotten here.
//
// Thread: loop only.   Bounds: kCommits, and kSerials of entries; the newest commit stays whatever it names.
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "transport/messages.h"

namespace shoal {

class RecentCommits {
 public:
  static constexpr std::size_t kCommits = 256;
  static constexpr std::size_t kSerials = std::size_t{1} << 20;

  // REQUIRES: versions rise; a commit with `back_to` names a version that is known().
  void push(const RoundCommit& commit);
  // The version has this digest and lies on the line of the newest one.
  bool known(const HeldState& state) const;
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

 private:
  std::deque<RoundCommit> commits_;  // the older first
  std::size_t serials_ = 0;          // that they name
};

}  // namespace shoal
