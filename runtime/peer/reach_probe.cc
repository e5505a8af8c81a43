#include "runtime/peer/reach_probe.h"

#include <utility>

namespace shoal {

ReachProbe::ReachProbe(Options options, Wire& wire, EventLoop& loop, std::function<void()> done)
    : options_(std::move(options)),
      loop_(loop),
      done_(std::move(done)),
      transport_(wire, loop,
                 {.run = options_.run,
                  .self = options_.self,
                  .session = Session::of(options_.self, options_.incarnation),
                  .role = PeerRole::kObserver,
                  .whereabouts = {}}) {
  transport_.set_listener(this);
  transport_.hear(launching(), options_.launching);
}

void ReachProbe::start() {
  started_ = loop_.now();
  look();
}

void ReachProbe::look() {
  if (over_) return;
  if (!transport_.remote(launching())) transport_.dial(launching());
  const LinkStats stats = transport_.stats(launching());
  if (stats.up) {
    found_.round_trip = stats.rtt;
    found_.relayed = stats.relayed;
  }
  if (found_.answer && found_.round_trip > Duration(0)) return end("");
  if (loop_.now() - started_ >= kPatience) {
    if (found_.answer) return end("");
    return end(found_.linked ? "it does not say whether it can dial this machine" : found_.why);
  }
  loop_.after(kLook, lifetime_.guard([this] { look(); }));
}

void ReachProbe::on_link_up(const Remote& remote) {
  if (remote.peer != launching()) return;
  found_.linked = true;
  (void)transport_.send(launching(), ReachQuery{options_.told});
}

void ReachProbe::on_link_down(const Remote& remote, const Error& cause) {
  if (remote.peer != launching() || over_) return;
  found_.why = cause.message;
  const bool for_good = cause.code == ErrorCode::kNotAdmitted || cause.code == ErrorCode::kRefused ||
                        cause.code == ErrorCode::kUnsupported || cause.code == ErrorCode::kVersion;
  if (for_good) loop_.post(lifetime_.guard([this, why = cause.message] { end(why); }));
}

void ReachProbe::on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t) {
  if (transfer != 0) transport_.refuse(remote.peer, transfer);
  if (remote.peer != launching()) return;
  if (const auto* answer = std::get_if<ReachAnswer>(&message)) found_.answer = *answer;
}

void ReachProbe::end(std::string why) {
  if (std::exchange(over_, true)) return;
  found_.why = std::move(why);
  done_();
}

}  // namespace shoal
