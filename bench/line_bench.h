#pragma once
// `shoal-bench line`: what control pays while bulk fills a line. One end serves, the other dials it: it measures round
// trips of small control messages, first alone, then while frames wait for the bulk lane all the time. Real transports
// over the real wire; `scripts/full-line` starts the two ends on hosts of their own with a line between them. Thread:
// one; blocking.
#include <cstdint>
#include <string>

#include "common/result.h"

namespace shoal {

struct LineBenchOptions {
  std::string serve;              // HOST:PORT to listen on: this end answers until the other is gone
  std::string to;                 // PEER_ID@HOST:PORT of a serving end
  double seconds = 10, idle = 4;  // measured full, and before it with the line alone
  std::uint64_t frame_kib = 128;  // of one message
  bool hold = false;              // behind the result stay until stdin ends, so that others can look at our sockets
};

Status run_line_bench(const LineBenchOptions& options);

}  // namespace shoal
