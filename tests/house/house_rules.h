#pragma once
// The rules of the house that a program can judge: who may include whom, which libraries show where, what files are
// called. Pure: text in, violations out. Thread: any.
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

struct Violation {
  std::string path;
  int line = 0;  // 0: the file as a whole
  std::string what;
};

struct IncludeLine {
  int line = 0;
  std::string path;
  bool angled = false;  // <...>, not "..."
};
std::vector<IncludeLine> includes_of(std::string_view text);

// `path` is relative to the repository's root and names a C++ or CUDA file. Folders of the product obey all rules;
// tests, bench and examples may include every folder of ours and only keep the rules about names and mixtures.
std::vector<Violation> judge_file(const std::string& path, std::string_view text);

// Reads every file of ours below `root`, for judge_file and judge_code (tests/house/code_rules.h). ERRORS as
// violations: a file that cannot be read.
std::vector<Violation> judge_tree(const std::string& root, int* files_read);

}  // namespace shoal
