#pragma once
// Short continuations that the launching process shows while the run trains ([report] sample_every): each is a text
// that the run's own stages continue, as a reader's (runtime/reader/swarm_text.h). Thread: loop only.   Borrows: loop,
// links.   Bounds: one at a time; one that is still on its way when the next is due goes on, and the next is left out.
#include <functional>
#include <optional>
#include <string>

#include "runtime/config/config.h"
#include "runtime/generate/generate.h"
#include "runtime/reader/swarm_text.h"

namespace shoal {

class TextSamples {
 public:
  struct Environment {
    EventLoop& loop;
    Links& links;
    std::vector<StageSpec> specs;
    Rng rng;
    TextCode code;
    std::function<void(const std::string& line)> show;
  };
  TextSamples(const ReportSection& report, Environment environment);

  // A validation's estimate is due behind this step: every sample_every-th shows a text.
  void on_validation(std::uint64_t step);
  void on_members(const MemberList& list) { text_.on_members(list); }
  bool on_extended(const Remote& from, const Extended& message, TransferId transfer, std::uint64_t frame_bytes) {
    return text_.on_extended(from, message, transfer, frame_bytes);
  }
  bool on_frames(const PeerId& from, TransferId transfer, Result<std::vector<Bytes>>& frames) {
    return text_.on_frames(from, transfer, frames);
  }
  void on_link_down(const PeerId& peer) { text_.on_link_down(peer); }

 private:
  void go_on();
  void end(const std::string& line);

  const ReportSection report_;
  Environment env_;
  SwarmText text_;
  std::optional<Generation> generation_;
  std::uint64_t validations_ = 0, step_ = 0;
};

}  // namespace shoal
