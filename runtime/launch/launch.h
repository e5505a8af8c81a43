#pragma once
// The launching process: the run's authority and first trainer behind one transport, the manifest, the end of a run.
// Rounds, lists and fencing are authority/authority.h, feeding and deciding runtime/trainer/trainer.h; here they are
// put together and a run is taken from start to END.
//
// Thread: loop only. Borrows what Environment refers to. The same class runs in `shoal launch` and in the simulator.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "authority/authority.h"
#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "common/lifetime.h"
#include "common/log_throttle.h"
#include "common/rng.h"
#include "common/storage.h"
#include "dht/peer_directory.h"
#include "events/event_log.h"
#include "events/headway.h"
#include "runtime/config/config.h"
#include "runtime/data/samples.h"
#include "runtime/launch/delay_watch.h"
#include "runtime/launch/dial_back.h"
#include "runtime/launch/log_space.h"
#include "runtime/launch/payments.h"
#include "runtime/launch/run_summary.h"
#include "runtime/launch/standing.h"
#include "runtime/trainer/trainer.h"
#include "state/state_transfer.h"
#include "transport/transport.h"

namespace shoal {

// Locked by the process that feeds the run.
inline std::string trainer_log_path(const std::string& folder) { return folder + "/trainer.log"; }
inline std::string authority_log_path(const std::string& folder) { return folder + "/authority.log"; }

struct LaunchOptions {
  RunConfig config;
  KeyPair key;                         // the run's
  std::string folder;                  // with the logs
  bool resume = false;                 // false: the folder must hold no logs
  std::vector<std::string> addresses;  // told to peers and the directory
  bool save = false;                   // fetch every stage's state at the end
  Duration round_budget{0};            // for the reduction of a round; 0 = as [sync] round_budget_s says
  // A new run: called once its folder is found empty and its logs are locked, before anything is written to them, to
  // keep what a resumed process needs besides. An error of it is open()'s.
  std::function<Status()> keep{};
  // stop(): how long a stage may be without a peer that holds its state before the run ends without it.
  Duration stop_patience = 30s;
  std::size_t log_bytes_max = kLogBytesMax;  // of each log: warned at half of it
  std::size_t log_compact_bytes =
      kLogCompactBytes;  // of each log: at so many, or twice what it had after the last time
};

struct LaunchEnvironment {
  EventLoop& loop;
  Wire& wire;
  Storage& storage;
  EventLog& events;
  const Samples& samples;
  Rng rng;
  PeerDirectory* directory = nullptr;
  // As FetcherHost's, which see. REQUIRED with LaunchOptions::save.
  std::function<void(std::function<void()> job, std::function<void()> done)> run_aside{};
};

class Launch final : private Transport::Listener, private AuthorityPort, private Trainer::Owner, private FetcherHost {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_train_line(const TrainLine& line) = 0;
    virtual void on_parked_for(Duration) {}     // often, while it stands still for want of peers
    virtual void on_headway(const Headway&) {}  // of validation and of states that are fetched: often
    virtual void on_notice(const std::string& line) = 0;
    virtual void on_warning(const std::string& line) {
      on_notice(line);
    }  // one that asks somebody to act: cause, object, remedy
    // With `save`: the state images of all stages, before the run is logged as ended and the peers hear END. `saved` is
    // called on the loop, once. On an error the run does not end: the peers keep their states, and a resumed process
    // fetches and saves again.
    virtual void on_states(std::map<std::uint16_t, Bytes> states, std::function<void(Status)> saved) = 0;
    // END was sent. `error`: the run could not go on (log failure, states not saved), or a stage had nothing to save.
    virtual void on_finished(const RunSummary& summary, std::optional<Error> error) = 0;
  };

  // ERRORS: kInput (the folder holds a run and resume is false, or holds none and it is true), kBusy (locked), kMissing
  // (one log of the two), kCorrupt (also: one is older than the other), kIo, kForeign, kVersion (logs of an older
  // program).
  static Result<std::unique_ptr<Launch>> open(LaunchOptions options, LaunchEnvironment environment, Owner& owner);
  ~Launch() override;

  // Nothing is sent before what the logs said is durable: trainer() is null until then.
  void start();
  // Issues nothing more, settles, last rounds, validation, state, END. Before start(): at once after it.
  void finish(const std::string& reason);
  // The same on a person's word, and bounded: a stage that has had nobody who holds its state for stop_patience is not
  // waited for. Then the run ends as it stands: what is open stays unfinished, what no round secured is named lost.
  // With `save` that is so as long as somebody holds every stage's state, also one that leaves. Else it does not end,
  // because the living peers' states would go with it: on_finished's error says how to go on.
  // After kSettleTime, and again whenever that has doubled, a notice says what is waited for and what not waiting
  // costs.
  void stop(const std::string& reason);
  static constexpr Duration kSettleTime = 10s;
  bool ended() const { return ended_at_.has_value(); }  // END was sent: there is nothing to go on with
  RunSummary summary() const;
  const Authority& authority() const { return *authority_; }
  const Trainer* trainer() const { return trainer_.get(); }
  const CommitBook& book() const { return *book_; }
  std::optional<Session> linked_session(const PeerId& peer) const;  // of the peer's link, while it is up
  std::string parked_text() const;                                  // why the run stands still; empty when it does not

 private:
  Launch(LaunchOptions options, LaunchEnvironment environment, Owner& owner);
  Status open_logs();
  Status check_text();
  Status check_both_there(std::size_t authority_records) const;
  void begin();
  ByteView manifest_bytes() const {
    return {reinterpret_cast<const std::uint8_t*>(manifest_.body.data()), manifest_.body.size()};
  }

