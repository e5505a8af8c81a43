#include "demo/file_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace shoal {

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

std::string last_lines(const std::string& path, std::size_t count) {
  const std::vector<std::string> lines = FileTail(path).new_lines();
  std::string text;
  for (std::size_t i = lines.size() > count ? lines.size() - count : 0; i < lines.size(); ++i)
    text += "\n    " + lines[i];
  return text;
}

}  // namespace shoal
