#include "transport/zmq/zmq_trial.h"

#include "common/os/thread_loop.h"
#include "transport/zmq/lane_greeting.h"

namespace shoal {
namespace {
// A starved machine misses the time limits under which strangers connect to it: it is asked until it answers.
Result<StrangerFate> knock_until_answered(const HostPort& address, const PeerId& listener, const KeyPair& key,
                                          const PeerId& claimed, const TrialTimes& times) {
  for (const TimePoint end = monotonic_now() + times.all;;) {
    const Result<StrangerFate> fate = knock(address, listener, key, claimed, times.knock);
    if (!fate.ok() || *fate != StrangerFate::kSilence || monotonic_now() >= end) return fate;
  }
}
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

Status try_as_stranger(HostPort address, const PeerId& listener, KeyCheck& keys, TrialTimes times) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  const KeyPair stranger = KeyPair::generate();
  const PeerId foreign = KeyPair::generate().id();
  keys.expect_trial(stranger.curve_public());
  const auto verdict = [&](const Result<StrangerFate>& fate, StrangerFate wanted, const std::string& who) -> Status {
    if (!fate.ok()) return fate.error();
    if (*fate == wanted) return Status::success();
    const std::string trial = "the trial on start: " + who;
    if (*fate == StrangerFate::kSilence)
      return make_error(ErrorCode::kTimeout,
                        trial + " was not answered at " + address.text() + " in " + std::to_string(times.all / 1s) +
                            " s. HINT: this machine is too busy to answer itself, or a firewall drops what it sends "
                            "to its own address; see to that and start again");
    return make_error(ErrorCode::kRefused,
                      trial + (*fate == StrangerFate::kAccepted ? " was let in at " : " got no clear refusal at ") +
                          address.text() +
                          "; nothing may run on it. HINT: is another libzmq in use than the one this "
                          "program was built with?");
  };
  if (!keys.open()) {
    SHOAL_TRY(verdict(knock_until_answered(address, listener, stranger, stranger.id(), times),
                      StrangerFate::kKeyRefused, "a stranger whose key is not admitted"));
  }
  // Its key may pass for this once; the name it claims may not.
  keys.admit(stranger.curve_public());
  const Result<StrangerFate> fate = knock_until_answered(address, listener, stranger, foreign, times);
  keys.dismiss(stranger.curve_public());
  return verdict(fate, StrangerFate::kClaimRefused, "a stranger under a foreign PeerId");
}

}  // namespace shoal
