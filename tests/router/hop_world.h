#pragma once
// The world that actors live in: time, links, the authority, the trainer's durable log, and the checks. See
// hop_harness.h.
#include "hop_harness.h"

namespace shoal::hop {

class World {
 public:
  explicit World(const Options& options);
  ~World();

  // Runs until everything ended (true) or the limit passed.
  bool run();
  // Runs until `done` (true) or `limit` virtual time passed.
  bool run_until(const std::function<bool()>& done, Duration limit = 60s);
  void run_for(Duration time);

  // ---- steering ----
  PeerActor& peer(std::uint16_t stage, std::size_t index);  // of the first sessions
  TrainerActor& trainer() { return *trainer_; }
  void kill(Actor& actor);
  void freeze(Actor& actor);
  void thaw(Actor& actor);
  void cut(const Session& a, const Session& b, Duration time);
  void kill_trainer(Duration away);
  // A second trainer on the log while the first still lives (it was stopped and taken for dead).
  void end_session(const Session& session);
  PeerActor& spawn(StageId stage);
  std::function<std::optional<Session>(const Session& holder, SampleId sample, std::span<const Candidate> candidates)>
      choose;
  // nullopt: the message is lost. Called for every message.
  std::function<std::optional<Duration>(const Session& from, const Session& to, const Message& message)> delay_of;
  std::function<void(const Event&)> on_event;
  std::function<void()> each_turn;  // after every event of the world
  Duration fence_after = 6s;
  bool rounds = true;

  // ---- looking ----
  const Options& options() const { return options_; }
  TimePoint now() const { return now_; }
  std::size_t count(std::string_view event) const;
  // Without a `cause`: for whatever one.
  std::size_t count(std::string_view event, const Session& who, std::string_view cause = {}) const;
  const std::vector<std::string>& violations() const { return violations_; }
  std::uint64_t trace() const { return trace_; }  // hash of all that happened
  std::uint64_t turns() const { return turns_; }
  const std::set<std::pair<std::uint64_t, std::uint16_t>>& lost() const { return lost_; }
  bool finished();
  std::vector<PeerActor*> peers();  // lost and not dead

  // ---- for actors ----
  void violate(const std::string& what);
  void note(const Session& who, std::string_view name, const MicrobatchId& m, std::string_view cause);
  Result<TransferId> send(const Session& from, const Session& to, Message message, bool frames);
  void drop(TransferId transfer) { dropped_.insert(transfer); }
  void refuse(TransferId transfer) { refused_.insert(transfer); }
  void after(Actor& actor, Duration delay, std::function<void()> act);
  // The one that has this key now: of the trainer its newest life.
  std::optional<Session> session_of(const PeerId& peer) const;
  const Session& trainer_session() const { return trainer_session_; }
  Duration job_duration();
  bool base_lost();
  void log_write(const Bytes& record);
  const std::vector<std::uint8_t>& log() const { return log_; }
  std::uint64_t trainer_lives() const { return trainer_lives_; }
  void logged(const MicrobatchId& id, const std::vector<EntryName>& path);
  void replayed(const MicrobatchId& id, const std::vector<EntryName>& path);  // found in the log of an earlier life
  void settled(PeerActor& peer, const MicrobatchId& id, const EntryName& entry_name);
  void list(const CommitBook::Listing& listing);
  void announce(const Step& step);
  std::uint64_t steps_done() const;
  struct Decision {
    std::optional<RoundCommit> commit;
    Session over;
  };
  const std::vector<Decision>& decisions() const { return decisions_; }

 private:
  struct Line {
    std::uint64_t generation = 0;
    TimePoint down_until;
    TimePoint last[2][2];
  };
  struct Turn {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> act;
    bool operator>(const Turn& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  void at(TimePoint time, std::function<void()> act);
  bool turn();
  void deliver(Actor& actor, std::function<void()> act);
  Actor* find(const Session& session);
  Line& line(const Session& a, const Session& b);
  void break_line(const Session& a, const Session& b, Duration time);
  void publish();
  void tick();
  void authority();
  void round(StageId stage);
  void step_round(StageId stage);
  void decide(RoundCommit commit);
  void random_fault();
  void start_trainer();
  void check_end();
  Session new_session(std::uint64_t tag) { return {tag, rng_.next()}; }
  Duration message_delay();

  Options options_;
  Rng rng_;
  TimePoint now_{Duration(1s)};
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> queue_;
  std::uint64_t order_ = 0, turns_ = 0, trace_ = 0;
  std::vector<std::unique_ptr<Actor>> actors_;  // all sessions there ever were
  std::map<Session, Actor*> by_session_;
  std::map<PeerId, Session> by_peer_;
  std::vector<PeerActor*> first_;
  TrainerActor* trainer_ = nullptr;
  Session trainer_session_;
  std::map<std::pair<Session, Session>, Line> lines_;
  std::set<TransferId> dropped_, refused_;
  TransferId next_transfer_ = 1;
  std::uint64_t next_tag_ = 100;
  // the authority
  std::vector<PeerActor*> members_;
  Epoch epoch_{1};
  std::set<Session> over_;
  std::vector<Decision> decisions_;
  std::vector<CountTag> anchor_;
  std::vector<std::uint64_t> step_done_;
  std::map<std::uint64_t, Step> steps_;
  std::set<std::pair<Session, std::uint64_t>> step_told_;
  TimePoint next_round_;
  std::uint64_t rounds_ = 0;
  bool trainer_away_ = false;
  // the log
  std::vector<std::uint8_t> log_;
  RecordFramer framer_{kTrainerLog};
  std::uint64_t trainer_lives_ = 0;
  // what was decided and what became of it
  std::map<std::uint64_t, std::vector<EntryName>> paths_;
  std::map<std::pair<std::uint64_t, std::uint16_t>, std::set<EntryName>> settled_, secured_;
  std::set<std::pair<std::uint64_t, std::uint16_t>> lost_;
  std::vector<Event> events_;
  std::vector<std::string> violations_;
};

}  // namespace shoal::hop
