#pragma once
// What a member brings to a round and how the payloads of all become one. The bytes belong to the rule
// (sync/outer_rule.h): round, reducer and wire move them, cut where the rule cuts them, and never look inside. Dense
// fp32 sums are one implementation of it, coded ones another; sparse payloads would be a third.
//
// Thread: any one.
#include <cstdint>
#include <memory>
#include <span>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"
#include "compression/codec.h"

namespace shoal {

struct Payload {
  Bytes bytes;
  std::uint64_t weight = 0;  // targets
  CountTag tag = 0;
};

// The sum of one round's payloads at one member. A payload is cut into one part an owner (sync/round_owners.h), which
// adds the pieces of all members in their order, so that a part is summed in one place; the sums of all parts are the
// result. Calls: open every piece of our part, then add each, then finish; open the sum of every part, then take each;
// then result. All of them go through whole parts: of large payloads never on a loop.
class PayloadSum {
 public:
  virtual ~PayloadSum() = default;
  // What this member brings, all parts together and before anything is coded.
  virtual std::uint64_t own_bytes() const = 0;
  // Part `index` of what this member brings, as it travels; may be empty.
  virtual Bytes part(std::size_t index) const = 0;
  // The values of `piece`, a piece or a sum of part `index` as it travels; all that follows takes those. `piece` need
  // not be aligned. ERRORS: kMalformed, kNonFinite.
  virtual Result<Bytes> open(std::size_t index, const Bytes& piece) const = 0;
  // Root mean square of the values of a piece, for judging it beside the others' pieces of its part; 0: it says nothing
  // (too few values, or pieces that are not alike).
  virtual double size_of(const Bytes& values) const = 0;
  // The same of part `index` of what this member brings, before it is coded.
  virtual double own_size(std::size_t index) const = 0;
  // Adds `scale` times a piece, of the one part that we own. `weight` > 0: members without work are left out; `total`:
  // of all members.
  virtual void add(const Bytes& values, std::uint64_t weight, std::uint64_t total, double scale) = 0;
  // The cosine between the sum of part `index` and what this member brought to it; 0: it says nothing.
  virtual double agreement(std::size_t index, const Bytes& values) const = 0;
  // What was added, the sum of part `index`, as it travels: what the others open.
  virtual Bytes finish(std::size_t index) = 0;
  // The sum of part `index`, our own included.
  virtual void take(std::size_t index, const Bytes& values) = 0;
  // REQUIRES: every part was taken. Once.
  virtual Bytes result() = 0;
};

struct PartRange {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};
// Equal parts; the first `count % parts` are one longer; empty when there are more parts than values.
PartRange part_range(std::size_t count, std::size_t parts, std::size_t part);

// ---- dense: an array of floats of the same length at every member, cut into equal parts ----
enum class DenseSum : std::uint8_t {
  kSum,           // sum(values)
  kExactSum,      // the same, of executors of whole numbers: no piece is scaled
  kWeightedMean,  // sum(weight * values) / sum(weight)
};
// Added in doubles, in the order of add(). REQUIRES: parts > 0, whole floats.
std::unique_ptr<PayloadSum> make_dense_sum(DenseSum how, Bytes own, std::size_t parts);
// The same, but pieces and sums travel as frames of `codec`. Of `own`, and of what result() gives, the bytes are
// floats. REQUIRES: as above, and a codec without bases.
std::unique_ptr<PayloadSum> make_coded_sum(CodecId codec, DenseSum how, Bytes own, std::size_t parts);
// REQUIRES: whole floats, aligned, as those of a Buffer are.
std::span<const float> dense_values(const Bytes& bytes);

}  // namespace shoal
