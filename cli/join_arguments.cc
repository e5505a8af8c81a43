#include "cli/join_arguments.h"

#include "cli/join_devices.h"
#include "cli/program.h"

namespace shoal {
namespace {
constexpr std::uint64_t kMebibytesMax = 1u << 24;  // 16 TiB
}  // namespace

void add_join_options(Command& command, JoinArguments& arguments) {
  command.add_option("ticket", arguments.ticket, "what `shoal launch` printed").required().type_name("TICKET");
  command
      .add_option("--listen", arguments.listen,
                  "where to listen (default: any port of 0.0.0.0, or of [::] on a machine with IPv6)")
      .type_name("HOST:PORT");
  command
      .add_option("--advertise", arguments.advertise,
                  "address that others dial, repeatable (default: our side of the route to the ticket)")
      .one_at_a_time()  // lend/device_list.h raises the port of one behind each
      .type_name("HOST[:PORT]");
  add_compute_options(command, arguments.compute, kListedDevices);
  command
      .add_option("--memory", arguments.memory_mebibytes,
                  "MiB for the stage (about 60 bytes a parameter) and its microbatches (default: those of one "
                  "replica, 16 to 64)")
      .in(std::uint64_t{1}, kMebibytesMax)
      .type_name("MIB");
  command.add_option("--stage", arguments.stage, "stage to serve (default: where the run is weakest)").in(0, 255);
  command
      .add_option("--name", arguments.name,
                  "what you call this machine, for the page and receipts of the run: 32 characters at most, seen by "
                  "everybody who sees those")
      .type_name("NAME");
  command.add_option("--events", arguments.events, "append JSON lines here").type_name("FILE");
  add_events_level(command, arguments.events_level);
  add_page_option(command, arguments.page, "show the run in a browser, as far as a peer sees it,");
  command.add_flag("--no-dht", arguments.no_dht, "no directory: meet the others through the ticket alone");
  command.add_flag("--no-map", arguments.no_map,
                   "do not ask the router to forward the ports of this process (PCP, NAT-PMP)");
  command.add_option("--bootstrap", arguments.bootstrap, "a DHT node to ask besides the ticket's, repeatable")
      .type_name("HOST:PORT");
  command.add_option("--patience", arguments.patience_s, "seconds without any answer before giving up (default: 60)")
      .within(0.5, 86400.0);
  command
      .add_option("--wait", arguments.wait_s,
                  "seconds to keep the state while the launching process is away (default: 3600)")
      .within(1.0, 1e7);
  Option folders =
      command
          .add_option("--checkpoints", arguments.checkpoints,
                      "folder for checkpoints of the stage, repeatable: each gets them all (default: HOME/checkpoints)")
          .type_name("DIR");
  command
      .add_flag("--no-checkpoints", arguments.no_checkpoints,
                "write none: the stage's state is lost with this process if no other peer has it")
      .excludes(folders);
  command
      .add_option("--hours", arguments.hours,
                  "times of the day, of this machine's clock, in which it takes part: 22-8, or 9:30-12,14-18; it "
                  "pauses in the others")
      .type_name("FROM-TO");
  command
      .add_option("--gpu-busy", arguments.gpu_busy,
                  "pause: while another program computes on the GPU, by nvidia-smi, and for a minute after")
      .one_of({"pause"})
      .type_name("pause");
  add_line_caps(command, arguments.up, arguments.down);
  command.add_flag("--once", arguments.once, "end with the session instead of joining again");
}

}  // namespace shoal
