#include "tests/house/code_rules.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>

namespace shoal {
namespace {

using Names = std::vector<std::string_view>;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// ---- Code without its comments and quotes ---------------------------------------------------------------------------

class Blanker {
 public:
  explicit Blanker(std::string_view text) : text_(text), code_(text) {}

  std::string run() && {
    while (at_ < text_.size()) step();
    return std::move(code_);
  }

 private:
  bool sees(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  // Up to `end`, without its line ends, and goes on there.
  void blank_to(std::size_t end) {
    end = std::min(end, text_.size());
    for (; at_ < end; ++at_)
      if (code_[at_] != '\n') code_[at_] = ' ';
  }

  // Behind the next `what` at or after `from`.
  std::size_t behind(std::string_view what, std::size_t from) const {
    const std::size_t found = text_.find(what, from);
    return found == std::string_view::npos ? text_.size() : found + what.size();
  }

  // The end of this line, or of the last one that a backslash joins to it.
  std::size_t line_end() const {
    std::size_t end = text_.find('\n', at_);
    while (end != std::string_view::npos && end > 0 && text_[end - 1] == '\\') end = text_.find('\n', end + 1);
    return end == std::string_view::npos ? text_.size() : end;
  }

  std::size_t quote_end(char quote) const {
    std::size_t at = at_ + 1;
    while (at < text_.size() && text_[at] != quote && text_[at] != '\n') at += text_[at] == '\\' ? 2 : 1;
    return at + 1;
  }

  bool first_on_its_line() const {
    const std::size_t before = at_ == 0 ? std::string_view::npos : text_.find_last_not_of(" \t", at_ - 1);
    return before == std::string_view::npos || text_[before] == '\n';
  }

  void step() {
    const bool in_word = at_ > 0 && is_word(text_[at_ - 1]);
    if (sees("//")) return blank_to(line_end());
    if (sees("/*")) return blank_to(behind("*/", at_ + 2));
    if (sees("#") && first_on_its_line()) return blank_to(line_end());
    if (!in_word && sees("R\"")) {
      const std::size_t open = text_.find('(', at_);
      if (open == std::string_view::npos) return blank_to(text_.size());
      return blank_to(behind(")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"", open));
    }
    if (sees("\"")) return blank_to(quote_end('"'));
    if (!in_word && sees("'")) return blank_to(quote_end('\''));  // inside of a number it parts its digits
    ++at_;
  }

  std::string_view text_;
  std::string code_;
  std::size_t at_ = 0;
};

// ---- Functions ------------------------------------------------------------------------------------------------------

enum class Scope { kNames, kFunction, kOther };  // what a brace opens: a namespace or class, a function, anything else

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) line += c;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

// Behind `template <...>` and attributes, which say nothing of what is declared.
std::string_view declared(std::string_view head) {
  if (!head.starts_with("template <") && !head.starts_with("template<")) return head;
  int depth = 0;
  for (std::size_t at = head.find('<'); at < head.size(); ++at) {
    depth += head[at] == '<' ? 1 : head[at] == '>' ? -1 : 0;
    if (depth == 0) return head.substr(std::min(head.size(), at + 2));
  }
  return head;
}

bool opens_names(std::string_view head) {
  static const Names kWords = {"namespace", "class ", "struct ", "union "};
  const std::string_view what = declared(head);
  if (what == "extern") return true;  // the "C" behind it is blank
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) { return what.starts_with(word); }) &&
         what.find('(') == std::string_view::npos;
}

Scope scope_of(const std::string& head, char before) {
  if (opens_names(head)) return Scope::kNames;
  const bool has_parameters = head.find('(') != std::string::npos;
  const bool is_value = before != ' ' && before != '\n';  // a{1}: no blank in front
  const bool is_given = head.ends_with('=') || head.ends_with(',') || head.ends_with('(') || head.ends_with('{');
  return has_parameters && !is_value && !is_given ? Scope::kFunction : Scope::kOther;
}

// `public:` stands in front of a declaration and is none of it.
std::size_t behind_labels(std::string_view code, std::size_t from) {
  for (bool again = true; again;) {
    again = false;
    while (from < code.size() && std::isspace(static_cast<unsigned char>(code[from])) != 0) ++from;
    for (const std::string_view label : {"public:", "protected:", "private:"}) {
      if (!code.substr(from).starts_with(label)) continue;
      from += label.size();
      again = true;
    }
  }
  return from;
}

class FunctionReader {
 public:
  explicit FunctionReader(std::string_view text) : code_(code_only(text)) {}

  std::vector<FunctionSpan> run() && {
    for (; at_ < code_.size(); ++at_) step(code_[at_]);
    return std::move(found_);
  }

 private:
  bool in_names() const { return open_.empty() || open_.back() == Scope::kNames; }

  void step(char c) {
    if (c == '\n') ++line_;
    if (c == '{') return open();
    if (c == '}') return close();
    if (c == ';' && in_names()) head_from_ = at_ + 1;
  }

