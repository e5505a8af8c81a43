// shoal join TICKET: lends this machine to one stage of a run.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "cli/checkpoint_files.h"
#include "cli/executors.h"
#include "cli/join_arguments.h"
#include "cli/join_devices.h"
#include "cli/program.h"
#include "cli/program_memory.h"
#include "common/formatted.h"
#include "common/log.h"
#include "common/os/batch_work.h"
#include "common/os/descriptors.h"
#include "common/os/file_storage.h"
#include "common/os/own_addresses.h"
#include "common/os/posix_file.h"
#include "common/os/resident_memory.h"
#include "common/os/stop_signals.h"
#include "common/os/thread_loop.h"
#include "common/os/work_thread.h"
#include "common/peer_name.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "common/status_line.h"
#include "dht/open_directory.h"
#include "lend/device_list.h"
#include "lend/owner_desk.h"
#include "page/member_page.h"
#include "runtime/config/home.h"
#include "runtime/config/ticket.h"
#include "runtime/peer/peer.h"
#include "runtime/peer/peer_line.h"
#include "stages/torch_device.h"
#include "transport/capped_wire.h"
#include "transport/mapping/port_mapping.h"
#include "transport/whereabouts.h"
#include "transport/zmq/zmq_wire.h"

namespace shoal {
namespace {

constexpr Duration kLinePeriod = 5s, kRedrawPeriod = 1s;  // of lines, and of the one that a terminal draws anew
constexpr Duration kHeldTold = 100ms;  // a callback of the loop that took so long is shown in the line
constexpr Duration kMappingHeadStart = 250ms;
constexpr Duration kLastWords = 200ms;  // for the goodbye to leave the sockets

class JoinProgram final : private Peer::Owner {
 public:
  JoinProgram(JoinArguments arguments, const GlobalOptions& global)
      : arguments_(std::move(arguments)), global_(global) {}

  int run() {
    begin_batch_work();
    const auto ticket = parse_ticket(arguments_.ticket);
    if (!ticket.ok()) return fail(ticket.error());
    if (const Status opened = open(*ticket); !opened.ok()) return fail(opened.error());
    loop_.post([this] {
      peer_->start();
      desk_->start();
      if (page_) page_->start(*peer_);
      tick();
    });
    loop_.run();
    const int code = report();
    if (peer_->report().job_under_way) end_without_device(code);
    return code;
  }

 private:
  int report() const {
    end_status();
    const PeerReport report = peer_->report();
    if (report.stage) log_info(memory_text(resident_memory().most, report.figures.memory_bytes));
    if (global_.json) print_json();
    if (error_) return fail(*error_);
    if (!reason_.empty()) log_info(reason_);
    return stop_wanted() ? stop_exit_code() : kExitOk;
  }

  // Nobody needs what the device computes, and its thread would be joined after that job: in minutes, or never.
  [[noreturn]] void end_without_device(int code) {
    desk_.reset();
    signals_.reset();
    peer_.reset();
    directory_.reset();
    mapping_.reset();
    capped_.reset();
    wire_.reset();
    storage_.reset();
    code = with_output_written(code);
    std::fflush(nullptr);
    std::_Exit(code);
  }

