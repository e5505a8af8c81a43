#pragma once
// What had this machine's processors: this process and all below it, others, or nobody. Times are seconds since 1970,
// as in the event files. ProcessorWatch: thread of its owner, reads /proc. The rest: pure; thread-safe.
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal {

// Processor time between two samples, as shares of all that there was.
struct ProcessorShare {
  double from = 0, to = 0;
  double others = 0;  // other processes, and other guests of the same host
  double idle = 0;
};

// The samples of the span of a fault: the same bound as for the rate, which must come back to nine tenths. What takes
// more than a tenth of processors of which nothing is left moves it by as much.
inline constexpr double kOthersMax = 0.1, kIdleMin = 0.1;
struct BusySpan {
  double seconds = 0;  // in which others had more than kOthersMax and less than kIdleMin was idle
  double watched = 0;  // seconds that samples tell of
  double others = 0;   // their mean share

  // Whether nobody can tell what the rate would have been: a third of the time was busy.
  bool undecided() const { return watched > 0 && 3 * seconds >= watched; }
};
BusySpan busy_in(const std::vector<ProcessorShare>& shares, double from, double to);

// ---- what /proc says ----
struct MachineTicks {
  std::uint64_t all = 0, idle = 0;
};
// The first line of /proc/stat. None: it is another.
std::optional<MachineTicks> parse_machine_ticks(std::string_view stat);

struct ProcessTicks {
  pid_t parent = 0;
  std::uint64_t used = 0;
};
// /proc/PID/stat; the program's name may hold blanks and brackets. None: it is no such line.
std::optional<ProcessTicks> parse_process_ticks(std::string_view stat);

// `root` and all that descend from it.
std::map<pid_t, ProcessTicks> family_of(pid_t root, const std::map<pid_t, ProcessTicks>& all);

// Where /proc cannot be read there are no samples, and nothing is undecided.
class ProcessorWatch {
 public:
  // Called often; takes a sample a second.
  void look(double now);
  const std::vector<ProcessorShare>& shares() const { return shares_; }

 private:
  std::vector<ProcessorShare> shares_;
  std::optional<double> looked_at_;
  MachineTicks machine_;
  std::map<pid_t, ProcessTicks> family_;
};

}  // namespace shoal
