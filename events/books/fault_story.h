#pragma once
// What went wrong, and what changed, in words: who, what, for how long the rate felt it, and what was lost by name.
// Pure. Times are seconds since 1970.
// Bounds: the kToldMax newest tales, kNamedMax microbatches of each by name; rates of the last kBinsKept seconds.
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "events/books/seen_event.h"

namespace shoal {

struct Tale {
  enum class Kind : std::uint8_t { kFault, kChange } kind = Kind::kFault;
  double at = 0;
  // "lost", "left", "joined", "moves", "round", "went back", "unreachable", "contradiction", "word".
  std::string what{};
  std::optional<std::uint16_t> stage{};
  Session session{};    // zero: it is of no single one
  std::string words{};  // the cause, as it was written
  // (microbatch, stage) pairs that a lost session took with it, and the first of them by serial.
  std::uint64_t lost = 0;
  std::vector<std::uint64_t> named{};
  // For how long the rate was below kBack of the one before; nothing while it is, and where nothing was measured.
  std::optional<double> felt_s{};
  bool felt = false;     // it still is
  double felt_from = 0;  // when it was silent, which its neighbours notice before it is told
  double before = 0;     // targets a second; 0: nothing was measured
};

class FaultStory {
 public:
  static constexpr std::size_t kToldMax = 200, kNamedMax = 8, kWordBytesMax = 300;
  static constexpr std::size_t kBinsKept = 120;  // of a second
  static constexpr double kBack = 0.9;           // of the rate before
  static constexpr int kBackBins = 3;            // in a row

  // What is told for the first time. `worked`: of a session that is over, when it last did; 0: nobody knows.
  void take(const SeenEvent& event, double worked = 0);
  // A whole second is over, in which so many targets were committed.
  void on_second(double begin, double targets);

  const std::deque<Tale>& tales() const { return tales_; }
  std::uint64_t forgotten() const { return forgotten_; }  // older ones
  std::uint64_t faults() const { return faults_; }        // in all

 private:
  Tale& tell(Tale tale);
  void tell_over(const EventRecord& over, double time, double worked);
  void name_lost(const EventRecord& lost);
  void tell_member(const EventRecord& member, double time);
  double rate_before(double time) const;
  void judge(Tale& tale) const;

  struct Second {
    double begin = 0, targets = 0;
  };
  std::deque<Tale> tales_;
  std::deque<Second> seconds_;
  std::uint64_t forgotten_ = 0, faults_ = 0;
};

}  // namespace shoal