  void open() {
    if (!in_names()) return open_.push_back(Scope::kOther);
    const std::size_t from = behind_labels(code_, head_from_);
    const std::string head = from < at_ ? one_line(std::string_view(code_).substr(from, at_ - from)) : "";
    open_.push_back(scope_of(head, at_ == 0 ? '\n' : code_[at_ - 1]));
    if (open_.back() == Scope::kNames) head_from_ = at_ + 1;
    if (open_.back() != Scope::kFunction) return;
    const auto lines_between = std::count(code_.begin() + static_cast<std::ptrdiff_t>(from),
                                          code_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    found_.push_back({head, line_ - static_cast<int>(lines_between), 0});
  }

  void close() {
    if (open_.empty()) return;
    const Scope closed = open_.back();
    open_.pop_back();
    if (!in_names()) return;
    if (closed == Scope::kFunction) found_.back().lines = line_ - found_.back().line + 1;
    if (closed != Scope::kOther) head_from_ = at_ + 1;  // else the declaration goes on: a_{1}, b_{2} {
  }

  std::string code_;
  std::size_t at_ = 0, head_from_ = 0;
  int line_ = 1;
  std::vector<Scope> open_;
  std::vector<FunctionSpan> found_;
};

// ---- Lengths --------------------------------------------------------------------------------------------------------

void judge_lengths(const std::string& path, std::string_view text, std::vector<Violation>& found) {
  const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  if (lines > kFileLinesMax)
    found.push_back({path, 0, std::to_string(lines) + " lines; at most " + std::to_string(kFileLinesMax)});
  for (const FunctionSpan& function : functions_of(text)) {
    if (function.lines > kFunctionLinesMax)
      found.push_back({path, function.line,
                       std::to_string(function.lines) + " lines, at most " + std::to_string(kFunctionLinesMax) + ": " +
                           function.head.substr(0, 80)});
  }
}

// ---- Words ----------------------------------------------------------------------------------------------------------

// A thing has one word everywhere. These were others' words for it.
struct RetiredWord {
  std::string_view word;
  bool whole;   // else every name that begins with it
  Names rooms;  // where it is refused, as the start of a path; none: everywhere
  std::string_view instead;
};

// In these rooms, and in their tests, a token can only be meant for an entry's name; elsewhere it is a piece of text.
const Names kProtocol = {"router/",          "sync/",      "events/",       "runtime/stage_peer/", "runtime/peer/",
                         "runtime/trainer/", "sim/",       "tests/router/", "tests/sync/",         "tests/events/",
                         "tests/peer/",      "tests/sim/", "tests/swarm/",  "transport/",          "tests/transport/"};

const std::vector<RetiredWord>& retired_words() {
  static const std::vector<RetiredWord> table = {
      {"Token", true, {}, "EntryName"},
      {"parse_token", true, {}, "parse_id"},
      {"token_of", true, {}, "entry_name_of"},
      {"by_token_", true, {}, "by_name_"},
      {"token", true, kProtocol, "entry, or name"},
      {"listed", true, {}, "lost, member or admitted"},
      {"listed_", true, {}, "lost_ or admitted_"},
      {"is_listed", true, {}, "is_lost, is_member or is_admitted"},
      {"on_listed", true, {}, "on_lost"},
      {"kListed", true, {}, "kLost or kKeys"},
      {"unlisted", false, {}, "not admitted"},
      {"planted", true, {}, "nothing: a bug is planted by a patch (tests/planted)"},
      {"planted_", false, {}, "nothing: a bug is planted by a patch (tests/planted)"},
      {"PlantedBugs", true, {}, "nothing: a bug is planted by a patch (tests/planted)"},
  };
  return table;
}

bool applies(const RetiredWord& row, const std::string& path, std::string_view name) {
  if (row.whole ? name != row.word : !name.starts_with(row.word)) return false;
  return row.rooms.empty() ||
         std::any_of(row.rooms.begin(), row.rooms.end(), [&](std::string_view room) { return path.starts_with(room); });
}

void judge_words(const std::string& path, std::string_view text, std::vector<Violation>& found) {
  const std::string code = code_only(text);
  int line = 1;
  for (std::size_t at = 0; at < code.size();) {
    if (code[at] == '\n') ++line;
    if (!is_word(code[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < code.size() && is_word(code[end])) ++end;
    const std::string_view name = std::string_view(code).substr(at, end - at);
    for (const RetiredWord& row : retired_words()) {
      if (applies(row, path, name))
        found.push_back({path, line, "'" + std::string(name) + "' is a retired word; say " + std::string(row.instead)});
    }
    at = end;
  }
}

}  // namespace

std::string code_only(std::string_view text) { return Blanker(text).run(); }

std::vector<FunctionSpan> functions_of(std::string_view text) { return FunctionReader(text).run(); }

std::vector<Violation> judge_comments(const std::string& path, std::string_view text) {
  static const std::regex kHeadless(
      "(^|[^A-Za-z])(for|of|from|to|by|with|than|at|against|behind|before|after|without|between) who\\b");
  static const std::regex kBegins("(^|[.;] )(Who|Whoever|Whom) [a-z]");
  const bool is_page = path.ends_with(".md");
  const std::string code = is_page ? std::string() : code_only(text);
  std::vector<Violation> found;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++number;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::size_t from = at;
    if (!is_page) {  // a comment's two strokes are blanks in the code
      from = text.find("//", at);
      const auto quoted = [&] {
        return std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                          text.begin() + static_cast<std::ptrdiff_t>(from), '"') %
                   2 ==
               1;
      };
      while (from < end && (code[from] != ' ' || quoted())) from = text.find("//", from + 1);
    }
    if (from < end && (is_page || text.substr(from, 3) == "// ")) {
      const std::string comment(text.substr(is_page ? from : from + 3, end - from - (is_page ? 0 : 3)));
      if (std::regex_search(comment, kHeadless) || std::regex_search(comment, kBegins))
        found.push_back({path, number, "a who without a noun: say which peer, member or person"});
      if (!is_page && !path.starts_with("tests/") && comment.starts_with("Of "))
        found.push_back({path, number, "a comment that begins with 'Of': give the sentence its subject"});
    }
    at = end + 1;
  }
  return found;
}

std::vector<Violation> judge_code(const std::string& path, std::string_view text) {
  std::vector<Violation> found;
  judge_lengths(path, text, found);
  judge_words(path, text, found);
  return found;
}

}  // namespace shoal
