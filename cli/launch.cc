// shoal launch RUN.toml: creates a run, feeds it, keeps its member list, and takes it to its end.
#include "runtime/launch/launch.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "cli/first_model.h"
#include "cli/launch_arguments.h"
#include "cli/launch_relays.h"
#include "cli/launch_wire.h"
#include "cli/program.h"
#include "cli/text_codes.h"
#include "cli/turn.h"
#include "common/crypto/text_codes.h"
#include "common/log.h"
#include "common/os/descriptors.h"
#include "common/os/file_storage.h"
#include "common/os/new_files.h"
#include "common/os/own_addresses.h"
#include "common/os/program_start.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/os/work_thread.h"
#include "common/program/outcome.h"
#include "common/sparse_ticks.h"
#include "common/status_line.h"
#include "dht/open_directory.h"
#include "events/headway.h"
#include "events/line_parts.h"
#include "events/scalar_log.h"
#include "events/train_line.h"
#include "page/run_page.h"
#include "runtime/config/home.h"
#include "runtime/config/kept_run.h"
#include "runtime/config/ticket.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/solo/saved_states.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

constexpr char kSummaryFile[] = "/summary.json";
constexpr double kRelayTold = 0.05;  // of its rate: less is not worth a word in the line

class LaunchProgram final : private LaunchOwner {
 public:
  LaunchProgram(LaunchArguments arguments, bool json) : arguments_(std::move(arguments)), json_(json) {}

  int run() {
    auto config = load_run(arguments_);
    if (!config.ok()) return fail_config(config.error());
    config_ = *std::move(config);
    auto layout = load_layout(arguments_, config_);
    if (!layout.ok()) return fail(layout.error());
    layout_ = *std::move(layout);
    if (const Status opened = open(); !opened.ok())
      return opened.code() == ErrorCode::kInterrupted ? stop_exit_code() : fail(opened.error());
    started_ = loop_.now();
    loop_.post([this] { launch_->start(); });
    loop_.run();
    const int code = report();
    linger();
    return code;
  }

 private:
  Status open() {
    SHOAL_ASSIGN(Samples samples, Samples::open(config_.text_files()));
    if (!arguments_.resume) config_.name_text(samples.text().digests(), samples.text().tokenizer);
    samples_ = std::make_unique<Samples>(std::move(samples));
    SHOAL_ASSIGN(begins_from_, FirstModel::open(config_, arguments_.resume, meter_));
    SHOAL_TRY(find_text_code());
    SHOAL_TRY(check_output());  // before anything is made: nobody could join without the ticket
    NewFiles made;              // until the run's own are written
    for (const std::string& path :
         {run_key_path(arguments_.folder), run_lock_path(arguments_.folder), arguments_.save, arguments_.events})
      made.expect(path);
    std::error_code failure;
    std::filesystem::create_directories(arguments_.folder, failure);
    if (failure) return cannot_make(error_of_errno("create the folder", arguments_.folder, failure.value()));
    if (!arguments_.save.empty()) SHOAL_TRY(probe_save_folder(arguments_.save));
    SHOAL_TRY(forbid_core_files());  // the run's key would stand in them
    storage_ = std::make_unique<FileStorage>(loop_);
    SHOAL_TRY(take_folder());
    SHOAL_ASSIGN(const KeyPair key, load_run_key(arguments_.folder, arguments_.resume));
    const RunId run{key.id().bytes};
    SHOAL_TRY(open_events(key, run));
    SHOAL_TRY(open_network(key, run));
    LaunchOptions options{.config = config_,
                          .key = key,
                          .folder = arguments_.folder,
                          .resume = arguments_.resume,
                          .whereabouts = {relays_->contacts()},
                          .relays = relays_->places(),
                          .layout = layout_,
                          .save = !arguments_.save.empty(),
                          .not_saved_before = not_saved_before(arguments_.folder, arguments_.save),
                          .keep = [this, run] { return begin_run(run); }};
    made.keep();
    SHOAL_ASSIGN(launch_,
                 Launch::open(std::move(options),
                              {.loop = loop_,
                               .wire = *wire_,
                               .storage = *storage_,
                               .events = *events_,
                               .samples = *samples_,
                               .rng = Rng(entropy_seed()),
                               .directory = directory_.get(),
                               .run_aside = [this](auto job, auto done) { run_aside(std::move(job), std::move(done)); },
                               .code = config_.report.sample_every > 0 ? &code_ : nullptr,
                               .first = begins_from_ ? &begins_from_->states() : nullptr},
                              static_cast<LaunchOwner&>(*this)));
    if (page_) page_->start(*launch_, *samples_);
    if (arguments_.resume) SHOAL_TRY(keep_address());
    SHOAL_ASSIGN(signals_, StopSignals::listen(
                               loop_,
                               [this] {
                                 if (lingers_) return loop_.stop();
                                 log_info("Ctrl-C: what is under way is finished first; a second one stops at once");
                                 launch_->stop("stopped by Ctrl-C");
                               },
                               [this] {
                                 if (lingers_) return loop_.stop();
                                 log_warning(launch_->ended()
                                                 ? "stopped at once: the run is over, and a member that has not heard "
                                                   "of it waits (--wait) until `shoal launch --resume " +
                                                       arguments_.folder + "` tells it"
                                                 : "stopped at once: peers keep their state, `shoal launch --resume " +
                                                       arguments_.folder + "` goes on");
                                 loop_.stop();
                               }));
    if (arguments_.resume) SHOAL_TRY(print_ticket(run));
    log_info("run \"", config_.run.name, "\" in ", arguments_.folder, ": ", config_.pipeline.stages,
             " stages, listening on ", wire_->listening_address(), "; lend a machine with: shoal join TICKET");
    return {};
  }

