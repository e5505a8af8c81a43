#pragma once
// Continues texts of readers at this stage (`shoal generate TICKET`), beside training: each reader's text has its keys
// and values here, and sends its places one after the other (transport/messages_text.h). The reader has the text; what
// is kept of it here may go at any time, and then it begins anew here or at another peer of the stage (Borzunov et al.
// 2023, section 3.1).
//
// Training comes first: behind a job of time t none is begun for kRest * t, so that texts take at most 1 / (1 + kRest)
// of the device.
//
// Thread: loop only; texts are touched in jobs on the device.   Borrows: what its environment refers to.
// Bounds: kTextsMax texts of kTextBytesMax in all, kQueuedMax requests that wait and one of each reader, whose frames
// come within kFramesWithin, kPlacesMax places a request; a text that nobody continues for kIdle goes.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/lifetime.h"
#include "runtime/stage_peer/device_scheduler.h"
#include "transport/links.h"
#include "transport/messages.h"

namespace shoal {

class TextDesk {
 public:
  static constexpr std::size_t kTextsMax = 16, kQueuedMax = 32, kPlacesMax = 128;
  static constexpr std::uint64_t kTextBytesMax = 256ull << 20;
  static constexpr Duration kIdle = 60s, kFramesWithin = 30s;
  static constexpr int kRest = 7;  // an eighth of the device at most

  struct Environment {
    EventLoop& loop;
    Links& links;
    StageSpec spec;
    // Runs a job between two of training; `after` on the loop.
    std::function<void(std::function<void(StageExecutor&)> job, std::function<void(Duration took)> after)> on_device;
    std::function<bool()> serving;
    std::function<Version()> version;  // of the anchor
  };
  explicit TextDesk(Environment environment) : env_(std::move(environment)) {}
  ~TextDesk();

  // Takes the request, or answers why not and refuses its frames.
  void on_extend(const Remote& from, const Extend& message, TransferId transfer, std::uint64_t frame_bytes);
  // False: nobody here awaits them.
  bool on_frames(const Remote& from, TransferId transfer, Result<std::vector<Bytes>>& frames);
  void on_link_down(const PeerId& peer);
  void tick(TimePoint now);

  std::size_t texts() const { return texts_.size(); }

 private:
  struct Name {
    PeerId reader;
    std::uint64_t text = 0;
    auto operator<=>(const Name&) const = default;
  };
  struct Text {
    std::shared_ptr<TextStage> stage;
    std::uint64_t bytes = 0;
    TimePoint used{};
    bool computing = false;
  };
  struct Request {
    PeerId reader;
    Extend message;
    std::vector<Bytes> frames;
  };
  struct Outcome;

  std::optional<std::string> unfit(const Extend& message, std::uint64_t frame_bytes) const;
  void answer(const PeerId& to, const Extend& message, TextAnswer answer, std::string reason,
              std::vector<Bytes> frames = {});
  void begin_next();
  void compute(Request request);
  void done(const Request& request, Outcome& outcome, Duration took);
  bool make_room(const Name& name, std::uint64_t needed);
  std::uint64_t bytes_of(std::uint64_t places) const;  // keys and values of a text at this stage
  void forget_requests(const PeerId& reader);

  const Environment env_;
  std::map<Name, Text> texts_;
  struct Awaited {
    Extend message;
    TimePoint since{};
  };
  std::map<std::pair<PeerId, TransferId>, Awaited> awaited_;  // their frames are on the way
  std::deque<Request> queue_;
  bool computing_ = false;
  TimePoint rest_until_{};
  TimerId timer_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
