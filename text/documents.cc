#include "text/documents.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "common/os/posix_file.h"
#include "text/json_documents.h"
#include "text/text_source.h"

namespace shoal {

// What of a file is read and not taken yet.
class TextWindow {
 public:
  explicit TextWindow(TextSource source) : source_(std::move(source)) {}
  std::string_view view() const { return std::string_view(buffer_).substr(begin_); }
  void take(std::size_t bytes) { begin_ += bytes; }
  bool all_read() const { return all_read_; }
  std::uint64_t taken() const { return source_.taken(); }
  TextChanges changes() const {
    return {.replaced = source_.replaced(), .converted = source_.is_converted() ? 1u : 0u};
  }
  // Until there are so many bytes, or all.
  Status fill(std::size_t wanted) {
    if (view().size() >= wanted || all_read_) return {};
    buffer_.erase(0, begin_);
    begin_ = 0;
    while (buffer_.size() < wanted && !all_read_) {
      SHOAL_ASSIGN(const bool more, source_.read(buffer_));
      all_read_ = !more;
    }
    return {};
  }

 private:
  TextSource source_;
  std::string buffer_;
  std::size_t begin_ = 0;
  bool all_read_ = false;
};

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// A blank between two words, else any, else a character. REQUIRES: text.size() > kPieceBytesMax.
std::size_t blank_in(std::string_view text) {
  constexpr std::size_t kLookedAt = 64u << 10;
  std::optional<std::size_t> blank;
  for (std::size_t i = kPieceBytesMax; i > kPieceBytesMax - kLookedAt; --i) {
    if (text[i] != ' ' && text[i] != '\n') continue;
    if (text[i] == ' ' && is_letter(text[i - 1]) && i + 1 < text.size() && is_letter(text[i + 1])) return i;
    if (!blank) blank = i;
  }
  if (blank) return *blank;
  std::size_t end = kPieceBytesMax;
  while (end > kPieceBytesMax - 4 && continues_character(text[end])) --end;
  return end;
}

// Up to the first of the bytes `ends`, which is not part of it; nothing: the file is over.
Result<std::optional<std::string_view>> line_in(TextWindow& window, std::string_view ends, std::size_t bytes_max) {
  std::size_t seen = 0;
  while (true) {
    const std::string_view text = window.view();
    if (const std::size_t end = text.find_first_of(ends, seen); end != std::string_view::npos)
      return std::optional(text.substr(0, end));
    if (window.all_read()) return text.empty() ? std::nullopt : std::optional(text);
    if (text.size() > bytes_max) return std::optional(text);
    seen = text.size();
    SHOAL_TRY(window.fill(std::max<std::size_t>(2 * seen, 1)));
  }
}

// The JSON object that begins at `at`, as far as it goes when it is too long or cut.
Result<std::string_view> object_at(TextWindow& window, std::size_t at) {
  while (true) {
    const std::string_view text = window.view().substr(at);
    const std::size_t end = json_object_end(text);
    if (end != std::string_view::npos || window.all_read() || text.size() > kJsonLineBytesMax)
      return text.substr(0, end);
    SHOAL_TRY(window.fill(2 * window.view().size()));
  }
}

// What stands from `at` on and is no blank, npos: nothing, as far as is looked.
Result<std::size_t> next_word(TextWindow& window, std::size_t at) {
  SHOAL_TRY(window.fill(at + kJudgedBytes));
  return window.view().find_first_not_of(kBlanks, at);
}

// The next object of an array or a row of objects, or what stands in its place; nothing: the file is over.
Result<std::optional<std::string_view>> object_in(TextWindow& window) {
  std::size_t at = std::string_view::npos;
  while (at == std::string_view::npos) {
    SHOAL_TRY(window.fill(1));
    if (window.view().empty()) return std::optional<std::string_view>();
    at = window.view().find_first_not_of(" \t\r\n,[]");
    window.take(std::min(at, window.view().size()));
  }
  if (window.view()[0] != '{') return std::optional(window.view().substr(0, 1));
  SHOAL_ASSIGN(const std::string_view object, object_at(window, 0));
  return std::optional(object);
}

}  // namespace

DocumentReader::DocumentReader(std::vector<std::string> files, DocumentOptions options)
    : files_(std::move(files)), options_(std::move(options)) {}
DocumentReader::~DocumentReader() = default;

std::uint64_t DocumentReader::taken() const { return before_ + (window_ ? window_->taken() : 0); }
TextChanges DocumentReader::changes() const {
  const TextChanges now = window_ ? window_->changes() : TextChanges{};
  return {.replaced = changes_.replaced + now.replaced, .converted = changes_.converted + now.converted};
}

Result<bool> DocumentReader::next(Piece& piece) {
  while (true) {
    if (window_) {
      SHOAL_ASSIGN(const bool given, next_of_file(piece));
      if (given) return true;
      before_ += window_->taken();
      changes_ = changes();
      window_ = nullptr;
    }
    if (opened_ == files_.size()) return false;
    SHOAL_TRY(open_next());
  }
}

Status DocumentReader::open_next() {
  SHOAL_ASSIGN(TextSource source, TextSource::open(files_[opened_]));
  window_ = std::make_unique<TextWindow>(std::move(source));
  const std::string name = name_of_content(files_[opened_++]);
  SHOAL_ASSIGN(form_, form_of(name.ends_with(".jsonl") || name.ends_with(".ndjson")));
  line_ = 0;
  begun_ = false;
  whole_given_ = false;
  behind_return_ = false;
  return {};
}