  // What happens goes to a file, to curves, and to the page.
  Status open_events(const KeyPair& key, const RunId& run) {
    events_ = make_silent_event_log();
    if (!arguments_.events.empty()) {
      auto events =
          open_event_log(arguments_.events, {.role = "trainer", .run = run, .peer = key.id(), .session = {}}, loop_,
                         {.level = event_level_named(arguments_.events_level).value_or(EventLevel::kFull)});
      if (!events.ok()) return cannot_make(events.error());
      events_ = *std::move(events);
    }
    if (!arguments_.tensorboard.empty()) {
      auto curves = open_scalar_log(arguments_.tensorboard, loop_, std::move(events_));
      if (!curves.ok()) return cannot_make(curves.error());
      events_ = *std::move(curves);
    }
    if (!arguments_.page) return {};
    SHOAL_ASSIGN(page_, RunPage::open(loop_, config_, run, *arguments_.page));
    events_ = page_->shown(std::move(events_));
    return {};
  }

  // Before anything there is read that another process may be changing, and before anything is written.
  Status take_folder() {
    if (arguments_.standby) SHOAL_TRY(check_standby(arguments_.folder, arguments_.events));
    SHOAL_ASSIGN(lock_, arguments_.standby ? wait_for_turn(loop_, *storage_, arguments_.folder)
                                           : take_turn(*storage_, arguments_.folder));
    return {};
  }

  // For the texts that [report] sample_every shows.
  Status find_text_code() {
    if (config_.report.sample_every == 0) return {};
    SHOAL_ASSIGN(code_, code_of({.of = "the run",
                                 .named = config_.data.tokenizer,
                                 .folder = config_.model.from,
                                 .vocabulary = config_.model.vocabulary,
                                 .tokenizer = config_.data.tokenizer_digest}));
    return {};
  }