  Status open(const Ticket& ticket) {
    std::optional<LendHours> hours;
    if (!arguments_.hours.empty()) {
      SHOAL_ASSIGN(hours, LendHours::parse(arguments_.hours));
    }
    SHOAL_ASSIGN(const LineCaps caps, line_caps_of(arguments_.up, arguments_.down));
    SHOAL_ASSIGN(device_name_, choose_device(arguments_.compute.device));
    SHOAL_TRY(check_gpu_busy());
    SHOAL_TRY(check_peer_name(arguments_.name));
    SHOAL_ASSIGN(Home home, Home::open(home_path(global_)));
    home_ = std::make_unique<Home>(std::move(home));
    if (home_->is_temporary())
      log_warning("another process uses ", home_->path(),
                  ": this one takes a temporary key and keeps nothing. HINT: --home DIR for a second one that stays");
    events_ = make_silent_event_log();
    if (!arguments_.events.empty()) {
      auto events = open_event_log(arguments_.events,
                                   {.role = "peer", .run = ticket.run, .peer = home_->key().id(), .session = {}}, loop_,
                                   {.level = event_level_named(arguments_.events_level).value_or(EventLevel::kFull)});
      if (!events.ok()) return cannot_make(events.error());
      events_ = *std::move(events);
    }
    if (arguments_.page) {
      SHOAL_ASSIGN(page_, MemberPage::open(loop_, ticket.run, home_->key().id(), arguments_.name, *arguments_.page));
      events_ = page_->shown(std::move(events_));
    }
    storage_ = std::make_unique<FileStorage>(loop_);
    SHOAL_TRY(make_checkpoint_folders());
    if (const Status raised = raise_descriptors_max(); !raised.ok()) log_warning(raised.error().message);
    SHOAL_ASSIGN(const std::vector<std::string> contacts, contacts_of(ticket));
    if (arguments_.listen.empty()) arguments_.listen = listen_toward(contacts);
    SHOAL_ASSIGN(wire_, make_zmq_wire(loop_, {.key = home_->key(),
                                              .listen = arguments_.listen,
                                              .admission = Admission::kOpen,
                                              .admitted = {},
                                              .run = ticket.run}));
    if (caps.any()) capped_ = std::make_unique<CappedWire>(*wire_, loop_, caps);
    if (const Status routes = check_routes(contacts); !routes.ok()) {
      if (arguments_.no_dht) return routes.error();
      log_warning(routes.error().message);  // the directory may name other addresses, or the network comes up
    }
    SHOAL_ASSIGN(const std::vector<std::string> addresses,
                 own_addresses(wire_->listening_address(), arguments_.advertise, contacts));
    if (all_loopback(addresses) && !all_loopback(contacts))
      log_warning("peers are told ", addresses.front(), ", which they cannot dial. HINT: --advertise ADDRESS");
    if (!arguments_.no_dht) SHOAL_TRY(open_dht(ticket, contacts));
    device_ = make_work_thread(loop_);
    aside_ = make_work_thread(loop_, "aside");
    map_ports(contacts, addresses);
    make_peer(ticket, contacts, addresses);
    SHOAL_ASSIGN(signals_, StopSignals::listen(
                               loop_, [this] { peer_->leave(); }, [this] { peer_->leave(); }));
    desk_ = std::make_unique<OwnerDesk>(loop_, *peer_, std::move(hours));
    if (!arguments_.gpu_busy.empty()) desk_->watch_gpu(std::stoi(device_name_.substr(5)), *aside_);
    if (!home_->is_temporary())  // else the process that has the home hears its owner
      if (const Status heard = desk_->listen(home_->path()); !heard.ok())
        log_warning("pause, resume and finish cannot reach this process: ", heard.error().message);
    log_info("this machine is peer ", short_name(home_->key().id()), " and computes on ", device_name_);
    log_info("listening on ", wire_->listening_address(), ", told to others as ", list_text(addresses));
    if (caps.any())
      log_info(caps.up > 0 ? "sends at most " + arguments_.up : "sends without a cap", " and ",
               caps.down > 0 ? "takes at most " + arguments_.down : "takes without a cap");
    return {};
  }

  // Before anything else is made: a wish that cannot be honoured is no wish to serve without it.
  Status check_gpu_busy() const {
    if (arguments_.gpu_busy.empty()) return {};
    if (!device_name_.starts_with("cuda:"))
      return make_error(ErrorCode::kUnsupported, "--gpu-busy: this process computes on " + device_name_ +
                                                     ", no GPU. HINT: without it, or --device cuda:0");
    const auto use = ask_gpu_use(std::stoi(device_name_.substr(5)));
    if (use.ok()) return {};
    return make_error(ErrorCode::kUnsupported, "--gpu-busy cannot be honoured: " + use.error().message +
                                                   ". HINT: install nvidia-smi, or join without it");
  }

