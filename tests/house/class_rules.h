#pragma once
// What a program can judge of classes: how many functions one has, and over how many source files it is spread. A class
// that does not fit is two nouns. It reads code as clang-format leaves it. Pure: texts in, violations out. Thread: any.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/house/house_rules.h"

namespace shoal {

constexpr int kClassFunctionsMax = 60, kClassSourcesMax = 2;

// A class or struct with a body; its nested ones stand by themselves.
struct ClassSpan {
  std::string name;
  int line = 0;
  int functions = 0;  // declared or defined in its body
};
std::vector<ClassSpan> classes_of(std::string_view text);

// The classes, by name, some of whose functions the text defines outside of their bodies.
std::vector<std::string> classes_defined_in(std::string_view text);

// Over all the product's files, path -> text.
std::vector<Violation> judge_classes(const std::map<std::string, std::string>& files);

}  // namespace shoal
