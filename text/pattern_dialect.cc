#include "text/pattern_dialect.h"

#include <algorithm>
#include <array>

#include "text/newer_characters.h"
#include "text/utf8.h"

namespace shoal {
namespace {

// Unicode's White_Space. PCRE2's own \s has U+180E besides.
constexpr std::string_view kSpaces =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view kNoSpaces =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";
// Without C and Cn, from which characters that came later would have to be taken.
constexpr std::array<std::string_view, 35> kCategories = {
    "Cc", "Cf", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No",
    "P",  "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};
// Scripts with what they got after Unicode 14. A bare name of a script is its Script_Extensions to PCRE2.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kScripts = {
    {{"Han", "\\p{sc:Han}\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"},
     {"Hiragana", "\\p{sc:Hiragana}\\x{1b132}"},
     {"Katakana", "\\p{sc:Katakana}\\x{1b155}"},
     {"Hangul", "\\p{sc:Hangul}"},
     {"Thai", "\\p{sc:Thai}"},
     {"Hebrew", "\\p{sc:Hebrew}"},
     {"Greek", "\\p{sc:Greek}"},
     {"Bopomofo", "\\p{sc:Bopomofo}"}}};
constexpr std::array<std::string_view, 7> kGroups = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The inside of a set; empty when we do not know the property.
std::string set_of_property(std::string_view name) {
  for (const auto& [script, set] : kScripts) {
    if (script == name) return std::string(set);
  }
  if (std::find(kCategories.begin(), kCategories.end(), name) == kCategories.end()) return "";
  return "\\p{" + std::string(name) + "}" + newer_characters(name);
}

// PCRE2's own \w is narrower.
std::string set_of_word() {
  std::string set = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
  for (const std::string_view category : {"L", "M", "Nd", "Nl", "Pc"}) set += newer_characters(category);
  return set;
}

// Reads a pattern once, from left to right, and writes it for PCRE2.
class Rewriter {
 public:
  explicit Rewriter(std::string_view in) : in_(in) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      if (!(in_set_ ? step_in_set() : step())) {
        std::size_t until = std::min(in_.size(), at_ + 12);
        while (until < in_.size() && (static_cast<unsigned char>(in_[until]) & 0xC0) == 0x80) ++until;
        return make_error(ErrorCode::kUnsupported,
                          "'" + std::string(in_.substr(at_, until - at_)) + "' in the pattern " + std::string(in_));
      }
    }
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  void copy(std::size_t count) {
    out_.append(in_.substr(at_, count));
    at_ += count;
  }
  bool put(std::string_view text, std::size_t read) {
    out_.append(text);
    at_ += read;
    return true;
  }

  bool step() {
    switch (peek()) {
      case '\\':
        return escape();
      case '[':
        return open_set();
      case '(':
        return group();
      case '{':
        return interval();
      case '^':
      case '$':
        return false;  // of lines in Oniguruma, of the text in PCRE2
      case '.':
        return put("[^\\n]", 1);
      case ']':
      case '}':
        return put(peek() == ']' ? "\\]" : "\\}", 1);
      default:
        copy(1);
        return true;
    }
  }

  bool step_in_set() {
    switch (peek()) {
      case '\\':
        return escape();
      case '[':
        return false;  // a set in a set, which PCRE2 reads as a bracket
      case '&':
        if (peek(1) == '&') return false;  // what two sets share
        break;
      case ']':
        in_set_ = false;
        break;
      default:
        break;
    }
    copy(1);
    return true;
  }

  bool open_set() {
    const std::size_t mark = peek(1) == '^' ? 2 : 1;
    if (peek(mark) == ']') return false;
    in_set_ = true;
    copy(mark);
    set_at_ = at_;
    return true;
  }

  bool group() {
    if (peek(1) == '*') return false;
    if (peek(1) != '?') return put("(?:", 1);  // nothing here refers to a group
    for (const std::string_view opening : kGroups) {
      if (in_.substr(at_).starts_with(opening)) return put(opening, opening.size());
    }
    return false;
  }

