#pragma once
// Adds the payloads of a round's members: reduce-scatter, then all-gather. Pure bookkeeping, no I/O, no clock; what the
// bytes mean and how they are added is the rule's (sync/payload.h).
//
// Vocabulary: a round has N members in list order, and of these O owners (sync/round_owners.h); a payload is cut into O
// parts, part p belongs to owner p. Phase 0: every member sends part p of its payload to owner p, which adds the N
// pieces in member order. Phase 1: the owner sends the sum of its part to all. Every part is added up in one place, so
// all members end with identical bits. Weights and tags travel with every piece and are summed.
//
// What a single member may do to the result: sync/piece_sizes.h.
//
// What goes through whole parts (cutting with checksums, checking, adding, joining) comes as Work, which the caller
// runs where it holds no loop up.
//
// Thread: any one; Work as it says.   Ownership: owns all pieces.   Bounds: N <= limits::kReplicasMax pieces of one
// part, plus the result.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "sync/payload.h"
#include "sync/round_owners.h"

namespace shoal {

class Reducer {
 public:
  // Run `job` once, on any thread, then go on with the Reducer: one at a time. Meanwhile add() and take() may be
  // called; the Reducer may even be gone.
  struct Work {
    std::uint64_t bytes = 0;  // that it goes through
    std::function<void()> job;
  };
  // `weight` and `tag` are those of our own payload, which `sum` was made with. REQUIRES: self < members,
  // are_owners().
  Reducer(RoundShape shape, std::unique_ptr<PayloadSum> sum, std::uint64_t weight, CountTag tag);

  struct Piece {
    std::uint64_t weight = 0;
    CountTag tag = 0;
    Bytes bytes;
  };
  // Before anything else: what piece_for() gives.
  Work cut();
  Piece piece_for(std::size_t part) const;  // phase 0, what the part's owner must get from us

  // Phase 0: `from`'s piece of our part. Repeats are ignored, and all where we own none.
  void add(std::size_t from, Piece piece);
  // We own a part, and every piece of it is here and not summed yet.
  bool own_part_due() const { return own_part_ && missing_pieces_ == 0 && !parts_[*own_part_]; }
  // Checks and adds them. REQUIRES: own_part_due().
  Work sum_own_part();
  // Phase 1, what everybody must get from us. ERRORS: those of PayloadSum::open; then failed() is whose piece it was.
  // REQUIRES: sum_own_part() ran. Once.
  Result<Piece> take_own_part();
  // Phase 1: the sum of `part`. Repeats are ignored.
  void take(std::size_t part, Piece piece);
  bool complete() const { return missing_parts_ == 0; }
  bool lacks_piece() const { return missing_pieces_ > 0; }
  // The first member that we still wait for.
  std::optional<std::size_t> missing() const;
  // Checks the parts and puts them together. REQUIRES: complete().
  Work join();
  // REQUIRES: join() ran. ERRORS: those of PayloadSum::open (failed() is the owner); kMalformed (the owners of the
  // parts disagree on weight or tag: they did not add the same pieces; nobody failed()).
  Result<Payload> take_result();
  std::optional<std::size_t> failed() const { return desk_->failed; }

 private:
  // What jobs work on: theirs while one runs.
  struct Desk {
    std::unique_ptr<PayloadSum> sum;
    std::vector<Bytes> cut;         // by part
    std::vector<double> own_sizes;  // of these, as PayloadSum::size_of
    Result<Bytes> made = Bytes();
    std::optional<std::size_t> failed;
    void fail(std::size_t member, const Error& error);
  };
  using Pieces = std::vector<std::optional<Piece>>;
  static std::uint64_t bytes_of(const Pieces& pieces);
  bool of_the_same_pieces() const;  // by weight and tag of every sum

  RoundShape shape_;
  std::optional<std::size_t> own_part_;
  std::uint64_t own_weight_;
  CountTag own_tag_;
  std::shared_ptr<Desk> desk_;
  Pieces pieces_;  // of our part, by member, ours aside; empty once they are being summed
  Pieces parts_;   // sums
  std::size_t missing_pieces_, missing_parts_;
  std::uint64_t weight_;  // sums, valid when no piece is missing; of a member that owns nothing, when no part is
  CountTag tag_;
};

}  // namespace shoal
