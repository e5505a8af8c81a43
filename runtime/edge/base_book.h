#pragma once
// Which base (activation_frames.h) each end of a peer's edges holds of which sample. A base changes where a microbatch
// is decided, at both ends: at the sender when its own entry is committed and the branch won, at the receiver when its
// entry is committed. Nothing tells an end what the other one holds: a delta frame names its base by hash, and one that
// is not here costs a key frame (NeedKeyFrame). So bases may be lost at any time.
//
// Bases live with a session and are kept in memory, each direction up to a bound: beyond it samples that are not held
// yet stay without, since to push out what is needed once an epoch would leave none to be found.
// Thread: loop only. Pure. Owns what it keeps; bytes are those of key frames. Bounds: `bytes_max` a direction, and one
// record for each sample (outgoing) and each sample of each sender (incoming). Errors: none.
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "runtime/edge/activation_frames.h"

namespace shoal {

struct BaseCounters {
  std::uint64_t deltas = 0, keys = 0;  // activations sent as differences to a base, and as key frames
  std::uint64_t lacking = 0;           // of the deltas: the receiver had no such base
  std::uint64_t bytes = 0;             // that are held, of both directions
  std::uint64_t no_room = 0;           // bases that did not fit
};

class BaseBook {
 public:
  explicit BaseBook(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // ---- what goes to the next stage ----
  // Empty: none, or nobody is known to hold it.
  Base outgoing(SampleId sample) const;
  std::vector<Session> holders(SampleId sample, std::uint64_t hash) const;  // of that base
  // Whether `to` can be sent the delta to that base; counts what it is sent then.
  bool sends_delta(const Session& to, SampleId sample, std::uint64_t hash);
  // It could not: it is sent a key frame instead.
  void lacks(const Session& to, SampleId sample);
  // A frame of this sample to that peer counted: both have `after` now.
  void settled(const Session& to, SampleId sample, Base after);

  // ---- what comes from the stage before ----
  Base incoming(const Session& from, SampleId sample, std::uint64_t hash) const;  // empty: it is not here
  // The one that a frame names; empty: it names none, or it is not here.
  Base incoming(const Session& from, SampleId sample, ByteView frame) const;
  void keep(const Session& from, SampleId sample, Base after);

  void forget(const Session& session);  // it is over
  const BaseCounters& counters() const { return counters_; }

 private:
  struct Outgoing {
    Base base;
    std::set<Session> holders;
  };
  // Puts `base` in the place of `old` if the direction has room for it.
  bool replace(Base& old, Base base, std::uint64_t& bytes);

  std::uint64_t bytes_max_;  // of each direction
  std::uint64_t bytes_out_ = 0, bytes_in_ = 0;
  std::unordered_map<SampleId, Outgoing> outgoing_;
  std::map<std::pair<Session, SampleId>, Base> incoming_;
  BaseCounters counters_;
};

}  // namespace shoal
