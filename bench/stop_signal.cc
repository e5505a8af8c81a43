#include "bench/stop_signal.h"

#include <csignal>
#include <initializer_list>

namespace shoal {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

}  // namespace

void listen_for_stop_signal() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int number) { stop_signal = number; });
}

bool stop_signal_came() { return stop_signal != 0; }

}  // namespace shoal
