#pragma once
// What a session must fetch: the newest version of its stage, which it joins or which was committed without it. While
// nothing has come yet the fetch turns to each newer one; once bytes come it is fetched to its end, since rounds may
// be committed faster than a state is fetched, and then the newest one follows. For that one the stage's next round is
// held, but one that is open may still be committed: the fetch turns to it, once, while the lesser part is here. A
// serving session that gets nothing in time, or is overtaken too often, begins a new session instead; a joiner goes
// on. Value without I/O: the time is handed in.   Thread: loop only.
#include <cstdint>
#include <optional>

#include "common/ids.h"
#include "common/time.h"

namespace shoal {

class MissedVersion {
 public:
  // However long a donor says that it makes the image.
  static constexpr Duration kMakingMax = 600s;
  // Fetches that were overtaken. What it holds meanwhile keeps the low-water mark of the run from rising.
  static constexpr std::uint32_t kOvertakenMax = 3;
  static constexpr double kLesserPart = 0.5;

  // `patience`: how long may pass without a byte of a chunk.
  MissedVersion(Version version, const Digest& digest, TimePoint now, Duration patience)
      : patience_(patience),
        fetched_{version, digest},
        newest_{version, digest},
        until_(now + patience),
        made_until_(now + kMakingMax) {}

  // What is fetched.
  Version version() const { return fetched_.version; }
  const Digest& digest() const { return fetched_.digest; }
  Version newest() const { return newest_.version; }

  // The stage is at `version` now; older ones and the same change nothing.
  void aim(Version version, const Digest& digest);
  // Bytes of what is fetched came, or are on their way; `share` of it is here.
  void flows(TimePoint now, double share = 1);
  // A donor makes the image of it: on a slow machine that takes longer than our own jobs tell.
  void is_made(TimePoint now);
  // All of it is here: the device decides when it is taken over.
  void arrived() { until_.reset(); }
  // It is taken over. False: nothing newer was committed meanwhile. Else the newest is fetched next.
  bool go_on(TimePoint now);
  // Nothing came for the patience, and what came before was of an older version, which its donors may have no more: the
  // newest is fetched instead. False: that was it, or nothing ever came.
  bool turn(TimePoint now);

  bool to_fetch() const { return until_.has_value(); }
  bool overtaken_too_often() const { return overtaken_ > kOvertakenMax; }
  bool too_late(TimePoint now) const { return until_ && now >= *until_; }

 private:
  struct Target {
    Version version;
    Digest digest;
  };

  Duration patience_;
  Target fetched_, newest_;
  std::uint32_t overtaken_ = 0;
  bool flows_ = false;              // bytes of it came
  double share_ = 0;                // that is here
  bool may_turn_ = false;           // though they did
  std::optional<TimePoint> until_;  // none: it is here
  TimePoint made_until_;            // no longer is waited for one that is being made
};

}  // namespace shoal
