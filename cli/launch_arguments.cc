#include "cli/launch_arguments.h"

#include <filesystem>

#include "cli/program.h"
#include "common/log.h"
#include "common/os/file_storage.h"
#include "common/os/own_addresses.h"
#include "common/program/outcome.h"
#include "dht/record.h"
#include "layout/peer_list.h"
#include "runtime/config/kept_run.h"
#include "runtime/plan/flight_plan.h"
#include "runtime/solo/saved_states.h"

namespace shoal {
namespace {
constexpr std::size_t kListenBytesMax = 256;
}

void add_launch_options(Command& command, LaunchArguments& arguments) {
  command
      .add_option("run", arguments.run,
                  "the run's file (`shoal init`, docs/RUN.md); with --resume or --standby its folder")
      .required()
      .type_name("RUN.toml");
  command.add_option("--dir", arguments.folder, "folder of the run's key, logs and manifest (default: NAME.run)")
      .type_name("DIR");
  command
      .add_option("--listen", arguments.listen,
                  "where to listen, TCP and UDP (default: any port of 0.0.0.0, or of [::] on a machine with IPv6)")
      .type_name("HOST:PORT");
  command
      .add_option("--advertise", arguments.advertise,
                  "address that others dial, repeatable (default: all but loopback)")
      .type_name("HOST[:PORT]");
  command
      .add_option(
          "--relay", arguments.relay,
          "what this process carries between members that cannot dial each other, 50mbit; 0 = nothing (default: "
          "10mbit)")
      .type_name("RATE");
  command
      .add_option(
          "--relay-port", arguments.relay_port,
          "where its relay listens, TCP; the ticket then names it too, for networks that let out one port alone "
          "(default: the third port from --listen's on)")
      .in(1u, 65535u);
  command
      .add_option("--via", arguments.via,
                  "a relay (`shoal relay`) at which this process is called, for a machine that nobody can dial; with "
                  "--advertise beside what can be dialled")
      .type_name("HOST:PORT");
  command.add_option("--save", arguments.save, "write the trained model here").type_name("DIR");
  command
      .add_option("--layout", arguments.layout,
                  "where peers are wished whose owners name no stage (`shoal plan --peers FILE -o LAYOUT.toml`); not "
                  "kept in the folder: give it again with --resume or --standby")
      .type_name("LAYOUT.toml");
  command.add_option("--events", arguments.events, "append JSON lines here").type_name("FILE");
  add_events_level(command, arguments.events_level);
  command
      .add_option("--tensorboard", arguments.tensorboard, "write curves of loss, tokens and rate here, for TensorBoard")
      .type_name("DIR");
  add_page_option(command, arguments.page, "show the run in a browser");
  Option resume = command.add_flag("--resume", arguments.resume, "go on with the run that the folder holds");
  command
      .add_flag("--standby", arguments.standby,
                "wait beside the process that has the folder, and --resume when that one is over")
      .excludes(resume);
  command.add_option("--network", arguments.network, "id of the DHT network (default: from the run's key)");
  command.add_flag("--no-dht", arguments.no_dht, "no directory: peers meet through this process alone");
  command.add_flag("--no-map", arguments.no_map,
                   "do not ask the router to forward the ports of this process (PCP, NAT-PMP)");
  command.add_option("--bootstrap", arguments.bootstrap, "a DHT node to join, repeatable").type_name("HOST:PORT");
  command
      .add_option("--line-every", arguments.seconds_between_lines,
                  "seconds between train lines; 0 = every step (default: 1)")
      .within(0.0, 86400.0);
  command
      .add_option("--linger", arguments.linger_s,
                  "seconds to tell `shoal inspect` of the end before this process goes, at most 60 (default: 10)")
      .within(0.0, seconds_of(kRecordTtl));
}

namespace {

// load_config would ask for a run's file to be made: a standby needs a run that has begun.
Status check_begun(const std::string& run) {
  std::error_code failure;
  if (!std::filesystem::exists(run, failure))
    return make_error(ErrorCode::kMissing, run +
                                               " does not exist: a standby waits beside a run that has begun. HINT: "
                                               "name the folder (--dir) of the process that began it");
  if (std::filesystem::is_directory(run, failure) && !std::filesystem::exists(run + kRunFile, failure))
    return make_error(ErrorCode::kMissing, run + " holds no run: " + run + kRunFile +
                                               " is missing. HINT: a run begins with `shoal launch RUN.toml`; a "
                                               "standby is started behind its ticket");
  return {};
}

}  // namespace

Result<RunConfig> load_run(LaunchArguments& arguments) {
  if (arguments.standby) SHOAL_TRY(check_begun(arguments.run));
  arguments.resume = arguments.resume || arguments.standby;
  if (arguments.resume && std::filesystem::is_directory(arguments.run)) {
    arguments.folder = arguments.run;
    arguments.run = arguments.folder + kRunFile;
  }
  SHOAL_ASSIGN(RunConfig config, load_config(arguments.run));
  if (arguments.folder.empty()) arguments.folder = config.run.name + ".run";
  if (!arguments.save.empty() && config.executor.kind != ExecutorKind::kTorch) return nothing_to_save();
  SHOAL_ASSIGN(std::string text, canonical_text(config));
  if (!arguments.resume) {
    if (const std::string why = take_mode(config); !why.empty()) log_info(mode_sentence(config, why));
    return config;
  }
  // Its log belongs to the manifest it was started with: go on with that and nothing else.
  SHOAL_ASSIGN(const RunConfig kept, load_config(arguments.folder + kRunFile));
  take_names(config, kept);
  SHOAL_ASSIGN(text, canonical_text(config));
  SHOAL_ASSIGN(const std::string kept_text, canonical_text(kept));
  if (text != kept_text)
    return make_error(ErrorCode::kInput, arguments.run + " differs from the run in " + arguments.folder +
                                             ": resume with `shoal launch --resume " + arguments.folder +
                                             "`, or start a new run in another --dir");
  return config;
}

Result<std::map<PeerId, StageId>> load_layout(const LaunchArguments& arguments, const RunConfig& config) {
  if (arguments.layout.empty()) return std::map<PeerId, StageId>();
  SHOAL_ASSIGN(const PeerList list, load_peer_list(arguments.layout));
  return wishes_of(list, config.pipeline.stages);
}

std::string listen_address(const LaunchArguments& arguments) {
  if (!arguments.listen.empty()) return arguments.listen;
  if (arguments.resume) {
    if (const auto kept = read_file(arguments.folder + kListenFile, kListenBytesMax); kept.ok())
      return {reinterpret_cast<const char*>(kept->data()), kept->size()};
  }
  return listen_toward({});
}

std::uint32_t network_of(const LaunchArguments& arguments, const RunId& run) {
  if (arguments.network != 0) return arguments.network;
  std::uint32_t network = 0;
  for (int i = 0; i < 4; ++i) network = network << 8 | run.bytes[static_cast<std::size_t>(i)];
  return network | 1;  // 0 would be the public network
}

}  // namespace shoal