  // What a process with a key of its own wrote, another one could not use.
  Status make_checkpoint_folders() {
    if (arguments_.no_checkpoints || home_->is_temporary()) return {};
    checkpoint_folders_ = arguments_.checkpoints;
    if (checkpoint_folders_.empty()) checkpoint_folders_.push_back(home_->path() + "/checkpoints");
    for (const std::string& folder : checkpoint_folders_) {
      std::error_code failure;
      std::filesystem::create_directories(folder, failure);
      if (failure) return cannot_make(error_of_errno("create the folder", folder, failure.value()));
      remove_left(folder);
    }
    return {};
  }

  // What earlier processes of this home, which is ours alone, were writing when they died.
  void remove_left(const std::string& folder) {
    const auto left = left_checkpoints(folder, home_->key().id());
    if (!left.ok()) return log_warning(left.error().message);
    for (const std::string& path : *left) {
      if (::unlink(path.c_str()) == 0)
        log_info("removed ", path, ": a checkpoint that an earlier process did not finish");
      else
        log_warning(error_of_errno("remove", path, errno).message);
    }
  }

  // The ticket's addresses are ways into the DHT as well (cli/launch.cc).
  Status open_dht(const Ticket& ticket, const std::vector<std::string>& contacts) {
    SHOAL_ASSIGN(const HostPort bound, parse_host_port(wire_->listening_address()));
    DirectoryOptions options{.run = ticket.run,
                             .network = ticket.network,
                             .bind = bound.host,
                             .port = 0,
                             .bootstrap = arguments_.bootstrap,
                             .cache_path = {}};
    std::ranges::remove_copy_if(contacts, std::back_inserter(options.bootstrap), is_via);
    if (!home_->is_temporary())
      options.cache_path = home_->path() + "/directory-" + hex_of(ticket.run).substr(0, 16) + ".json";
    SHOAL_ASSIGN(directory_, open_directory(loop_, *storage_, options));
    return {};
  }

  void make_peer(const Ticket& ticket, const std::vector<std::string>& contacts,
                 const std::vector<std::string>& addresses) {
    PeerOptions options{.key = home_->key(),
                        .run = ticket.run,
                        .authority = {contacts},
                        .whereabouts = {addresses},
                        .wish = {},
                        .device = device_name_,
                        .name = arguments_.name,
                        .memory_bytes = arguments_.memory_mebibytes << 20,
                        .contact_time = from_seconds(arguments_.patience_s),
                        .absence_time = from_seconds(arguments_.wait_s),
                        .once = arguments_.once};
    options.on_processor = device_name_ == "cpu";
    if (options.on_processor) options.program_bytes = measured_program_bytes();
    options.checkpoint_folders = checkpoint_folders_;
    if (!home_->is_temporary()) options.base_folder = home_->path() + "/base";
    if (arguments_.stage >= 0) options.wish = StageId(static_cast<std::uint16_t>(arguments_.stage));
    PeerEnvironment environment{
        .loop = loop_,
        .wire = capped_ ? static_cast<Wire&>(*capped_) : *wire_,
        .device = *device_,
        .aside = *aside_,
        .events = *events_,
        .factory = {},
        .rng = Rng(entropy_seed()),
        .directory = directory_.get(),
        .factory_of = [compute =
                           arguments_.compute](const RunConfig& config) { return executor_factory(config, compute); },
        .storage = storage_.get()};
    environment.free_caches = [device = device_name_] { free_device_caches(device); };
    // What the first answer takes, the loop does not wait for; where hours are lent, a GPU is not opened before they
    // begin.
    if (arguments_.memory_mebibytes == 0 && arguments_.hours.empty()) (void)memory_left(device_name_);
    environment.memory_free = [device = device_name_] { return memory_left(device); };
    peer_ = std::make_unique<Peer>(std::move(options), std::move(environment), static_cast<Peer::Owner&>(*this));
  }

  // Where the run is elsewhere and this machine behind a router, others can dial what that maps. A router that answers
  // at once is waited for, so that the first request to join tells it already.
  void map_ports(const std::vector<std::string>& contacts, const std::vector<std::string>& addresses) {
    told_ = addresses;
    const auto bound = parse_host_port(wire_->listening_address());
    if (arguments_.no_map || !arguments_.advertise.empty() || !bound.ok() ||
        std::ranges::all_of(contacts, is_private_address))
      return;
    const auto port = bound->port;
    mapping_ = std::make_unique<PortMapping>(
        loop_,
        PortMappingOptions{.ports = lane_ports(port), .addresses = addresses, .secret = mapping_secret(home_->key())},
        [this, port] { on_mapping(port); });
    (void)mapping_->await(kMappingHeadStart);
  }