  // {n}, {n,} and {n,m}, greedy: Oniguruma reads a sign behind them in its own way.
  bool interval() {
    std::size_t ahead = 1;
    const auto digits = [&] {
      const std::size_t from = ahead;
      while (is_digit(peek(ahead))) ++ahead;
      return ahead - from;
    };
    if (digits() == 0) return false;
    if (peek(ahead) == ',') {
      ++ahead;
      digits();
    }
    if (peek(ahead) != '}') return false;
    const char behind = peek(ahead + 1);
    if (behind == '?' || behind == '+' || behind == '*' || behind == '{') return false;
    copy(ahead + 1);
    return true;
  }

  // A set within the set at hand: it may not be an end of a range.
  bool put_set(std::string_view set, std::size_t read) {
    if (!in_set_) {
      out_.push_back('[');
      put(set, read);
      out_.push_back(']');
      return true;
    }
    if (at_ > set_at_ && in_[at_ - 1] == '-' && at_ - 1 > set_at_) return false;
    if (peek(read) == '-' && peek(read + 1) != ']') return false;
    return put(set, read);
  }

  bool put_all_but(const std::string& set, std::size_t read) {
    return !in_set_ && put("[^" + set + "]", read);  // in a set there is no way to write it
  }

  bool escape() {
    const char c = peek(1);
    switch (c) {
      case 's':
        return put_set(kSpaces, 2);
      case 'S':
        return put_set(kNoSpaces, 2);
      case 'd':
        return put_set(set_of_property("Nd"), 2);
      case 'D':
        return put_all_but(set_of_property("Nd"), 2);
      case 'w':
        return put_set(set_of_word(), 2);
      case 'W':
        return put_all_but(set_of_word(), 2);
      case 'n':
      case 'r':
      case 't':
      case 'f':
        copy(2);
        return true;
      case 'v':
        return put("\\x{b}", 2);  // PCRE2's own \v is every line break
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_unit();
      case 'x':
        return code_point();
      default:
        return literal(c);
    }
  }

  bool literal(char c) {
    if (c == '\0' || is_letter(c) || is_digit(c)) return false;
    const bool ascii = static_cast<unsigned char>(c) < 0x80;
    if (!ascii) ++at_;  // a backslash before a wider character says nothing
    copy(ascii ? 2 : 1);
    return true;
  }

  bool property() {
    if (peek(2) != '{') return false;
    const std::size_t end = in_.find('}', at_);
    if (end == std::string_view::npos) return false;
    const std::string set = set_of_property(in_.substr(at_ + 3, end - at_ - 3));
    if (set.empty()) return false;
    return peek(1) == 'p' ? put_set(set, end + 1 - at_) : put_all_but(set, end + 1 - at_);
  }

  bool code_unit() {
    const std::string_view digits = in_.substr(std::min(in_.size(), at_ + 2), 4);
    if (digits.size() != 4 || !std::all_of(digits.begin(), digits.end(), is_hex)) return false;
    return put("\\x{" + std::string(digits) + "}", 6);
  }

  // \x{H...}, and \xHH of ASCII: beyond it Oniguruma means a byte.
  bool code_point() {
    if (peek(2) == '{') {
      std::size_t ahead = 3;
      while (is_hex(peek(ahead))) ++ahead;
      if (ahead == 3 || peek(ahead) != '}') return false;
      copy(ahead + 1);
      return true;
    }
    if (!is_digit(peek(2)) || peek(2) > '7' || !is_hex(peek(3))) return false;
    copy(4);
    return true;
  }

  std::string_view in_;
  std::size_t at_ = 0;
  std::size_t set_at_ = 0;  // where the contents of the set at hand begin
  bool in_set_ = false;
  std::string out_;
};

}  // namespace

Result<std::string> pcre2_pattern(std::string_view oniguruma) {
  if (oniguruma.size() > kPatternBytesMax) {
    return make_error(ErrorCode::kTooLarge, "a pattern of " + std::to_string(oniguruma.size()) + " bytes; at most " +
                                                std::to_string(kPatternBytesMax));
  }
  return Rewriter(oniguruma).run();
}

std::string pattern_of_literal(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !is_letter(c) && !is_digit(c)) pattern.push_back('\\');
    pattern.push_back(c);
  }
  return pattern;
}

}  // namespace shoal
