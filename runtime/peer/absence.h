#pragma once
// Why a peer is away from its stage or goes from it, since when, and what comes next: the process ends (leave), its
// next session serves another stage (move), or no session begins until its owner gives the device back (pause).
//
// A peer that goes settles what is open, asks the authority for a round that secures its work, and gives up after a
// while. The last holder of its stage's state writes it to its disk and waits for another, less long than whatever ends
// processes waits until it kills (Kubernetes: 30 s); without a disk for it, as long as nobody ends it. A pause waits
// for nobody, since the machine's owner wants the device. Value without I/O: the time is handed in.   Thread: loop
// only.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/ids.h"
#include "common/result.h"
#include "common/time.h"

namespace shoal {

// A pause, wanted or there.
struct PeerPause {
  std::string why;
  Duration took{};           // from the wish until the device was free; 0: it is not yet
  bool in_order = false;     // nothing was counted here, or the authority let us go
  std::uint64_t lost = 0;    // else: targets that were settled here and that no round had secured
  bool last_holder = false;  // the stage's state is nowhere else: an image of it is kept in memory
};

enum class AbsencePhase : std::uint8_t {
  kHere,     // it serves, or is on the way to
  kLeaving,  // its session goes, and the process with it
  kMoving,   // its session goes, and the next one joins another stage
  kPausing,  // its session goes, and none follows
  kEnding,   // of a pause: the session is over, and is being taken down
  kPaused,   // no session
};
std::string_view name_of(AbsencePhase phase);
// What may follow what: the table in absence.cc. A move that is not in it is a bug and stops the process.
bool may_follow(AbsencePhase from, AbsencePhase to);

class Absence {
 public:
  static constexpr Duration kTime = 30s;             // from the wish, or from when another holds the state
  static constexpr Duration kRoundTime = kTime / 3;  // of these for the round, however much is still open
  static constexpr Duration kHolderTime = 20s;       // of the last holder, for another to take its state
  static constexpr Duration kPauseTime = 1500ms;     // of a pause: the device is free soon after
  static constexpr Duration kPauseRoundTime = 1s;    // of these for the round

  AbsencePhase phase() const { return phase_; }
  bool is(AbsencePhase phase) const { return phase_ == phase; }
  // The session goes: it takes nothing new.
  bool goes() const { return phase_ >= AbsencePhase::kLeaving && phase_ <= AbsencePhase::kPausing; }
  const std::optional<PeerPause>& pause() const { return pause_; }

  // ---- wishes ----
  // For good, also instead of a move or a pause that is under way.
  void leave(TimePoint now);
  // REQUIRES: may_move(to).
  void move(TimePoint now, StageId to);
  bool may_move(StageId to) const { return is(AbsencePhase::kHere) && unfit_ != to; }
  // True: a pause begins, also instead of a move that is under way. False: one was wanted already, and `why` is its
  // reason now. `counts`: this session serves, so that what it counted is to be secured; else it is over at once.
  // REQUIRES: not leaving.
  bool begin_pause(TimePoint now, const std::string& why, bool counts);
  // True: the pause is over. False: there is none, or its session is not down yet; then it is over as soon as it is.
  bool resume();

  // ---- the session on its way out ----
  struct Facts {
    bool last_holder = false;  // if we go, the stage's state goes
    bool quiet = false;        // nothing is open here
    bool asked = false;        // the authority was asked to let us go
    bool held_up = false;      // the authority is away, or a round is under way: a move waits for that
    bool away = false;         // the authority is, so that nobody will take the state
    bool on_disk = false;      // the stage's newest state is
  };
  struct Step {
    bool tell_last = false;  // say that the state goes with us: once, until it is not so any more
    bool ask = false;        // ask the authority to let us go
    bool give_up = false;    // go as it is
  };
  // The wish to leave again. True: at once. False: as soon as the state is on the disk, which is only asked once.
  bool leave_at_once(bool would_be_lost) { return !would_be_lost || std::exchange(hurried_, true); }
  // What is to be done now. REQUIRES: goes().
  Step next(TimePoint now, const Facts& facts);
  // What it does, for people. REQUIRES: goes().
  std::string text() const;
  // The authority let us go, or we gave up waiting for that: why the session is over. A mover's next one asks for the
  // stage. REQUIRES: goes().
  std::string let_go();
  std::string give_up();
  // This session is over, whatever ended it. `settled`: targets here that no round secured. REQUIRES: not leaving.
  void session_over(std::uint64_t settled);

  // ---- a pause without a session ----
  void note_last_holder(bool last) { pause_->last_holder = last; }  // REQUIRES: pause()
  // The session is down. True: it was resumed meanwhile.
  bool session_down();
  TimePoint since() const { return since_; }  // the wish for the pause
  // The device is free of what the pause wanted at `since` stood on. False: that pause is over.
  bool freed(TimePoint since, TimePoint now);

  // ---- where the next session serves ----
  const std::optional<StageId>& wish() const { return next_; }  // none: anywhere
  // `before`: the stage of the session before.
  void joined(StageId stage, std::optional<StageId> before);
  // True: it was to move, and there is no room.
  bool refused() { return std::exchange(next_, std::nullopt).has_value(); }
  // This session came by a move, from there.
  const std::optional<StageId>& came_from() const { return came_from_; }
  // The machine cannot serve this stage: it moves there no more.
  void cannot_serve(StageId stage) { unfit_ = stage; }
  // The next session goes back to where this one came from. REQUIRES: came_from().
  StageId go_back() { return *(next_ = std::exchange(came_from_, std::nullopt)); }

  // ---- why it ends with an error ----
  // The session cannot serve on. True: it was not so yet.
  bool failed(Error error) { return !std::exchange(cause_, std::move(error)); }
  const std::optional<Error>& cause() const { return cause_; }

 private:
  void go(AbsencePhase to);

  AbsencePhase phase_ = AbsencePhase::kHere;
  TimePoint since_{}, until_{};  // the wish; when it gives up
  bool told_last_ = false;
  bool hurried_ = false;  // wished twice
  std::optional<PeerPause> pause_;
  bool resumes_ = false;              // before it is paused
  std::optional<StageId> to_;         // while it moves
  std::optional<StageId> next_;       // where the next session is to serve, until it is there
  std::optional<StageId> unfit_;      // asked to move there, and this machine cannot: said once
  std::optional<StageId> came_from_;  // this session came by a move: back there where it cannot serve
  std::optional<Error> cause_;        // its memory does not hold a microbatch: it leaves
};

}  // namespace shoal
