#pragma once
// SIGINT and SIGTERM of a benchmark that has programs and folders to clear away: it looks whether one came, and ends in
// order.
namespace shoal {

// From here on a signal is kept and ends nothing by itself.
void listen_for_stop_signal();
bool stop_signal_came();

}  // namespace shoal