Result<DocumentReader::Form> DocumentReader::form_of(bool lines_by_name) {
  const Form text = lines_by_name ? Form::kJsonLines : options_.lines ? Form::kLines : Form::kWhole;
  SHOAL_ASSIGN(std::size_t begin, next_word(*window_, 0));
  const bool array = begin != std::string_view::npos && window_->view()[begin] == '[';
  if (array) {
    SHOAL_ASSIGN(begin, next_word(*window_, begin + 1));
  }
  if (begin == std::string_view::npos || window_->view()[begin] != '{' || (lines_by_name && !array)) return text;
  SHOAL_ASSIGN(const std::size_t key, next_word(*window_, begin + 1));
  if (key == std::string_view::npos || window_->view()[key] != '"') return text;
  SHOAL_ASSIGN(const std::string_view object, object_at(*window_, begin));
  const bool in_a_line = object.find('\n') == std::string_view::npos;
  const JsonField field = read_json_field(object, options_.field, document_);
  if (!field.is_object) return text;
  SHOAL_ASSIGN(const std::size_t behind, next_word(*window_, begin + object.size()));
  const char next = behind == std::string_view::npos ? '\0' : window_->view()[behind];
  if (array) return next == ',' || next == ']' ? Form::kJsonObjects : text;
  // One object alone is data only where it has the field: else it may be a page of somebody's code.
  if (next != '{' && (next != '\0' || !field.trouble.empty())) return text;
  const std::string_view between = window_->view().substr(begin + object.size(), behind - begin - object.size());
  return in_a_line && (next == '\0' || between.find('\n') != std::string_view::npos) ? Form::kJsonLines
                                                                                     : Form::kJsonObjects;
}

Result<bool> DocumentReader::is_plain_text(const std::string& path) {
  std::vector<std::uint8_t> begin(kJudgedBytes);
  SHOAL_ASSIGN(const std::uint64_t size, read_file_at(path, 0, begin));
  begin.resize(std::min<std::uint64_t>(size, begin.size()));
  DocumentReader reader({path}, {});
  SHOAL_TRY(reader.open_next());
  return judge_content(begin).form == TextContent::Form::kUtf8 && reader.form_ == Form::kWhole;
}

Result<bool> DocumentReader::next_of_file(Piece& piece) {
  if (form_ == Form::kJsonLines || form_ == Form::kJsonObjects) return next_of_json(piece);
  return form_ == Form::kLines ? next_of_lines(piece) : next_of_whole(piece);
}

// Where the first piece of a longer text ends.
std::size_t DocumentReader::piece_end(std::string_view text) const {
  if (options_.cut) {
    if (const auto end = options_.cut(text, kPieceBytesMax)) return *end;
  }
  return blank_in(text);
}

Result<bool> DocumentReader::next_of_whole(Piece& piece) {
  if (whole_given_) return false;
  SHOAL_TRY(window_->fill(kPieceBytesMax + kAheadBytes));
  const std::string_view text = window_->view();
  whole_given_ = text.size() <= kPieceBytesMax;
  const std::size_t end = whole_given_ ? text.size() : piece_end(text);
  piece = {.text = std::string(text.substr(0, end)), .ends_document = whole_given_};
  window_->take(end);
  return true;
}

Result<bool> DocumentReader::next_of_lines(Piece& piece) {
  if (behind_return_) {  // a line feed behind it ends no line of its own
    SHOAL_TRY(window_->fill(1));
    window_->take(window_->view().starts_with('\n') ? 1 : 0);
    behind_return_ = false;
  }
  SHOAL_ASSIGN(const auto line, line_in(*window_, "\r\n", kPieceBytesMax + kAheadBytes));
  if (!line && !begun_) return false;
  const std::string_view text = line.value_or("");
  begun_ = text.size() > kPieceBytesMax;
  const std::size_t end = begun_ ? piece_end(text) : text.size();
  piece = {.text = std::string(text.substr(0, end)), .ends_document = !begun_};
  window_->take(end);
  if (begun_ || window_->view().empty()) return true;
  behind_return_ = window_->view()[0] == '\r';
  window_->take(1);
  return true;
}

Result<bool> DocumentReader::next_of_json(Piece& piece) {
  const bool lines = form_ == Form::kJsonLines;
  while (!begun_) {
    SHOAL_ASSIGN(const auto json, lines ? line_in(*window_, "\n", kJsonLineBytesMax) : object_in(*window_));
    if (!json) return false;
    ++line_;
    const std::string where = files_[opened_ - 1] + (lines ? ":" : ": object ") + std::to_string(line_);
    const std::string what = lines ? "the line " : "it ";
    if (json->size() > kJsonLineBytesMax)
      return make_error(ErrorCode::kTooLarge, where + ": " + what +
                                                  "has more than 64 MiB. HINT: cut its document into "
                                                  "several lines, or give it as a file of text");
    if (json->find_first_not_of(kBlanks) != std::string_view::npos) {
      const JsonField field = read_json_field(*json, options_.field, document_);
      if (!field.trouble.empty())
        return make_error(ErrorCode::kMalformed, where + ": " + what + field.trouble + ". HINT: each " +
                                                     (lines ? "line" : "of them") +
                                                     " is an object with the document in a field, which --field names");
      changes_.replaced += field.replaced;
      begun_ = true;
      given_ = 0;
    }
    window_->take(std::min(json->size() + (lines ? 1 : 0), window_->view().size()));
  }
  const std::string_view text = std::string_view(document_).substr(given_);
  begun_ = text.size() > kPieceBytesMax;
  const std::size_t end = begun_ ? piece_end(text) : text.size();
  piece = {.text = std::string(text.substr(0, end)), .ends_document = !begun_};
  given_ += end;
  return true;
}

}  // namespace shoal
