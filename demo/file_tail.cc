#include "demo/file_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "common/os/thread_loop.h"

namespace shoal {
namespace {

constexpr Duration kLineLook = 20ms;
constexpr std::size_t kErrorLines = 8;

}  // namespace

std::vector<std::string> FileTail::new_lines() {
  std::vector<std::string> lines;
  if (file_.get() < 0) {
    auto file = open_file(path_, O_RDONLY | O_CLOEXEC);
    if (!file.ok()) return lines;
    file_ = std::move(*file);
  }
  char bytes[65536];
  ssize_t size;
  while ((size = ::read(file_.get(), bytes, sizeof bytes)) > 0) {
    const char* const end = bytes + size;
    for (const char* at = bytes; at != end;) {
      const char* const newline = std::find(at, end, '\n');
      begun_.append(at, newline);
      if (newline == end) break;
      lines.push_back(std::move(begun_));
      begun_.clear();
      at = newline + 1;
    }
  }
  return lines;
}

Result<std::string> wait_for_line(FileTail& file, const std::string& begins, const std::string& error_path,
                                  Duration budget, const std::function<Status()>& lives) {
  for (const TimePoint deadline = monotonic_now() + budget;; std::this_thread::sleep_for(kLineLook)) {
    const Status worth_it = lives();
    for (const std::string& line : file.new_lines())
      if (line.starts_with(begins)) return line.substr(begins.size());
    SHOAL_TRY(worth_it);
    if (monotonic_now() > deadline)
      return make_error(ErrorCode::kUnreachable, file.path() + ": no line \"" + begins + "...\" within " +
                                                     std::to_string(static_cast<int>(seconds_of(budget))) + " s." +
                                                     last_lines(error_path, kErrorLines));
  }
}

std::string last_lines(const std::string& path, std::size_t count) {
  const std::vector<std::string> lines = FileTail(path).new_lines();
  std::string text;
  for (std::size_t i = lines.size() > count ? lines.size() - count : 0; i < lines.size(); ++i)
    text += "\n    " + lines[i];
  return text;
}

}  // namespace shoal
