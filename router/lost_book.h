#pragma once
// What was lost of a run, by name: each (microbatch, stage) above the low-water mark, and below it how many by peer,
// stage and cause.   Thread: loop only.   Bounds: kLinesMax lines below the mark, and the caller's window above it.
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/ids.h"
#include "transport/messages.h"

namespace shoal {

class LostBook {
 public:
  static constexpr std::size_t kCauseMax = 100;   // bytes of a cause that are kept
  static constexpr std::size_t kLinesMax = 4096;  // further ones go by stage alone, as "other causes"

  struct Listing {
    MicrobatchId microbatch;
    StageId stage;
    EntryName entry_name;
    std::string cause;
  };
  // (microbatch, stage) pairs, by peer (Session::peer_tag), stage and cause.
  using Lines = std::map<std::tuple<std::uint64_t, StageId, std::string>, std::uint64_t>;
  struct Below {
    std::uint64_t pairs = 0;
    Lines lines{};
  };

  void add(Listing listing);
  // Null: it is not lost, or is below the mark.
  const Listing* find(const EntryName& entry_name) const;
  // The mark passes the entry.
  void pass(const EntryName& entry_name);
  // What an earlier life left. REQUIRES: nothing was added yet.
  void restore(Below below) { below_ = std::move(below); }

  std::uint64_t pairs() const { return below_.pairs + listings_.size(); }
  Lines lines() const;
  const Below& below() const { return below_; }
  // What the run's end left without a round (is_lost_by_end).
  const std::vector<Listing>& left_at_end() const { return left_at_end_; }

 private:
  static void count(const Listing& listing, Lines& lines);

  std::map<EntryName, Listing> listings_;  // above the mark
  Below below_;
  std::vector<Listing> left_at_end_;
};

}  // namespace shoal
