#pragma once
// What was merged or lost, on its way to the trainer's log: made, being written, durable; and up to which version of
// each stage's rounds nothing more follows.   Thread: loop only.   Bounds: what is above the low-water mark.
#include <cstdint>
#include <map>
#include <vector>

#include "common/ids.h"
#include "router/trainer_records.h"

namespace shoal {

class DoneQueue {
 public:
  explicit DoneQueue(std::uint16_t stages) : heard_(stages), settled_(stages), writing_heard_(stages) {}

  void add(DoneItem item);
  void hear(StageId stage, Version version);  // a round that was brought to the book
  // As much as one record takes. Written lazily: while dirty(), which is false as long as one is on its way to the
  // disk; and before the log is closed, until nothing is left().
  DoneRecord take();
  void durable();  // what was taken
  bool left() const { return !made_.empty(); }
  bool dirty() const { return !made_.empty() && writing_.empty(); }
  bool holds(std::uint64_t serial) const { return undurable_.contains(serial); }  // something of it is not durable

  // Among the stage's rounds that were brought here the newest version. As the log says it, once it is replayed.
  Version heard(StageId stage) const { return heard_[stage.value]; }
  // All that follows from the stage's rounds up to this version is durable: nobody needs to say it again.
  Version settled(StageId stage) const { return settled_[stage.value]; }
  const std::vector<Version>& heard() const { return heard_; }  // by stage

  // The log says it, with what was added for it: all of it is durable.
  void replayed(const std::vector<Version>& heard, bool all);

 private:
  std::vector<DoneItem> made_, writing_;
  bool writing_all_ = false;  // writing_ has all that follows from the rounds up to writing_heard_
  std::vector<Version> heard_, settled_, writing_heard_;  // by stage
  std::map<std::uint64_t, std::size_t> undurable_;        // serial -> how many of its items are in made_ or writing_
};

}  // namespace shoal
