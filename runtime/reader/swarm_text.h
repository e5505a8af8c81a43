#pragma once
// One text that the stages of a swarm continue. The reader stands between them: it sends a stage the places that are
// new, gets their activation, and sends that to a peer of the next stage (Borzunov et al. 2023, section 3.2: the client
// keeps what it sent). So a stage's peer may die, be full or forget: another one is asked, from place 0 on, with what
// is kept here. Each peer computes at the anchor that it has just then.
//
// Thread: loop only.   Borrows: loop and links.   Bounds: the ids and one activation a stage of at most the model's
// context; one request under way; Options::patience for each extend().
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/rng.h"
#include "stages/stage_spec.h"
#include "transport/links.h"
#include "transport/messages.h"

namespace shoal {

class SwarmText {
 public:
  struct Options {
    Duration patience = 60s;         // for all stages of one extend()
    Duration answer_timeout = 10s;   // then another peer is asked; longer where answers were seen to take longer
    std::uint32_t likeliest = 1024;  // of the next ids, the last stage says no more
  };
  struct Environment {
    EventLoop& loop;
    Links& links;
    std::vector<StageSpec> specs;
    Rng rng;
  };
  using Done = std::function<void(Result<std::vector<float>> logits)>;

  SwarmText(Options options, Environment environment);
  ~SwarmText();

  // Which members serve what.
  void on_members(const MemberList& list);
  // True: its frames are awaited.
  bool on_extended(const Remote& from, const Extended& message, TransferId transfer, std::uint64_t frame_bytes);
  bool on_frames(const PeerId& from, TransferId transfer, Result<std::vector<Bytes>>& frames);
  void on_link_down(const PeerId& peer);

  // Appends ids and hands over the logits (V) behind the last one; those that the last stage did not say are
  // kUnsaid. `done` is called once, in a turn of its own. REQUIRES: none is under way; 1 .. context - places() ids.
  // ERRORS: kUnreachable (a stage without a peer that answers, with the last reason), kMalformed.
  void extend(std::span<const std::uint32_t> ids, Done done);
  void restart();  // forgets the text
  void cancel();   // what is under way; `done` is not called
  std::uint64_t places() const { return ids_.size(); }
  std::uint64_t replays() const { return replays_; }              // stages that began anew at another peer
  std::uint64_t anchors_moved() const { return anchors_moved_; }  // times that a stage answered at another version

  static constexpr float kUnsaid = -1e30f;

 private:
  struct Stage {
    std::vector<Member> serving;
    std::optional<PeerId> peer;      // that has the text
    std::uint64_t at_peer = 0;       // places of it
    std::vector<float> activations;  // its input of all places; empty on the first stage
    std::optional<Version> version;  // of the last answer
    std::vector<PeerId> failed;      // in this extend(), the one that failed longest ago first
  };
  struct Asked {
    PeerId peer;
    std::size_t stage = 0;
    std::uint32_t first = 0, count = 0;
    TransferId answer = 0;  // its frames are on the way
    TimePoint since{};
  };

  std::uint64_t rows_of(std::size_t stage) const;
  std::uint64_t bytes_wanted(const Asked& asked) const;  // frames of its answer
  void go_on();
  bool choose_peer(Stage& stage);
  void ask(std::size_t stage);
  void fail_peer(const std::string& why);
  void give_up_or_wait(const std::string& why);
  void take(const Asked& asked, const std::vector<Bytes>& frames);
  Status take_activation(const Asked& asked, const std::vector<Bytes>& frames);
  Result<std::vector<float>> take_logits(const std::vector<Bytes>& frames) const;
  void finish(Result<std::vector<float>> result);
  void arm(Duration after, void (SwarmText::*what)());
  void too_late();

  const Options options_;
  Environment env_;
  std::vector<Stage> stages_;
  std::vector<std::uint32_t> ids_;
  std::uint64_t text_ = 0;  // the peers' name for it
  Done done_;
  std::optional<Result<std::vector<float>>> result_;  // on its way to done_
  TimePoint deadline_{};
  std::optional<Asked> asked_;
  std::string last_failure_;
  Duration longest_answer_{};
  TimerId timer_ = 0;
  std::uint64_t replays_ = 0, anchors_moved_ = 0;
  Lifetime lifetime_;
};

}  // namespace shoal