  Status open_network(const KeyPair& key, const RunId& run) {
    if (const Status raised = raise_descriptors_max(); !raised.ok()) log_warning(raised.error().message);
    SHOAL_ASSIGN(wire_, open_launch_wire(loop_, arguments_, config_, key));
    SHOAL_ASSIGN(const std::vector<std::string> own,
                 own_addresses(wire_->listening_address(), arguments_.advertise, {}));
    SHOAL_ASSIGN(relays_, LaunchRelays::open(arguments_, key, *wire_, loop_, own));
    relays_->say_who_meets();
    network_ = network_of(arguments_, run);
    if (arguments_.no_dht) return {};
    // UDP on the number of the TCP port: the ticket's addresses are ways into the DHT too.
    SHOAL_ASSIGN(const HostPort bound, parse_host_port(wire_->listening_address()));
    DirectoryOptions directory{.run = run,
                               .network = network_,
                               .bind = bound.host,
                               .port = bound.port,
                               .bootstrap = arguments_.bootstrap,
                               .cache_path = arguments_.folder + "/directory.json"};
    SHOAL_ASSIGN(directory_, open_directory(loop_, *storage_, directory));
    return {};
  }

  // In front of the logs: a run whose ticket nobody got is none, and a folder with logs and without the run's file
  // could not be resumed. The ticket comes last, so that whoever has seen it may start a standby.
  Status begin_run(const RunId& run) {
    SHOAL_TRY(keep_address());
    SHOAL_ASSIGN(const std::string manifest, canonical_text(config_));
    SHOAL_TRY(replace_file(arguments_.folder + kRunFile,
                           {Bytes::copy_of(std::string_view(kept_run_text(manifest, config_)))}));
    return print_ticket(run);
  }

  Status keep_address() {
    return replace_file(arguments_.folder + kListenFile,
                        {Bytes::copy_of(std::string_view(wire_->listening_address()))});
  }

  Status print_ticket(const RunId& run) {
    Ticket ticket{.run = run, .network = network_, .contacts = {}};
    for (const std::string& address : relays_->contacts()) ticket.contacts.push_back({as_peer(run), address});
    SHOAL_ASSIGN(const std::string text, pack_ticket(ticket));
    std::printf("ticket %s\n", text.c_str());
    return write_output();
  }

  void on_train_line(const TrainLine& line) override {
    losses_.add(line.loss);
    shown_ = line;
    if (line.step > 1 && loop_.now() - last_line_ < from_seconds(arguments_.seconds_between_lines)) return;
    last_line_ = loop_.now();
    shown_.relay = relays_->share(last_line_);
    if (shown_.relay < kRelayTold) shown_.relay.reset();
    show_status(text_of(shown_, status_columns()));
  }
  void on_members(const MemberList& list) override { relays_->on_members(list); }
  // The notice says why, once. Elsewhere than on a terminal each status is a line that stays.
  void on_parked_for(Duration time) override {
    shown_.parked = time;
    if (!parked_ticks_.due(time) && !status_in_place()) return;
    show_status(shown_.step > 0 ? text_of(shown_, status_columns()) : "waiting " + span_text(time));
  }
  void on_headway(const Headway& headway) override { show_headway(meter_, headway); }
  void on_notice(const std::string& line) override { log_info(line); }
  void on_warning(const std::string& line) override { log_warning(line); }
  // Beside the loop: a large model takes a disk longer than peers wait for a word.
  void on_states(std::map<std::uint16_t, Bytes> states, std::function<void(Status)> saved) override {
    saver_ = std::jthread([this, states = std::move(states), saved = std::move(saved)] {
      HeadwayMeter meter;
      const auto stage_saved = [&meter](std::uint64_t done, std::uint64_t of) {
        show_headway(meter, {.what = "saving stages", .done = done, .total = of});
      };
      Status status = save_states(arguments_.save, config_, states, stage_saved);
      if (status.ok()) status = note_saved(arguments_.folder, arguments_.save);
      if (status.ok()) log_info("saved to ", arguments_.save);
      loop_.post([saved, status] { saved(status); });
    });
  }
  // Its thread is wanted at the end, to check the states that are fetched.
  void run_aside(std::function<void()> job, std::function<void()> done) {
    if (aside_ == nullptr) aside_ = make_work_thread(loop_, "aside");
    aside_->run(WorkKind::kAside, std::move(job), std::move(done));
  }
  void on_finished(const RunSummary& summary, std::optional<Error> error) override {
    finished_ = true;
    summary_ = summary;
    error_ = std::move(error);
    loop_.stop();
  }

