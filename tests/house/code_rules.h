#pragma once
// What a program can judge of the code itself: how long files and functions are, and words that were given up for
// better ones. It reads code as clang-format leaves it. Pure: text in, violations out. Thread: any.
#include <string>
#include <string_view>
#include <vector>

#include "tests/house/house_rules.h"

namespace shoal {

constexpr int kFileLinesMax = 400;
constexpr int kFunctionLinesMax = 70;

// The same text, as long and with the same lines, in which comments, preprocessor lines and what stands inside of
// quotes are blanks: what is left is code, and every brace in it is one.
std::string code_only(std::string_view text);

// A function with a body, at namespace level or in a class. What stands inside it (lambdas, local classes) is part of
// it. An initialiser's brace is none: nothing stands between it and the name before it, or a sign such as = does.
struct FunctionSpan {
  std::string head;  // one line: what stands before the body
  int line = 0;      // of the head's first word
  int lines = 0;     // from there to the closing brace
};
std::vector<FunctionSpan> functions_of(std::string_view text);

// Comments in which a *who* has no noun (it stands behind a preposition, or begins the sentence), and in the product
// those that begin with "Of". A line of a page is judged as a comment.
std::vector<Violation> judge_comments(const std::string& path, std::string_view text);

// `path` as in judge_file: the words depend on the room, and a few paths are still allowed to be longer.
std::vector<Violation> judge_code(const std::string& path, std::string_view text);

}  // namespace shoal
