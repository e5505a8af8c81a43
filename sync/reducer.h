#pragma once
// Adds the payloads of a round's members: reduce-scatter, then all-gather. Pure bookkeeping, no I/O, no clock; what the
// bytes mean and how they are added is the rule's (sync/payload.h).
//
// Vocabulary: a round has N members in list order; a payload is cut into N parts, part p belongs to member p. Phase 0:
// every member sends part p of its payload to member p, which adds the N pieces in member order. Phase 1: the owner
// sends the sum of its part to all. Every part is added up in one place, so all members end with identical bits.
// Weights and tags travel with every piece and are summed.
//
// Thread: any one.   Ownership: owns all pieces.   Bounds: N <= limits::kReplicasMax pieces of one part, plus the
// result.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "sync/payload.h"

namespace shoal {

class Reducer {
 public:
  // `weight` and `tag` are those of our own payload, which `sum` was made with. REQUIRES: members > 0, self < members.
  Reducer(std::size_t members, std::size_t self, std::unique_ptr<PayloadSum> sum, std::uint64_t weight, CountTag tag);

  struct Piece {
    std::uint64_t weight = 0;
    CountTag tag = 0;
    Bytes bytes;
  };
  Piece piece_for(std::size_t member) const;  // phase 0, what `member` must get from us

  // Phase 0: `from`'s piece of our part. Repeats are ignored. ERRORS: those of PayloadSum::check.
  Status add(std::size_t from, const Piece& piece);
  // Phase 0 is complete: our part is summed.
  bool own_part_ready() const { return missing_pieces_ == 0; }
  // Phase 1, what everybody must get from us. REQUIRES: own_part_ready().
  Piece own_part() const;
  // Phase 1: the summed part of `owner`. Repeats are ignored. ERRORS: those of PayloadSum::check.
  Status take(std::size_t owner, const Piece& piece);
  bool complete() const { return missing_parts_ == 0; }
  // The first member that we still wait for.
  std::optional<std::size_t> missing() const;
  // REQUIRES: complete(). ERRORS: kMalformed (the owners of the parts disagree on weight or tag: they did not add the
  // same pieces).
  Result<Payload> take_result();

 private:
  void sum_own_part();

  std::size_t members_, self_;
  std::unique_ptr<PayloadSum> sum_;
  std::uint64_t own_weight_;
  CountTag own_tag_;
  std::vector<std::optional<Piece>> pieces_;  // of our part, by member; empty once summed
  struct Claim {
    bool here = false;
    std::uint64_t weight = 0;
    CountTag tag = 0;
  };
  std::vector<Claim> parts_;  // what came in phase 1, by owner
  std::size_t missing_pieces_, missing_parts_;
  std::uint64_t weight_ = 0;  // sums, valid when own_part_ready()
  CountTag tag_ = 0;
  Bytes own_sum_;
};

}  // namespace shoal
