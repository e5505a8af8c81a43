#pragma once
// HTTP for browsers on this machine: GET and HEAD on 127.0.0.1, and events to those that stay (server-sent events).
// libmicrohttpd on a thread of its own does the protocol.
//
// Thread: publish() and the counts from any; answers are asked for on the server's thread, and must not wait.
// publish() never waits for a viewer: one for which kWaitingMax events wait is cut off, and hears how much it missed
// when it comes back with its last event's number.
// Bounds: kConnectionsMax, of these kViewersMax that stay; kHeaderBytesMax; kIdle.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time.h"
#include "page/page_port.h"

namespace shoal {

struct PageAnswer {
  unsigned status = 200;
  std::string type;
  std::shared_ptr<const std::string> body;
};
// `at`: seconds since 1970, where the request has "?at=". None: nothing is there.
using PageAnswers = std::function<std::optional<PageAnswer>(std::string_view path, std::optional<double> at)>;

class LoopbackHttp {
 public:
  static constexpr unsigned kConnectionsMax = 16;
  static constexpr std::size_t kViewersMax = 8;
  static constexpr std::size_t kWaitingMax = 8;  // events for one viewer
  static constexpr Duration kIdle = 5s;          // without a byte

  struct Options {
    PagePort at{.port = 0};
    bool stays = true;      // /events is there
    PageAnswers answers{};  // of what is no asset (page/page_assets.h)
  };
  // ERRORS: kBusy (the port that was named is taken), kIo.
  static Result<std::unique_ptr<LoopbackHttp>> open(Options options);
  virtual ~LoopbackHttp() = default;

  virtual std::uint16_t port() const = 0;
  // `name`: of the event; `data`: one line. A viewer that comes later begins with the newest of each name.
  virtual void publish(const std::string& name, const std::string& data) = 0;
  virtual std::size_t viewers() const = 0;
  virtual std::uint64_t cut_off() const = 0;  // viewers that were too slow
};

}  // namespace shoal
