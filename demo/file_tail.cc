#include "demo/file_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace shoal {

void FileTail::read_rest(std::vector<std::string>& lines) {
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
}

bool FileTail::follow(std::vector<std::string>& lines) {
  struct stat named = {}, ours = {};
  if (::stat(path_.c_str(), &named) != 0) return false;
  if (file_.get() >= 0 && ::fstat(file_.get(), &ours) == 0 && named.st_ino == ours.st_ino &&
      named.st_dev == ours.st_dev)
    return false;
  auto file = open_file(path_, O_RDONLY | O_CLOEXEC);
  if (!file.ok()) return false;
  if (file_.get() >= 0) read_rest(lines);  // without its name it gets no more
  file_ = std::move(*file);
  return true;
}

std::vector<std::string> FileTail::new_lines() {
  std::vector<std::string> lines;
  do {
    if (file_.get() >= 0) read_rest(lines);
  } while (follow(lines));
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
