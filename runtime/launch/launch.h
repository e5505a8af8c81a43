#pragma once
// The launching process: the run's authority and its trainer behind one transport, from the opened logs to END. What
// each part does: authority/authority.h (members, rounds), runtime/trainer/trainer.h (microbatches), run_logs.h,
// run_end.h (phases), announcer.h (the directory), dial_back.h (joiners). Here they are put together, messages find
// their taker, and people are told.
//
// Thread: loop only. The same class runs in `shoal launch` and in the simulator.
// Borrows: what LaunchEnvironment refers to, and the owner.
// Bounds: those of the parts; one notice each 10 s while the run is parked.
// Errors: open()'s; later ones end the process by LaunchOwner::on_finished, and the run goes on with --resume.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "authority/authority.h"
#include "common/lifetime.h"
#include "common/log_throttle.h"
#include "runtime/launch/announcer.h"
#include "runtime/launch/checkpoint_watch.h"
#include "runtime/launch/delay_watch.h"
#include "runtime/launch/dial_back.h"
#include "runtime/launch/launch_port.h"
#include "runtime/launch/loss_lines.h"
#include "runtime/launch/payments.h"
#include "runtime/launch/run_end.h"
#include "runtime/launch/run_logs.h"
#include "runtime/launch/text_samples.h"
#include "runtime/trainer/trainer.h"
#include "state/first_weights.h"
#include "transport/transport.h"

namespace shoal {

class Launch final : private Transport::Listener, private AuthorityPort, private Trainer::Owner {
 public:
  // ERRORS: kInput (the model does not fit the stages), those of RunLogs::open and Authority::open.
  static Result<std::unique_ptr<Launch>> open(LaunchOptions options, LaunchEnvironment environment, LaunchOwner& owner);
  ~Launch() override;

  // Nothing is sent before what the logs said is durable: trainer() is null until then.
  void start();
  // Issues nothing more, settles, last rounds, validation, state, END. Before start(): at once after it.
  void finish(const std::string& reason) { end_->finish(reason); }
  // The same on a person's word, and bounded: a stage that has had nobody who holds its state for stop_patience is not
  // waited for. Then the run ends as it stands: what is open stays unfinished, what no round secured is named lost.
  // With `save` that is so as long as somebody holds every stage's state, also one that leaves. Else it does not end,
  // because the living peers' states would go with it: on_finished's error says how to go on.
  // After RunEnd::kSettleTime, and again whenever that has doubled, a notice says what is waited for and what not
  // waiting costs.
  void stop(const std::string& reason) { end_->stop(reason); }
  RunPhase phase() const { return end_->phase(); }
  bool ended() const { return end_->ended(); }  // END was sent: there is nothing to go on with
  RunSummary summary() const;
  const Authority& authority() const { return *authority_; }
  const Trainer* trainer() const { return trainer_.get(); }
  const CommitBook& book() const { return logs_->book(); }
  std::optional<Session> linked_session(const PeerId& peer) const;  // of the peer's link, while it is up
  std::string parked_text() const;                                  // why the run stands still; empty when it does not

 private:
  Launch(LaunchOptions options, LaunchEnvironment environment, LaunchOwner& owner);
  Status open_parts();
  void begin();
  void send(const PeerId& peer, Message message, std::vector<Bytes> frames);

  // Transport::Listener
  void on_link_up(const Remote& remote) override;
  void on_link_down(const Remote& remote, const Error& cause) override;
  void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) override;
  void on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) override;
  // AuthorityPort
  void send(const PeerId& peer, Message message) override { send(peer, std::move(message), {}); }
  std::vector<std::uint8_t> sign(ByteView body) override;
  void fence(const Session& session) override;
  std::string other_host(const PeerId& peer) const override { return transport_->other_host(peer); }
  void on_members(const MemberList& list) override;
  void on_round_commit(const RoundCommit& commit) override;
  void on_round_abandoned(const RoundAbandon& abandon) override;
  void on_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken) override;
  std::optional<std::string> unfit_for_round(StageId stage, const Session& session,
                                             const std::vector<std::uint64_t>& serials) const override {
    return book().unfit_for_round(stage, session, serials);
  }
  Version settled(StageId stage) const override { return book().done().settled(stage); }
  std::uint64_t paths_logged() const override { return book().committed(); }
  void on_session_over(const Session& session, StageId stage, const std::string& why) override;
  void on_slow_log(Duration waited) override;
  void on_log_failure(const Error& error) override;
  void write(const EventRecord& event) override { env_.events.write(event); }
  // Trainer::Owner (on_log_failure serves both)
  void on_step(const Step& step) override;
  void on_train_line(const TrainLine& line) override;
  void on_parked(StageId stage, bool parked) override;
  void on_lost(const CommitBook::Listing& listing) override;
  void on_misconduct(const Session& session, const std::string& what) override;
  void on_validated(std::uint64_t samples, std::uint64_t of) override;

  void on_over(std::optional<Error> error);
  // A joiner is handed to the authority with where it was dialled; so is what a member asks for later.
  bool on_reach_query(const Remote& remote, ReachQuery query, const InboundFrames& frames, std::uint64_t frame_bytes);
  void on_dialled_back(const DialBack::Verdict& verdict);
  void tick();
  void write_bytes();
  void tell_parked(TimePoint now, std::vector<StageStatus> stages);
  void later(std::function<void()> task);

  LaunchOptions options_;
  LaunchEnvironment env_;
  LaunchOwner& owner_;
  Session session_;
  Manifest manifest_;
  std::unique_ptr<RunLogs> logs_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<DialBack> dial_back_;
  Payments payments_;
  LogThrottle said_;
  std::unique_ptr<Authority> authority_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<RunEnd> end_;
  std::unique_ptr<TextSamples> texts_;           // null: none are shown
  std::unique_ptr<FirstWeights> first_weights_;  // null: the run begins from its seed
  std::unique_ptr<Announcer> announcer_;
  bool had_every_stage_ = false;
  std::uint64_t rounds_abandoned_ = 0;
  TimerId timer_ = 0;
  TimePoint next_parked_{}, next_bytes_{};
  std::optional<TimePoint> parked_since_;
  std::string parked_told_;  // without what counts down; empty: it goes on
  LossLines losses_;
  std::uint64_t bytes_written_[3] = {0, 0, 0};  // sent, received, relayed: what stands in events already
  DelayWatch delays_;
  CheckpointWatch checkpoints_;
  Lifetime lifetime_;
};

}  // namespace shoal
