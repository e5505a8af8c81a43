#include "cli/launch_wire.h"

#include "authority/authority_log.h"
#include "common/log.h"
#include "common/os/file_storage.h"
#include "runtime/launch/launch_port.h"

namespace shoal {
namespace {

// How long a resumed run waits for its port. A connection that is over holds its source port for 60 s (TIME_WAIT).
constexpr Duration kPortPatience = 75s;

Error still_in_use(const Error& error) {
  return make_error(error.code,
                    error.message +
                        " still. HINT: `ss -tuanp` shows who holds it. The run can go on elsewhere with --listen "
                        "HOST:PORT: it dials its members, and whoever joins later takes the new ticket");
}

// Those of a resumed run come back before there is a list that tells them from strangers. A log that cannot be read is
// Launch::open's to refuse.
std::vector<PeerId> former_members(const LaunchArguments& arguments) {
  if (!arguments.resume) return {};
  const auto bytes = read_file(authority_log_path(arguments.folder), kLogBytesMax);
  if (!bytes.ok()) return {};
  const auto content = parse_log(*bytes);
  return content.ok() ? members_in(content->records) : std::vector<PeerId>();
}

}  // namespace

Result<std::unique_ptr<ZmqWire>> open_launch_wire(EventLoop& loop, const LaunchArguments& arguments,
                                                  const RunConfig& config, const KeyPair& key) {
  ZmqWireOptions options{
      .key = key, .listen = listen_address(arguments), .admission = Admission::kOpen, .admitted = {}};
  options.run = RunId{key.id().bytes};
  options.favoured = former_members(arguments);
  if (config.admission.mode == AdmissionMode::kKeys) {
    options.admission = Admission::kKeys;
    options.admitted = config.admission.keys;
  }
  if (!arguments.resume) return make_zmq_wire(loop, options);
  bool waited = false;
  const auto in_use = [&](const Error& error) -> Status {
    // A process that knows no lock of folders may hold port and logs: then nothing will free the port.
    if (const auto lock = FileLock::take(trainer_log_path(arguments.folder)); !lock.ok())
      return make_error(lock.code(), "another process goes on with this run: " + lock.error().message);
    log_info(error.message, ": waiting for it, because peers look for the run there, at most ",
             seconds_of(kPortPatience), " s; Ctrl-C ends the wait");
    waited = true;
    return {};
  };
  auto wire = make_zmq_wire_when_free(loop, options, kPortPatience, in_use);
  if (waited && !wire.ok() && wire.code() == ErrorCode::kBusy) return still_in_use(wire.error());
  return wire;
}

}  // namespace shoal
