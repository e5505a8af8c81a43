#pragma once
// What a command makes, taken away again where the command fails behind it: a failed command leaves nothing new.
#include <string>
#include <vector>

namespace shoal {

// One thread.
class NewFiles {
 public:
  NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;
  // Without keep(): files of expected names, and folders that are empty without them. What was there when it was
  // expected stays, also where it was replaced.
  ~NewFiles();

  // A file or a folder that is about to be made, through links, and the folders above it.
  void expect(const std::string& path);
  void keep() { absent_.clear(); }

 private:
  std::vector<std::string> absent_;  // outer ones first
};

}  // namespace shoal