  void on_mapping(std::uint16_t port) {
    const std::vector<Mapping> mappings = mapping_->now();
    std::vector<std::string> mapped = mapped_addresses(mappings, port);
    if (mapped != mapped_ && !mapped.empty()) log_info("the router forwards ", list_text(mapped), " to this process");
    mapped_ = mapped;
    if (!over_) peer_->be_told_at({beside(mapped, told_)}, std::move(mapped), mapping_text(mappings));
  }

  void tick() {
    loop_.after(status_in_place() ? kRedrawPeriod : kLinePeriod, [this] {
      if (over_) return;
      print_line();
      tick();
    });
  }

  void print_line() {
    PeerReport now = peer_->report();
    now.figures.memory_used = resident_memory().now;
    const std::string text = line_.text(now, loop_.now(), status_columns());
    if (line_.due(now, loop_.now()) || status_in_place()) show_status(text);
    if (const auto longest = peer_->take_longest_callback(); longest && longest->took >= kHeldTold)
      log_info("held for ", longest->took / 1ms, " ms by ",
               longest->name.empty() ? "a callback" : std::string(longest->name));
  }

  void on_paused(const PeerPause& pause) override { desk_->on_paused(pause); }
  void on_notice(const std::string& line) override { log_info(line); }
  void on_warning(const std::string& line) override { log_warning(line); }
  void on_finished(const std::string& reason, std::optional<Error> error) override {
    over_ = true;
    reason_ = reason;
    error_ = std::move(error);
    if (page_) page_->stop(error_ ? error_->message : reason_);
    desk_->on_finished(error_ ? error_->message : reason_);
    loop_.after(kLastWords, [this] { loop_.stop(); });
  }

  void print_json() const {
    const PeerReport report = peer_->report();
    Json out = {{"schema", "shoal.join/1"},
                {"key", hex_of(home_->key().id())},
                {"stage", nullptr},
                {"reason", error_ ? error_->message : reason_},
                {"sessions", report.sessions},
                {"memory_peak_bytes", resident_memory().most}};
    for (const PeerFigure& row : peer_figures())
      if (row.places.summary != nullptr) out.set(row.places.summary, figure_json<Json>(row.of(report.figures)));
    if (report.stage) out.set("stage", report.stage->value);
    std::fputs((out.text() + "\n").c_str(), stdout);
    std::fflush(stdout);
  }

  JoinArguments arguments_;
  const GlobalOptions& global_;
  std::string device_name_;
  std::vector<std::string> checkpoint_folders_;
  PeerLine line_;
  std::vector<std::string> told_, mapped_;  // our addresses; what the router forwards to us
  bool over_ = false;
  std::string reason_;
  std::optional<Error> error_;

  // Destroyed from the last to the first: each borrows from those above it.
  ThreadLoop loop_;
  std::unique_ptr<Home> home_;
  std::unique_ptr<MemberPage> page_;  // null: nobody asked for it
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<FileStorage> storage_;
  std::unique_ptr<ZmqWire> wire_;
  std::unique_ptr<CappedWire> capped_;
  std::unique_ptr<PortMapping> mapping_;  // null: no router is asked
  std::unique_ptr<DhtDirectory> directory_;
  std::unique_ptr<WorkQueue> device_, aside_;
  std::unique_ptr<Peer> peer_;
  std::unique_ptr<StopSignals> signals_;
  std::unique_ptr<OwnerDesk> desk_;
};

}  // namespace

void add_join(Command& app, Program& program) {
  Command command = app.add_subcommand("join", "lend this machine to one stage of a run");
  auto arguments = std::make_shared<JoinArguments>();
  add_join_options(command, *arguments);
  run_when_named(command, program, [arguments](const GlobalOptions& global) {
    const std::string& device = arguments->compute.device;
    return lists_devices(device) ? join_devices(arguments->ticket, device, global)
                                 : JoinProgram(*arguments, global).run();
  });
}

}  // namespace shoal
