#pragma once
// Hosts of their own on this machine: network namespaces around one forwarder with a rate and a delay (bench/netlab).
// Owns the star: it is taken down with this object. Thread: one at a time.
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

struct StarShape {
  int hosts = 2;
  double bits_per_s = 0;  // each way, of every host
  double one_way_ms = 0;  // between any two hosts
};

class Star {
 public:
  // `tool` is the path of netlab, `scratch` a folder for its output. ERRORS: kUnsupported (not root, no /dev/net/tun:
  // the message says what it needs), kMissing, kIo.
  static Result<Star> up(const std::string& tool, const StarShape& shape, const std::string& scratch);
  Star(Star&& other) noexcept;
  Star& operator=(Star&&) = delete;
  ~Star();

  // `words` as a command of host `host` (0 ..); the command keeps the process that is started.
  std::vector<std::string> in_host(int host, std::vector<std::string> words) const;

 private:
  Star(std::string tool, std::string id, std::string scratch);
  std::string tool_, id_, scratch_;
};

// "100mbit,20" or "100,20" (Mbit/s, milliseconds one way). ERRORS: kInput.
Result<StarShape> parse_net(const std::string& text, int hosts);

}  // namespace shoal
