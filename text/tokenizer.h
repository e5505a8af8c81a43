#pragma once
// A tokenizer as Hugging Face's `tokenizers` writes it to tokenizer.json: text to ids and back. Two kinds: byte-level
// BPE (GPT-2, Llama 3, Qwen, SmolLM) and the sentencepiece kind with byte fallback (Llama 2, Mistral). What a file asks
// for and we do not have is refused by its name (docs/FILES.md, "Tokenizers"). Ids are equal to those of that package
// without its post-processor; of that begin() is read.
// Immutable once loaded; thread-safe: calls of `encode` at once share nothing that they write. Bounds: files up to
// kTokenizerBytesMax; beside the file's own parts 2 MiB for each call of `encode` that ran at once.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/crypto/hash.h"
#include "common/result.h"

namespace shoal {

inline constexpr std::size_t kTokenizerBytesMax = 64u << 20;
inline constexpr std::size_t kCutLookedBack = 1u << 10;
inline constexpr char kMakeTokenizerHint[] =
    ". HINT: shoal reads tokenizer.json; from tokenizer.model, or vocab.json and merges.txt, Python's transformers "
    "makes "
    "one: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)";

class Tokenizer {
 public:
  // ERRORS: kMissing, kIo, kTooLarge; kMalformed (no JSON, holes in the vocabulary, a merge of unknown tokens),
  // kUnsupported (the key and the value that we do not have).
  static Result<Tokenizer> load(const std::string& path);
  static Result<Tokenizer> parse(ByteView json, const std::string& origin);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Appends the ids of `text`. Bytes that are no UTF-8 are read as U+FFFD, one for each longest begin of a character,
  // as Python's decoding with errors="replace" does. The contents of added tokens in the text become those tokens.
  void encode(std::string_view text, std::vector<std::uint32_t>& ids) const;
  // The last place up to `most` where `text`, behind which more may follow, can be cut: the ids of the two parts, one
  // behind the other, are those of the whole. Proved by the tokenizer's own steps: wherever one begins to cut within
  // kCutLookedBack in front of the place, it cuts there, too, and what it does so hangs on nothing behind `text`.
  // Nothing where there is no such place, as of the kinds that put something in front of a text; and where a piece that
  // is merged as one is longer than that. REQUIRES: valid UTF-8.
  std::optional<std::size_t> safe_cut(std::string_view text, std::size_t most) const;
  // The text of ids, in UTF-8: a character that is cut becomes U+FFFD. Special tokens are left out unless
  // `with_special`; ids beyond the vocabulary give nothing.
  std::string decode(std::span<const std::uint32_t> ids, bool with_special = false) const;
  // The bytes that an id alone stands for, for text that comes token by token: a character may be cut between two. A
  // special token gives its content, and the sentencepiece kind the space in front of a text that `decode` takes away.
  std::string bytes_of(std::uint32_t id) const;

  std::uint32_t vocabulary() const;  // ids are below it, added tokens counted
  std::optional<std::uint32_t> id_of(std::string_view content) const;
  bool is_special(std::uint32_t id) const;
  // What the file's post-processor (a TemplateProcessing) puts in front of a text. encode() does not.
  const std::vector<std::uint32_t>& begin() const;
  // What ends a document where no file beside this one says it (text/text_ends.h): <|endoftext|>, <|end_of_text|>, </s>
  // or <|im_end|>, the first of them that is there.
  std::optional<std::uint32_t> end_of_text() const;
  const Digest& digest() const;  // BLAKE2b-256 of the file

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace shoal
