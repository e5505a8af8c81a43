#include "transport/zmq/zmq_trial.h"

#include "common/thread_loop.h"
#include "transport/zmq/lane_greeting.h"

namespace shoal {
namespace {
constexpr Duration kPatience = 5s;
constexpr std::string_view kNotSafe =
    " at the trial on start; nothing may run on it. HINT: is another libzmq in use than the one this program was built "
    "with?";
}  // namespace

Result<StrangerFate> knock(const HostPort& address, const PeerId& listener, const KeyPair& key, const PeerId& claimed,
                           Duration patience) {
  const auto listener_key = curve_public_of(listener);
  SHOAL_CHECK(listener_key.ok());
  ZmqContext context;
  SHOAL_ASSIGN(ZmqSocket socket, ZmqSocket::make(context, ZmqSocket::Kind::kDealer));
  socket.configure(Lane::kControl, key, address.is_v6());
  socket.expect_peer(*listener_key);
  SHOAL_TRY(socket.start_monitor(context, "trial"));
  if (!socket.connect(address).ok()) return StrangerFate::kSilence;
  const Bytes greeting = pack_lane_greeting({Lane::kControl, claimed, {}});
  bool sent = false;
  for (const TimePoint end = monotonic_now() + patience; monotonic_now() < end;) {
    if (!sent) sent = socket.send("", greeting) == ZmqSend::kSent;
    zmq_wait({{&socket, !sent}}, -1, 50ms);
    while (const auto event = socket.monitor_event()) {
      if (event->kind == ZmqMonitorEvent::Kind::kKeyRefused) return StrangerFate::kKeyRefused;
    }
    while (const auto received = socket.receive()) {
      const auto answer = parse_lane_answer(received->payload);
      return answer.ok() && !answer->accepted ? StrangerFate::kClaimRefused : StrangerFate::kAccepted;
    }
  }
  return StrangerFate::kSilence;
}

Status try_as_stranger(HostPort address, const PeerId& listener, KeyCheck& keys) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  const KeyPair stranger = KeyPair::generate();
  const PeerId foreign = KeyPair::generate().id();
  keys.expect_trial(stranger.curve_public());
  const auto verdict = [&](const Result<StrangerFate>& fate, StrangerFate wanted, const std::string& who) -> Status {
    if (!fate.ok()) return fate.error();
    if (*fate == wanted) return Status::success();
    if (*fate == StrangerFate::kAccepted)
      return make_error(ErrorCode::kRefused, who + " was let in" + std::string(kNotSafe));
    return make_error(ErrorCode::kTimeout,
                      who + " got no clear refusal from " + address.text() + std::string(kNotSafe));
  };
  if (!keys.open()) {
    SHOAL_TRY(verdict(knock(address, listener, stranger, stranger.id(), kPatience), StrangerFate::kKeyRefused,
                      "a stranger whose key is not admitted"));
  }
  // Its key may pass for this once; the name it claims may not.
  keys.admit(stranger.curve_public());
  const Result<StrangerFate> fate = knock(address, listener, stranger, foreign, kPatience);
  keys.dismiss(stranger.curve_public());
  return verdict(fate, StrangerFate::kClaimRefused, "a stranger under a foreign PeerId");
}

}  // namespace shoal
