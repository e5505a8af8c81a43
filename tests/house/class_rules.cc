#include "tests/house/class_rules.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "tests/house/code_rules.h"

namespace shoal {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The word that begins at `at`, and moves `at` behind it and the blanks after it.
std::string_view word_at(std::string_view code, std::size_t& at) {
  const std::size_t from = at;
  while (at < code.size() && is_word(code[at])) ++at;
  const std::string_view word = code.substr(from, at - from);
  while (at < code.size() && std::isspace(static_cast<unsigned char>(code[at])) != 0) ++at;
  return word;
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

// Template arguments hold parentheses that belong to no function: std::function<void()>.
std::string without_arguments(std::string_view text) {
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<' && i > 0 && (is_word(text[i - 1]) || text[i - 1] == ' ')) {
      ++depth;
    } else if (text[i] == '>' && depth > 0 && text[i - 1] != '-') {
      --depth;
    } else if (depth == 0) {
      out += text[i];
    }
  }
  return out;
}

// What stands in a class up to ';' or a brace: does it declare a function?
bool declares_function(std::string_view statement) {
  const std::string text = without_arguments(statement);
  const std::size_t open = text.find('(');
  if (open == std::string::npos) return false;
  for (const std::string_view other : {"using", "friend", "static_assert", "enum", "class", "struct", "union"})
    if (has_word(text, other)) return false;
  const std::size_t equals = text.find('=');
  return equals == std::string::npos || equals > open || text.find("operator") < equals;
}

int functions_in(std::string_view body) {
  int depth = 0, functions = 0;
  std::string statement;
  for (const char c : body) {
    if (c == '{' && depth++ == 0) {
      functions += declares_function(statement) ? 1 : 0;
      // Behind a member's initialiser its ';' follows, behind a function nothing does.
      statement.clear();
    } else if (c == '}') {
      --depth;
    } else if (depth == 0 && c == ';') {
      functions += declares_function(statement) ? 1 : 0;
      statement.clear();
    } else if (depth == 0) {
      statement += c;
    }
  }
  return functions;
}

std::size_t matching_brace(std::string_view code, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < code.size(); ++at) {
    depth += code[at] == '{' ? 1 : code[at] == '}' ? -1 : 0;
    if (depth == 0) return at;
  }
  return code.size();
}

}  // namespace

std::vector<ClassSpan> classes_of(std::string_view text) {
  const std::string code = code_only(text);
  std::vector<ClassSpan> found;
  std::string_view before;
  for (std::size_t at = 0; at < code.size();) {
    if (!is_word(code[at])) {
      ++at;
      continue;
    }
    const std::size_t from = at;
    const std::string_view word = word_at(code, at);
    const bool opens = (word == "class" || word == "struct") && before != "enum";
    before = word;
    if (!opens) continue;
    std::size_t end = at;
    const std::string name(word_at(code, end));
    std::size_t behind = end;
    if (word_at(code, behind) == "final") end = behind;
    if (name.empty() || end >= code.size() || (code[end] != '{' && code[end] != ':')) continue;
    if (code.compare(end, 2, "::") == 0) continue;  // of another namespace: std::hash
    const std::size_t open = code.find_first_of("{;", end);
    if (open == std::string::npos || code[open] != '{') continue;
    const std::size_t close = matching_brace(code, open);
    found.push_back(
        {name, 1 + static_cast<int>(std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(from), '\n')),
         functions_in(std::string_view(code).substr(open + 1, close - open - 1))});
    at = open + 1;  // its nested classes
  }
  return found;
}

std::vector<std::string> classes_defined_in(std::string_view text) {
  std::set<std::string> names;
  for (const FunctionSpan& function : functions_of(text)) {
    const std::string head = without_arguments(function.head);
    const std::size_t open = head.find('(');
    const std::size_t colons = head.rfind("::", open);
    if (colons == std::string::npos) continue;
    // What stands behind the last "::" is the function's name, and no type in front of one: std::string f().
    const std::string name = head.substr(colons + 2, open - colons - 2);
    if (name.find(' ') != std::string::npos && !name.starts_with("operator")) continue;
    std::size_t from = colons;
    while (from > 0 && is_word(head[from - 1])) --from;
    names.insert(head.substr(from, colons - from));
  }
  return {names.begin(), names.end()};
}

std::vector<Violation> judge_classes(const std::map<std::string, std::string>& files) {
  std::vector<Violation> found;
  std::map<std::string, std::string> declared_in;  // class -> path of its body
  for (const auto& [path, text] : files) {
    for (const ClassSpan& span : classes_of(text)) {
      declared_in.emplace(span.name, path);
      if (span.functions > kClassFunctionsMax)
        found.push_back({path, span.line,
                         "class " + span.name + " has " + std::to_string(span.functions) + " functions, at most " +
                             std::to_string(kClassFunctionsMax) + ": it is more than one noun"});
    }
  }
  std::map<std::string, std::vector<std::string>> sources;
  for (const auto& [path, text] : files) {
    if (!path.ends_with(".cc") && !path.ends_with(".cu")) continue;
    for (const std::string& name : classes_defined_in(text))
      if (declared_in.contains(name)) sources[name].push_back(path);
  }
  for (const auto& [name, paths] : sources)
    if (paths.size() > static_cast<std::size_t>(kClassSourcesMax))
      found.push_back({declared_in.at(name), 0,
                       "class " + name + " is spread over " + std::to_string(paths.size()) + " sources, at most " +
                           std::to_string(kClassSourcesMax)});
  return found;
}

}  // namespace shoal
