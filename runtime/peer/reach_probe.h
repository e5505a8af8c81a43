#pragma once
// What a machine learns of a run before it joins: whether there is a link to the launching process, over what, its
// round trip, and where that process can dial this one. It is no member and pays for no dial, so that its own host
// alone is dialled (transport/whereabouts.h).
//
// Thread: loop only.   Borrows: wire, loop.   Bounds: kPatience.
#include <functional>
#include <optional>
#include <string>

#include "common/crypto/sign.h"
#include "common/event_loop.h"
#include "common/lifetime.h"
#include "transport/transport.h"

namespace shoal {

class ReachProbe final : private Transport::Listener {
 public:
  // The launching process waits 5 s for an address that drops what comes.
  static constexpr Duration kPatience = 20s, kLook = 50ms;

  struct Options {
    RunId run;
    PeerId self;
    Whereabouts launching;  // the launching process
    Whereabouts told;       // our own, as others would be told
    std::uint64_t incarnation = 0;
  };
  struct Found {
    bool linked = false, relayed = false;
    Duration round_trip{};                // 0: not measured
    std::optional<ReachAnswer> answer{};  // none: `why`
    std::string why{};                    // it did not link, or not answer
  };

  // `done` is called once.
  ReachProbe(Options options, Wire& wire, EventLoop& loop, std::function<void()> done);
  void start();
  const Found& found() const { return found_; }

 private:
  // Transport::Listener
  void on_link_up(const Remote& remote) override;
  void on_link_down(const Remote& remote, const Error& cause) override;
  void on_message(const Remote& remote, Message message, TransferId transfer, std::uint64_t frame_bytes) override;
  void on_frames(const Remote&, TransferId, Result<std::vector<Bytes>>) override {}

  PeerId launching() const { return as_peer(options_.run); }
  void look();
  void end(std::string why);

  const Options options_;
  EventLoop& loop_;
  const std::function<void()> done_;
  Transport transport_;
  Found found_;
  TimePoint started_{};
  bool over_ = false;
  Lifetime lifetime_;
};

}  // namespace shoal
