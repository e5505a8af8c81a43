#pragma once
// What a person sees of a run, learned from its events alone: in the launching process as they are written, or from
// their files. Pure: no I/O, no clock. Value: a copy is the run as it stood.   Thread: one at a time.
// Bounds: those of Tally, PeerBoard, History and FaultStory; kUnderWayMax microbatches under way, and hops.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/time.h"
#include "events/books/fault_story.h"
#include "events/books/history.h"
#include "events/books/peer_board.h"
#include "events/books/seen_event.h"
#include "events/books/tally.h"
#include "metrics/peer_figures.h"
#include "metrics/recent_rate.h"

namespace shoal {

// What no event says.
struct RunFacts {
  std::string name{}, key{};                  // as people write it; hex digits of the run's
  std::uint16_t stages = 0;                   // 0: as many as events name
  std::uint64_t end_targets = 0;              // 0: no end is known
  std::optional<double> unigram{}, bigram{};  // entropies of the text, nats a token
  // Whose page it is, if a peer's: the first hex digits of its key. It sees no commit, so that of the counting nothing
  // is known.
  std::string seen_by{};
  bool of_peer() const { return !seen_by.empty(); }
};

// What a peer is told of the run in its beats, and did itself.
struct MemberWord {
  bool heard = false;  // its beats are answered; else what follows is of before
  std::uint64_t run_targets = 0, run_step = 0;
  double run_loss = 0;            // nats a target
  Session session{};              // zero: it has none now
  std::string state{}, reason{};  // of the peer, as its line has them
  PeerFigures figures{};
};

// Counts by upper bound; the last one is of what is above all of them.
template <const auto& kTheBounds>
struct Counts {
  static constexpr const auto& kBounds = kTheBounds;
  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  double sum = 0;
  void add(double value, std::uint64_t times = 1) {
    counts[static_cast<std::size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), value) - kBounds.begin())] +=
        times;
    sum += value * static_cast<double>(times);
  }
};
inline constexpr std::array<double, 11> kSpanBounds = {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};  // seconds
inline constexpr std::array<double, 10> kDelayBounds = {0, 1, 2, 3, 4, 6, 8, 16, 32, 62};                  // steps
using SpanCounts = Counts<kSpanBounds>;
using DelayCounts = Counts<kDelayBounds>;

class RunView {
 public:
  static constexpr std::size_t kUnderWayMax = 65536;
  static constexpr std::size_t kStagesMax = 512;  // events of further ones are passed over
  // Seconds since 1970: times of events are bounded before they are reckoned with.
  static constexpr double kTimeMax = 4e9;

  struct Loss {
    std::uint64_t step = 0;
    std::optional<double> first{}, newest{}, validation{};  // nats a target
    bool validated_at_end = false;
  };
  struct Bytes {
    std::uint64_t sent = 0, received = 0, fp32 = 0, payload = 0, deltas = 0, keys = 0;
    std::uint64_t rounds = 0, round_us = 0;  // sent of pieces and sums; that rounds held devices
    Flow up{}, down{};
    bool of_peers = false;  // else of the launching process alone
  };
  struct OpenRound {
    std::uint64_t round = 0, members = 0;
    double since = 0;
  };

  void set_facts(RunFacts facts) { facts_ = std::move(facts); }
  void take(const SeenEvent& event);
  // Time goes on without events.
  void advance(double time);
  // What the launching process knows beside its events. `steps`: how many inner steps late gradients are.
  void set_delay(std::optional<double> steps) { told_delay_ = steps; }
  void set_quiet(const Session& session, double seconds) { peers_.set_quiet(session, seconds); }
  void take_word(const MemberWord& word, double time);
  void set_parked(std::string why) { parked_ = std::move(why); }  // empty: it goes on

  const RunFacts& facts() const { return facts_; }
  double begun() const { return begun_; }
  double now() const { return now_; }
  bool ended() const { return ended_; }
  const std::string& end_cause() const { return end_cause_; }
  const std::string& parked() const { return parked_; }
  const MemberWord& word() const { return word_; }  // where facts().seen_by says whose
  std::uint16_t stages() const;
  std::uint64_t targets() const;  // committed so far, in all lives
  double targets_per_s() const { return rate_.per_second(); }
  bool knows_rate() const { return !facts_.of_peer() || word_.heard; }
  std::optional<double> left_s() const;
  std::optional<double> delay() const;
  std::uint64_t lines() const { return lines_; }
  const Loss& loss() const { return loss_; }
  const Bytes& bytes() const { return bytes_; }
  const Tally& tally() const { return tally_; }
  const PeerBoard& peers() const { return peers_; }
  const History& history() const { return history_; }
  const FaultStory& story() const { return story_; }
  const SpanCounts& path_spans() const { return path_spans_; }  // from a microbatch's issue to its commit
  // By the stage that was asked: from a holder's newest Forward of a microbatch until it counted the gradient; of the
  // trainer until it committed.
  const std::map<std::uint16_t, SpanCounts>& hop_spans() const { return hop_spans_; }
  const DelayCounts& delays() const { return delays_; }  // of gradients in steps, a target each; as files of peers say
  const SpanCounts& round_spans() const { return round_spans_; }  // from a round's opening to its commit
  const std::map<std::uint16_t, OpenRound>& open_rounds() const { return open_rounds_; }

 private:
  bool is_new(const EventRecord& record) const;
  void take_figures(const EventRecord& record, double time);
  void take_commit(const EventRecord& commit, double time);
  void take_round(const EventRecord& record, double time);
  void take_bytes(const SeenEvent& event);
  void take_delays(const EventRecord& step);
  void take_hop(const SeenEvent& event);
  void end_hop(const Session& holder, const MicrobatchId& microbatch, std::uint16_t stage, double time);
  void end_second();

  RunFacts facts_;
  Tally tally_;
  PeerBoard peers_;
  History history_;
  FaultStory story_;
  Loss loss_;
  Bytes bytes_;
  SpanCounts path_spans_, round_spans_;
  RecentRate rate_{kRateWindow};
  std::unordered_map<std::uint64_t, double> under_way_;  // serial to when it was issued
  std::map<std::uint16_t, OpenRound> open_rounds_;
  // Serial and holder to when it asked.
  std::map<std::pair<std::uint64_t, Session>, double> hops_;
  std::map<std::uint16_t, SpanCounts> hop_spans_;
  DelayCounts delays_;
  double begun_ = 0, now_ = 0, second_ = 0, second_targets_ = 0;
  std::uint64_t lines_ = 0, told_targets_ = 0;
  std::optional<double> told_delay_, seen_delay_;
  std::string parked_, end_cause_;
  MemberWord word_;
  bool ended_ = false;
};

}  // namespace shoal
