#pragma once
// Paths that are no regular files, for tests of whoever opens a file that a user named: to open one of these may wait
// for ever, to read one may never end. Thread: any.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/common/scratch_folder.h"

namespace shoal {

// Path, and what an error calls its kind. The FIFO is made in `folder`.
inline std::vector<std::pair<std::string, std::string>> irregular_files(const ScratchFolder& folder) {
  EXPECT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  return {{folder / "fifo", "a FIFO"}, {folder.path(), "a folder"}, {"/dev/zero", "a device"}};
}

}  // namespace shoal
