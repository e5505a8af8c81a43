#pragma once
// A folder for what a bench or the demo writes: one that was named, which stays, or a temporary one that goes with the
// object. Owns it.
#include <string>

#include "common/result.h"

namespace shoal {

class WorkFolder {
 public:
  // `kept` is made where it is not there; empty: a temporary one, called after `name`. ERRORS: kIo.
  static Result<WorkFolder> make(const std::string& name, const std::string& kept = "");
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();
  const std::string& path() const { return path_; }  // absolute

 private:
  WorkFolder(std::string path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}
  std::string path_;
  bool temporary_;
};

}  // namespace shoal
