#include "text/documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "common/check.h"

namespace shoal {

// What of a file is read and not taken yet.
class TextWindow {
 public:
  explicit TextWindow(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  std::string_view view() const { return std::string_view(buffer_).substr(begin_); }
  void take(std::size_t bytes) { begin_ += bytes; }
  bool all_read() const { return all_read_; }
  std::uint64_t taken() const { return source_->taken(); }
  // Until there are so many bytes, or all.
  Status fill(std::size_t wanted) {
    if (view().size() >= wanted || all_read_) return {};
    buffer_.erase(0, begin_);
    begin_ = 0;
    while (buffer_.size() < wanted && !all_read_) {
      const std::size_t before = buffer_.size();
      buffer_.resize(std::max(wanted, before + kReadBytes));
      const auto got =
          source_->read({reinterpret_cast<std::uint8_t*>(buffer_.data()) + before, buffer_.size() - before});
      buffer_.resize(before + (got.ok() ? *got : 0));
      if (!got.ok()) return got.error();
      all_read_ = *got == 0;
    }
    return {};
  }

 private:
  static constexpr std::size_t kReadBytes = 256u << 10;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  std::size_t begin_ = 0;
  bool all_read_ = false;
};

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Where the first piece of a longer text ends. REQUIRES: text.size() > kPieceBytesMax.
std::size_t piece_end(std::string_view text) {
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

// The field of a JSON object that is one line, without keeping the rest of it: memory does not go by how it nests.
class FieldFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  FieldFinder(std::string_view field, std::string& found) : field_(field), found_(found) {}
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool string(string_t& text) override {
    if (depth_ == 0) return refuse("is no object");
    if (depth_ == 1 && wanted_) {
      found_.swap(text);
      has_field_ = true;
    }
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 1 && wanted_) return other();
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    wanted_ = depth_ == 1 && name == field_;
    return true;
  }
  bool end_object() override {
    --depth_;
    wanted_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ <= 1 && (depth_ == 0 || wanted_)) return other();
    ++depth_;
    return true;
  }
  bool end_array() override { return end_object(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
    return refuse("is no JSON from column " + std::to_string(at) + " on");
  }
  // Empty: the line has the field as a text.
  std::string trouble() const {
    return why_.empty() && !has_field_ ? "has no field \"" + std::string(field_) + "\"" : why_;
  }

 private:
  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool other() {
    if (depth_ == 0) return refuse("is no object");
    return depth_ > 1 || !wanted_ || refuse("has no text as field \"" + std::string(field_) + "\"");
  }
  std::string_view field_;
  std::string& found_;
  std::size_t depth_ = 0;
  bool wanted_ = false, has_field_ = false;
  std::string why_;
};

// Up to the first line feed, which is not part of it; nothing: the file is over.
Result<std::optional<std::string_view>> line_in(TextWindow& window, std::size_t bytes_max) {
  std::size_t seen = 0;
  while (true) {
    const std::string_view text = window.view();
    if (const std::size_t end = text.find('\n', seen); end != std::string_view::npos)
      return std::optional(text.substr(0, end));
    if (window.all_read()) return text.empty() ? std::nullopt : std::optional(text);
    if (text.size() > bytes_max) return std::optional(text);
    seen = text.size();
    SHOAL_TRY(window.fill(std::max<std::size_t>(2 * seen, 1)));
  }
}

}  // namespace

DocumentReader::DocumentReader(std::vector<std::string> files, DocumentOptions options)
    : files_(std::move(files)), options_(std::move(options)) {}
DocumentReader::~DocumentReader() = default;

std::uint64_t DocumentReader::taken() const { return before_ + (window_ ? window_->taken() : 0); }

Result<bool> DocumentReader::next(Piece& piece) {
  while (true) {
    if (window_) {
      SHOAL_ASSIGN(const bool given, next_of_file(piece));
      if (given) return true;
      before_ += window_->taken();
      window_ = nullptr;
    }
    if (opened_ == files_.size()) return false;
    SHOAL_ASSIGN(auto source, ByteSource::open(files_[opened_]));
    window_ = std::make_unique<TextWindow>(std::move(source));
    const std::string content = name_of_content(files_[opened_++]);
    const bool json = content.ends_with(".jsonl") || content.ends_with(".ndjson");
    form_ = json ? Form::kJsonLines : options_.lines ? Form::kLines : Form::kWhole;
    line_ = 0;
    begun_ = false;
    whole_given_ = false;
  }
}

Result<bool> DocumentReader::next_of_file(Piece& piece) {
  if (form_ == Form::kJsonLines) return next_of_json(piece);
  return form_ == Form::kLines ? next_of_lines(piece) : next_of_whole(piece);
}

Result<bool> DocumentReader::next_of_whole(Piece& piece) {
  if (whole_given_) return false;
  SHOAL_TRY(window_->fill(kPieceBytesMax + 2));
  const std::string_view text = window_->view();
  whole_given_ = text.size() <= kPieceBytesMax;
  const std::size_t end = whole_given_ ? text.size() : piece_end(text);
  piece = {.text = std::string(text.substr(0, end)), .ends_document = whole_given_};
  window_->take(end);
  return true;
}

Result<bool> DocumentReader::next_of_lines(Piece& piece) {
  SHOAL_ASSIGN(const auto line, line_in(*window_, kPieceBytesMax + 1));
  if (!line && !begun_) return false;
  const std::string_view text = line.value_or("");
  begun_ = text.size() > kPieceBytesMax;
  const std::size_t end = begun_ ? piece_end(text) : text.size();
  piece = {.text = std::string(text.substr(0, end)), .ends_document = !begun_};
  if (!begun_ && piece.text.ends_with('\r')) piece.text.pop_back();
  window_->take(end + (!begun_ && end < window_->view().size() ? 1 : 0));
  return true;
}

Result<bool> DocumentReader::next_of_json(Piece& piece) {
  while (!begun_) {
    SHOAL_ASSIGN(const auto line, line_in(*window_, kJsonLineBytesMax));
    if (!line) return false;
    ++line_;
    const std::string where = files_[opened_ - 1] + ":" + std::to_string(line_);
    if (line->size() > kJsonLineBytesMax)
      return make_error(ErrorCode::kTooLarge, where +
                                                  ": the line has more than 64 MiB. HINT: cut its document into "
                                                  "several lines, or give it as a file of text");
    if (line->find_first_not_of(" \t\r") != std::string_view::npos) {
      FieldFinder finder(options_.field, document_);
      nlohmann::json::sax_parse(line->begin(), line->end(), &finder);
      if (!finder.trouble().empty())
        return make_error(ErrorCode::kMalformed, where + ": the line " + finder.trouble() +
                                                     ". HINT: each line is an object with the document in a field, "
                                                     "which --field names");
      begun_ = true;
      given_ = 0;
    }
    window_->take(std::min(line->size() + 1, window_->view().size()));
  }
  const std::string_view text = std::string_view(document_).substr(given_);
  begun_ = text.size() > kPieceBytesMax;
  const std::size_t end = begun_ ? piece_end(text) : text.size();
  piece = {.text = std::string(text.substr(0, end)), .ends_document = !begun_};
  given_ += end;
  return true;
}

}  // namespace shoal
