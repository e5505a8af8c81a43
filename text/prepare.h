#pragma once
// Makes a token file of text files: documents (text/documents.h) are encoded by several threads at a time, written in
// their order, with what begins a text in front of each and the end-of-text id behind it. Memory is bounded by the
// number of threads, whatever the files have. The file is written beside its place and renamed, so that no half of it
// is ever there; then its sidecar.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "common/tensor_view.h"
#include "text/documents.h"
#include "text/token_format.h"

namespace shoal {

// What is needed of a tokenizer.
struct TextEncoder {
  // Appends the ids of a text, all below `vocabulary`. Thread: any, several at a time.
  std::function<void(std::string_view text, std::vector<std::uint32_t>& ids)> encode;
  std::uint32_t vocabulary = 0;
  std::vector<std::uint32_t> begin = {};  // stands in front of each document
  std::optional<std::uint32_t> end_of_text = {};
  Digest digest = {};
  // DocumentOptions::cut, for what `encode` does.
  std::function<std::optional<std::size_t>(std::string_view text, std::size_t most)> cut = {};
};

struct PrepareOptions {
  std::vector<std::string> inputs;
  std::string out;
  std::string tokenizer = {};  // the file that `encode` came from, which the output must not replace
  DocumentOptions documents = {};
  std::optional<DType> width = {};  // nothing: u16 where the vocabulary allows it, else u32
  TokenHeader header = TokenHeader::kNone;
  bool begin_of_text = true, end_of_text = true;
  unsigned threads = 1;
  std::function<bool()> stop = {};                                             // asked several times a second
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};  // bytes of the inputs; as often
};

struct Prepared {
  TokenSidecar sidecar;
  std::uint64_t empty_documents = 0;  // were skipped
  TextChanges changes = {};
  std::uint64_t text_bytes = 0;
};

// Whatever the answer but ok, nothing is left of the output, and what was there before is as it was. ERRORS:
// DocumentReader's; kInput (options that exclude each other, an output that is an input, no text at all, too many
// tokens for the header); kOutput (the output cannot be made), kIo (nor written), kInterrupted.
Result<Prepared> prepare_text(const TextEncoder& encoder, const PrepareOptions& options);

}  // namespace shoal
