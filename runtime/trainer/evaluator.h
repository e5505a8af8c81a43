#pragma once
// Losses of samples that nothing is trained on, by passes without a backward: the validation of the run's last anchors,
// and estimates while it trains. One at a time.
//
// Thread: loop only.   Borrows: all that it is given.   Bounds: evaluations_in_flight() passes under way; an estimate's
// are one a stage, which pass beside what is trained on.
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "events/event_log.h"
#include "router/courier.h"
#include "runtime/config/config.h"
#include "runtime/data/samples.h"

namespace shoal {

class Evaluator {
 public:
  struct Environment {
    EventLoop& loop;
    EventLog& events;
    const Samples& samples;
    const RunConfig& config;
    Session self;
    std::uint64_t trainer_id = 0;
    Courier& courier;
    const Lifetime& lifetime;                                                // nothing goes on once it is over
    std::function<void(std::uint64_t samples, std::uint64_t of)> validated;  // one more; not of estimates
  };
  explicit Evaluator(Environment environment);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Forward only over the validation samples, on the anchors of these versions, one a stage: mean loss a target, nats.
  // A peer whose anchor is at another version does not answer; until one at this version does, it waits. REQUIRES: the
  // trainer has settled, and no round will make another version.
  void validate(std::vector<Version> versions, std::function<void(double)> done);
  // Behind this step, while it trains: of some samples, each at whatever anchors its peers have just then. Passed over
  // while another evaluation is under way.
  void estimate(StepId step);
  void stop();  // `done` is not called any more
  void stop_estimate();
  std::optional<double> last_estimate() const { return last_estimate_; }
  std::uint64_t passed() const { return present_ ? present_->done : 0; }  // samples of the evaluation under way

  bool has(const MicrobatchId& microbatch) const { return microbatch.trainer == trainer_; }
  const Bytes& frame_of(const MicrobatchId& microbatch) const { return frames_.at(microbatch); }
  void on_won(const MicrobatchId& microbatch, const Gradient& gradient);
  // Below it all is decided.
  Low low() const { return {trainer_, present_ ? present_->first_serial : used_}; }

 private:
  struct Evaluation {
    std::vector<Version> versions{};  // none: whatever anchors the peers have
    std::function<void(double)> finished{};
    std::optional<StepId> estimate{};
    std::uint64_t first = 0, next = 0, end = 0, done = 0;
    std::uint64_t first_serial = 0;
    double loss_sum = 0;
    std::uint64_t targets = 0;
  };
  void begin(Evaluation evaluation, std::uint64_t samples_max);  // 0: all
  void go_on();
  void end();

  Environment env_;
  const std::uint64_t
      trainer_;  // another id in each life: what an earlier one evaluated is closed at the peers for good
  const std::uint64_t in_flight_;
  std::map<MicrobatchId, Bytes> frames_;  // encoded tokens of what is under way
  std::optional<Evaluation> present_;
  std::optional<double> last_estimate_;
  std::uint64_t used_ = 0;  // serials so far
};

}  // namespace shoal
