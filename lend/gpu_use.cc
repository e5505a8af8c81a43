#include "lend/gpu_use.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <sstream>
#include <utility>

namespace shoal {

Result<GpuUse> gpu_use_in(const std::string& table, std::int64_t own_process) {
  std::istringstream lines(table);
  GpuUse use;
  bool headed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) headed = headed || line.find(" sm ") != std::string::npos;
    std::istringstream cells(line);
    std::string gpu, process, kind, busy, cell, name;
    if (!headed || line.starts_with("#") || !(cells >> gpu >> process >> kind >> busy)) continue;
    while (cells >> cell) name = cell;
    const auto number = [](const std::string& text) {
      return text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 9
                 ? std::optional<std::int64_t>()
                 : std::optional<std::int64_t>(std::stoll(text));
    };
    const auto who = number(process), percent = number(busy);
    if (who == own_process) use.own = true;
    if (who && who != own_process && percent && *percent >= kGpuBusyPercent)
      use.others = name + " (process " + process + ")";
  }
  if (!headed) return make_error(ErrorCode::kUnsupported, "nvidia-smi pmon printed no table of processes");
  return use;
}

Result<GpuUse> ask_gpu_use(int index) {
  const std::string command = "timeout 5 nvidia-smi pmon -c 1 -s u -i " + std::to_string(index) + " 2>/dev/null";
  std::FILE* const pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return make_error(ErrorCode::kUnsupported, "nvidia-smi cannot be started");
  std::string table;
  std::array<char, 4096> part{};
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(part.data(), 1, part.size(), pipe);
    if (table.size() < (1u << 20)) table.append(part.data(), got);
  }
  if (::pclose(pipe) != 0) return make_error(ErrorCode::kUnsupported, "nvidia-smi pmon does not answer");
  return gpu_use_in(table, ::getpid());
}

void GpuBusy::note(const std::string& others, TimePoint now) {
  const bool found = !others.empty();
  if (found) found_at_ = now;
  if (found && std::exchange(found_before_, found)) text_ = "the GPU is busy with " + others;
  found_before_ = found;
  if (!found && now - found_at_ >= kFreeAfter) text_.clear();
}

}  // namespace shoal
