#include "common/os/resident_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace shoal {

ResidentMemory resident_memory() {
  ResidentMemory memory;
  std::uint64_t pages = 0, resident = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident)
    memory.now = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) memory.most = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
  memory.most = std::max(memory.most, memory.now);
  return memory;
}

namespace {

// The figure of a file that has nothing else; none: there is no such file, or it says "max".
std::optional<std::uint64_t> figure_in(const std::string& path) {
  std::uint64_t figure = 0;
  return std::ifstream(path) >> figure ? std::optional(figure) : std::nullopt;
}

// The figure behind `name` in a file of lines; 0 without one.
std::uint64_t figure_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::uint64_t figure = 0;
  for (std::string line_name; file >> line_name >> figure && line_name != name;)
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  return file ? figure : 0;
}

// What one control group has left: files in its caches give way.
std::uint64_t left_in(const std::string& group, const char* limit, const char* usage, const char* cache) {
  const auto most = figure_in(group + limit), used = figure_in(group + usage);
  if (!most || !used) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t held = *used - std::min(*used, figure_of(group + "/memory.stat", cache));
  return *most - std::min(*most, held);
}

// The least of a group and of all above it. In a container the path may be the host's: then only its root is there.
std::uint64_t left_in_all(const std::string& root, std::string path, bool second_version) {
  const std::string mount = root + (second_version ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
  for (;; path.erase(path.rfind('/'))) {
    const std::string group = path == "/" ? mount : mount + path;
    left = std::min(left, second_version ? left_in(group, "/memory.max", "/memory.current", "inactive_file")
                                         : left_in(group, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                                   "total_inactive_file"));
    if (path.find('/') == std::string::npos) return left;
  }
}

}  // namespace

std::uint64_t available_memory(const std::string& root) {
  std::uint64_t left = figure_of(root + "/proc/meminfo", "MemAvailable:") << 10;
  if (left == 0) return 0;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines of "number:controllers:path"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty() || controllers == "memory")
      left = std::min(left, left_in_all(root, line.substr(second + 1), controllers.empty()));
  }
  return std::max<std::uint64_t>(left, 1);
}

}  // namespace shoal
