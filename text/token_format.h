#pragma once
// How token ids lie in a file (docs/FILES.md, "Token files"): alone, as nanoGPT's .bin has them, or behind the header
// of llm.c's shards; and what `shoal data prepare` writes beside it, FILE.json. Thread-safe.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/ids.h"
#include "common/result.h"
#include "common/tensor_view.h"

namespace shoal {

enum class TokenHeader : std::uint8_t { kNone = 0, kLlmc = 1 };
std::string_view name_of(TokenHeader header);  // "none", "llm.c"

// "u8", "u16", "u32". REQUIRES: holds_ids(width).
std::string_view name_of_width(DType width);
std::optional<DType> width_named(std::string_view name);
// How many ids there are of this width: 2^8, 2^16, 2^32.
constexpr std::uint64_t ids_of_width(DType width) { return std::uint64_t{1} << 8 * size_of(width); }

// 256 int32 of which the first three say something: magic, version, tokens.
inline constexpr std::size_t kLlmcHeaderBytes = 1024;
inline constexpr std::uint64_t kLlmcTokensMax = 0x7fffffff;
struct LlmcHeader {
  DType width = DType::kU16;
  std::uint64_t tokens = 0;
};
// That of a file of so many bytes, of which `begin` are the first, kLlmcHeaderBytes of them or all; nothing: it has
// none. ERRORS: kInput (a version that we do not know, a size that does not fit). `origin` stands for the file in
// messages.
Result<std::optional<LlmcHeader>> read_llmc_header(ByteView begin, std::uint64_t file_bytes, const std::string& origin);
// REQUIRES: u16 or u32, tokens <= kLlmcTokensMax.
std::vector<std::uint8_t> llmc_header(const LlmcHeader& header);

inline constexpr std::size_t kSidecarBytesMax = 1u << 20;
struct TokenSidecar {
  DType width = DType::kU16;
  std::uint64_t tokens = 0, documents = 0;
  std::uint32_t vocabulary = 0;  // of the tokenizer: ids are below it
  Digest tokenizer = {};
  std::vector<std::string> source = {};  // the files that were prepared
};
std::string sidecar_path(const std::string& token_file);  // FILE.json
std::string sidecar_text(const TokenSidecar& sidecar);
// That of a token file; nothing: there is none. ERRORS: kInput (not as prepare writes it), kIo, kTooLarge.
Result<std::optional<TokenSidecar>> load_sidecar(const std::string& token_file);

// How wide the ids are, as far as the sidecar or the header says it. ERRORS: those of both, kMissing.
Result<std::optional<DType>> width_said_by(const std::string& token_file);
// The same, unless a person says it: "auto", or a width's name. ERRORS: kInput (nobody says it), too.
Result<DType> width_of(const std::string& token_file, std::string_view given);

}  // namespace shoal
