#pragma once
// The documents of text files (text/text_source.h), one after the other, in pieces: a file is one document, or each of
// its lines is one, or it has JSON objects with the document in a field, as lines or as an array. Such a file is known
// by its content; one called .jsonl or .ndjson must be one. One thread at a time. Bounds: a JSON object has at most
// kJsonLineBytesMax; a piece at most kPieceBytesMax.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/packed/byte_source.h"
#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kPieceBytesMax = 1u << 20;
inline constexpr std::size_t kAheadBytes = 4u << 10;  // of what follows a piece, shown to `cut`
inline constexpr std::size_t kJsonLineBytesMax = 64u << 20;

struct DocumentOptions {
  std::string field = "text";  // of a JSON object
  bool lines = false;          // of other files each line is a document; a line feed, a carriage return or both end it
  // Where a longer document may be cut: the last place up to `most` at which the two parts of `text`, behind which more
  // may follow, are encoded as the whole is (Tokenizer::safe_cut).
  std::function<std::optional<std::size_t>(std::string_view text, std::size_t most)> cut = {};
};

// A longer document is cut where `cut` says. Without such a place it is cut in front of a blank that stands between two
// words; in front of any blank or within a word only where there is none.
struct Piece {
  std::string text;
  bool ends_document = true;
};

// What was read otherwise than it stands in the files: a person hears of it.
struct TextChanges {
  std::uint64_t replaced = 0;   // places that became U+FFFD, since UTF-8 cannot say what stands there
  std::uint64_t converted = 0;  // files of UTF-16
};

class TextWindow;

class DocumentReader {
 public:
  DocumentReader(std::vector<std::string> files, DocumentOptions options);
  ~DocumentReader();

  // The next piece into `piece`; false: there is none. An empty document is an empty piece that ends it. ERRORS:
  // TextSource's; kMalformed (what should be a JSON object with the field as a text: with file and line), kTooLarge (a
  // JSON object).
  Result<bool> next(Piece& piece);
  // Bytes of all files that were read so far, compressed as they are.
  std::uint64_t taken() const;
  // So far.
  TextChanges changes() const;

  // Whether the file's bytes are the text: it is neither packed nor UTF-16, and has no JSON objects. ERRORS:
  // TextSource's.
  static Result<bool> is_plain_text(const std::string& path);

 private:
  enum class Form { kWhole, kLines, kJsonLines, kJsonObjects };
  Status open_next();
  Result<Form> form_of(bool lines_by_name);
  std::size_t piece_end(std::string_view text) const;
  Result<bool> next_of_file(Piece& piece);
  Result<bool> next_of_whole(Piece& piece);
  Result<bool> next_of_lines(Piece& piece);
  Result<bool> next_of_json(Piece& piece);

  std::vector<std::string> files_;
  DocumentOptions options_;
  std::size_t opened_ = 0;    // files
  std::uint64_t before_ = 0;  // bytes of the files that are over
  std::unique_ptr<TextWindow> window_;
  Form form_ = Form::kWhole;
  bool begun_ = false;          // a document of which more pieces come
  bool whole_given_ = false;    // all of a file that is one document
  bool behind_return_ = false;  // in front of a line, of which the carriage return ended the one before
  std::uint64_t line_ = 0;      // or object of JSON
  TextChanges changes_;         // of JSON, and of the files that are over
  std::string document_;        // of a JSON object, given out up to given_
  std::size_t given_ = 0;
};

}  // namespace shoal