  int report() {
    end_status();
    if (page_) page_->stop();
    if (!finished_) summary_ = launch_->summary();
    if ((finished_ || launch_->ended()) && !summary_.reason.empty())
      print_summary(summary_);  // else a log failed before the end
    if (error_) return error_->code == ErrorCode::kNonFinite ? fail(*error_, kExitSoftware) : fail(*error_);
    return stop_wanted() ? stop_exit_code() : kExitOk;
  }

  // The directory's records go with their last node: whoever asks when the run ends is answered still.
  void linger() {
    if (!finished_ || !launch_->ended() || !directory_ || arguments_.linger_s == 0) return;
    log_info("`shoal inspect` is told of the end for ", arguments_.linger_s, " s more; Ctrl-C ends that");
    lingers_ = true;
    loop_.after(from_seconds(arguments_.linger_s), [this] { loop_.stop(); });
    loop_.run();
  }

  void print_summary(RunSummary& s) {
    s.loss_start = losses_.first();
    s.loss_end = losses_.last();
    s.sent_bytes = wire_->bytes_sent();
    s.elapsed_s = seconds_of(loop_.now() - started_);
    for (const std::string& line : summary_lines(s, !error_)) log_info(line);
    if (const std::string carried = relays_->carried(); !carried.empty()) log_info(carried);
    if (flight_ramp(config_))
      log_info("all ", in_flight_of(config_), " microbatches were allowed in flight for ",
               std::lround(100 * s.full_in_flight_share), " % of these tokens, and never fewer than ",
               flight_limits(config_).fewest);
    const std::string text = summary_json(s, config_, stop_wanted(), error_ ? "" : arguments_.save);
    const Status written = replace_file(arguments_.folder + kSummaryFile, {Bytes::copy_of(text)});
    if (!written.ok()) log_warning("no summary was written: ", written.error().message);
    if (!json_) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  LaunchArguments arguments_;
  const bool json_;
  RunConfig config_;
  std::map<PeerId, StageId> layout_;
  std::uint32_t network_ = 0;
  LossCurve losses_;
  HeadwayMeter meter_;
  TimePoint started_{}, last_line_{};
  TrainLine shown_;  // the newest one; step 0: none yet
  SparseTicks parked_ticks_;
  bool finished_ = false;
  bool lingers_ = false;  // the run is over and said to be
  RunSummary summary_;
  std::optional<Error> error_;

  // Destroyed from the last to the first: each borrows from those above it.
  ThreadLoop loop_;
  std::unique_ptr<FirstModel> begins_from_;  // null: its seed
  TextCode code_;
  std::unique_ptr<Samples> samples_;
  std::unique_ptr<FileStorage> storage_;
  std::optional<RunLock> lock_;    // until nothing below writes any more
  std::unique_ptr<RunPage> page_;  // null: nobody asked for it
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<ZmqWire> wire_;
  std::unique_ptr<LaunchRelays> relays_;
  std::unique_ptr<DhtDirectory> directory_;
  std::unique_ptr<WorkQueue> aside_;
  std::unique_ptr<Launch> launch_;
  std::unique_ptr<StopSignals> signals_;
  std::jthread saver_;
};

}  // namespace

void add_launch(Command& app, Program& program) {
  Command command =
      app.add_subcommand("launch", "create a run, feed it and take it to its end; prints the ticket for `shoal join`");
  auto arguments = std::make_shared<LaunchArguments>();
  add_launch_options(command, *arguments);
  run_when_named(command, program,
                 [arguments](const GlobalOptions& global) { return LaunchProgram(*arguments, global.json).run(); });
}

}  // namespace shoal
