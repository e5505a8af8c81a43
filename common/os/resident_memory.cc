#include "common/os/resident_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
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

std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t kibibytes = 0;
  for (std::string name; file >> name >> kibibytes && name != "MemAvailable:";)
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  return file ? kibibytes << 10 : 0;
}

}  // namespace shoal
