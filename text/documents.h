#pragma once
// The documents of text files, one after the other, in pieces: a file is one document, or each of its lines is one, or
// each line is a JSON object (.jsonl, .ndjson) with the document in a field. Files may be compressed
// (common/packed/byte_source.h). One thread at a time. Bounds: a line of JSON has at most kJsonLineBytesMax; a piece at
// most kPieceBytesMax.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/packed/byte_source.h"
#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kPieceBytesMax = 1u << 20;
inline constexpr std::size_t kJsonLineBytesMax = 64u << 20;

struct DocumentOptions {
  std::string field = "text";  // of a JSON line
  bool lines = false;          // of other files each line is a document
};

// A longer document is cut in front of a blank that stands between two words, so that byte-level BPE gives the same ids
// for the pieces as for the whole; in front of any blank or within a word only where there is no such place.
struct Piece {
  std::string text;
  bool ends_document = true;
};

class TextWindow;

class DocumentReader {
 public:
  DocumentReader(std::vector<std::string> files, DocumentOptions options);
  ~DocumentReader();

  // The next piece into `piece`; false: there is none. An empty document is an empty piece that ends it. ERRORS:
  // ByteSource's; kMalformed (a line that is no JSON object with the field as a text: with file and line), kTooLarge
  // (a line of JSON).
  Result<bool> next(Piece& piece);
  // Bytes of all files that were read so far, compressed as they are.
  std::uint64_t taken() const;

 private:
  enum class Form { kWhole, kLines, kJsonLines };
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
  bool begun_ = false;        // a document of which more pieces come
  bool whole_given_ = false;  // all of a file that is one document
  std::uint64_t line_ = 0;    // of JSON
  std::string document_;      // of a JSON line, given out up to given_
  std::size_t given_ = 0;
};

}  // namespace shoal