  // Transport::Listener
  void on_link_up(const Remote& remote) override;
  void on_link_down(const Remote& remote, const Error& cause) override;
  void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) override;
  void on_frames(const Remote& remote, TransferId transfer, Result<std::vector<Bytes>> frames) override;
  // AuthorityPort
  void send(const PeerId& peer, Message message) override;
  std::vector<std::uint8_t> sign(ByteView body) override;
  void fence(const Session& session) override;
  std::string other_host(const PeerId& peer) const override { return transport_->other_host(peer); }
  void on_members(const MemberList& list) override;
  void on_round_commit(const RoundCommit& commit) override;
  void on_round_abandoned(const RoundAbandon& abandon) override;
  void on_restored(const RoundCommit& commit, const RecentCommits::TakenBack& taken) override;
  std::optional<std::string> unfit_for_round(StageId stage, const Session& session,
                                             const std::vector<std::uint64_t>& serials) const override {
    return book_->unfit_for_round(stage, session, serials);
  }
  Version settled(StageId stage) const override { return book_->settled(stage); }
  std::uint64_t paths_logged() const override { return book_->committed(); }
  void on_session_over(const Session& session, StageId stage, const std::string& why) override;
  void on_slow_log(Duration waited) override;
  void on_log_failure(const Error& error) override;
  void write(const EventRecord& event) override { env_.events.write(event); }
  // Trainer::Owner (on_log_failure serves both)
  void on_step(const Step& step) override;
  void on_train_line(const TrainLine& line) override;
  void on_progress(std::uint64_t run_targets, double loss, std::uint64_t step) override;
  void on_parked(StageId stage, bool parked) override;
  void on_lost(const CommitBook::Listing& listing) override;
  void on_validated(std::uint64_t samples, std::uint64_t of) override;
  // FetcherHost: states at the end. `send` serves both ports.
  void run_aside(std::function<void()> job, std::function<void()> done) override {
    env_.run_aside(std::move(job), std::move(done));
  }
  void on_fetched(Bytes image) override;
  void on_progress(std::uint64_t bytes, std::uint64_t total) override;
  void on_waiting(const std::string& why) override;

  // A joiner is handed to the authority once others can dial it.
  void on_dialled_back(const DialBack::Verdict& verdict);
  void tick();
  void announce();
  void exchange_records();
  void announce_standing(const RunRecord& beside);
  void watch_stages();
  std::string stranded_text(const StageStatus& stage) const;  // empty: it is not
  void write_bytes();
  void tend_logs();
  void last_rounds();
  void validate();
  void fetch_states();
  void ask_donors();
  void save_states();
  void end();
  void watch_holders(TimePoint now);
  void tell_waiting(TimePoint now);
  void tell_parked(TimePoint now);
  std::string waited_for() const;
  void give_up(const std::string& missing);
  void end_cut_off(const std::string& who);
  void end_again();
  void on_end_durable(const std::vector<CommitBook::Listing>& lost);
  void say_end();
  void linger();
  void done(std::optional<Error> error);
  void later(std::function<void()> task);

  LaunchOptions options_;
  LaunchEnvironment env_;
  Owner& owner_;
  Session session_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<DialBack> dial_back_;
  LogThrottle said_;
  std::unique_ptr<CommitBook> book_;
  std::unique_ptr<RecordLog> trainer_log_;
  std::unique_ptr<Authority> authority_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<StateFetcher> fetcher_;
  Manifest manifest_;
  struct Inbound {
    PeerId peer;
    TransferId transfer;
    auto operator<=>(const Inbound&) const = default;
  };
  std::map<Inbound, Chunk> inbound_chunks_;
  Payments payments_;
  RunSummary summary_;
  std::string finish_wanted_;  // finish() before start()
  std::uint16_t next_state_ = 0;
  std::map<std::uint16_t, Bytes> states_;  // fetched for `save`
  std::optional<Error> unsaved_;           // why there is nothing to save
  Digest text_;                            // of the token file
  bool finishing_ = false, over_ = false, stages_ready_ = false;
  bool gave_up_ = false;      // the steps of finish() are not gone on with
  bool fetching_ = false;     // for `save`: nothing but states is asked of the peers any more
  bool past_states_ = false;  // all that peers have to give is here
  bool in_last_rounds_ = false, validating_ = false;
  bool cut_off_ = false;                    // what is open stays unfinished: those who serve cannot reach each other
  std::optional<TimePoint> stop_asked_;     // a person's word
  Duration settle_told_ = kSettleTime;      // after stop_asked_: when it is said next what is waited for
  std::optional<TimePoint> missing_since_;  // after Ctrl-C: since when a stage has nobody who holds its state
  std::optional<TimePoint> cut_since_;      // also in validation: since when a stage's peers reach nobody of the next
  TimerId timer_ = 0;
  TimePoint next_announce_{}, announced_at_{}, next_exchange_{}, next_parked_{}, next_bytes_{};
  std::optional<TimePoint> parked_since_;
  Standing standing_;
  std::size_t standing_parts_ = 0;     // records of it that the directory has
  std::optional<TimePoint> ended_at_;  // END was sent
  bool linger_told_ = false;
  std::uint64_t bytes_written_[2] = {0, 0};  // sent, received: what stands in events already
  std::uint64_t sequence_ = 0;
  DelayWatch delays_;
  LogSpace trainer_space_, authority_space_;
  Lifetime lifetime_;
};

}  // namespace shoal
