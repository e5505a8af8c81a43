#include "text/token_format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "common/byte_codec.h"
#include "common/crypto/text_codes.h"
#include "common/os/posix_file.h"

namespace shoal {
namespace {

struct LlmcKind {
  std::uint32_t magic, version;
  DType width;
};
constexpr std::array kLlmcKinds = {LlmcKind{20240520, 1, DType::kU16}, LlmcKind{20240801, 7, DType::kU32}};
constexpr std::array kWidths = {DType::kU8, DType::kU16, DType::kU32};
constexpr std::array<std::string_view, 3> kWidthTexts = {"u8", "u16", "u32"};
constexpr char kSchema[] = "shoal.tokens/1";

Error no_sidecar(const std::string& path, const std::string& why) {
  return make_error(ErrorCode::kInput, path + ": " + why +
                                           ". HINT: `shoal data prepare` writes it beside its token file; move another "
                                           "file of that name away");
}

Result<TokenSidecar> parse_sidecar(ByteView bytes, const std::string& path) try {
  const auto json = nlohmann::json::parse(bytes.begin(), bytes.end());
  if (json.at("schema") != kSchema) return no_sidecar(path, "its schema is not " + std::string(kSchema));
  TokenSidecar sidecar;
  const auto width = width_named(json.at("width").get<std::string>());
  if (!width) return no_sidecar(path, "its width is none of u8, u16, u32");
  sidecar.width = *width;
  sidecar.tokens = json.at("tokens").get<std::uint64_t>();
  sidecar.documents = json.at("documents").get<std::uint64_t>();
  sidecar.vocabulary = json.at("vocabulary").get<std::uint32_t>();
  const auto digest = parse_hex32(json.at("tokenizer_digest").get<std::string>());
  if (!digest.ok()) return no_sidecar(path, "its tokenizer_digest is no 64 hexadecimal digits");
  sidecar.tokenizer = Digest{*digest};
  sidecar.source = json.at("source").get<std::vector<std::string>>();
  return sidecar;
} catch (const nlohmann::json::exception& error) {
  return no_sidecar(path, std::string("no sidecar of a token file: ") + error.what());
}

}  // namespace

std::string_view name_of(TokenHeader header) { return header == TokenHeader::kLlmc ? "llm.c" : "none"; }

std::string_view name_of_width(DType width) {
  SHOAL_CHECK(holds_ids(width));
  return kWidthTexts[static_cast<std::size_t>(std::ranges::find(kWidths, width) - kWidths.begin())];
}

std::optional<DType> width_named(std::string_view name) {
  const auto at = std::ranges::find(kWidthTexts, name);
  if (at == kWidthTexts.end()) return std::nullopt;
  return kWidths[static_cast<std::size_t>(at - kWidthTexts.begin())];
}

Result<std::optional<LlmcHeader>> read_llmc_header(ByteView begin, std::uint64_t file_bytes,
                                                   const std::string& origin) {
  if (begin.size() < kLlmcHeaderBytes) return std::optional<LlmcHeader>();
  const auto magic = get_le<std::uint32_t>(begin, 0), version = get_le<std::uint32_t>(begin, 4);
  const auto kind = std::ranges::find(kLlmcKinds, magic, &LlmcKind::magic);
  if (kind == kLlmcKinds.end()) return std::optional<LlmcHeader>();
  const std::string header =
      origin + ": begins with the header of a file of llm.c (magic " + std::to_string(magic) + ")";
  if (version != kind->version)
    return make_error(ErrorCode::kInput, header + " of version " + std::to_string(version) + ", known is version " +
                                             std::to_string(kind->version) +
                                             ". HINT: prepare the text anew with `shoal data prepare`");
  const LlmcHeader found{.width = kind->width, .tokens = get_le<std::uint32_t>(begin, 8)};
  const std::uint64_t wanted = kLlmcHeaderBytes + found.tokens * size_of(found.width);
  if (file_bytes != wanted)
    return make_error(ErrorCode::kInput, header + " for " + std::to_string(found.tokens) + " tokens of " +
                                             std::string(name_of_width(found.width)) + ", which takes " +
                                             std::to_string(wanted) + " bytes, but it has " +
                                             std::to_string(file_bytes) + ". HINT: it was cut; copy it once more");
  return std::optional(found);
}

std::vector<std::uint8_t> llmc_header(const LlmcHeader& header) {
  SHOAL_CHECK_LE(header.tokens, kLlmcTokensMax);
  const auto kind = std::ranges::find(kLlmcKinds, header.width, &LlmcKind::width);
  SHOAL_CHECK(kind != kLlmcKinds.end());
  std::vector<std::uint8_t> bytes(kLlmcHeaderBytes);
  put_le(bytes.data(), kind->magic);
  put_le(bytes.data() + 4, kind->version);
  put_le(bytes.data() + 8, static_cast<std::uint32_t>(header.tokens));
  return bytes;
}

std::string sidecar_path(const std::string& token_file) { return token_file + ".json"; }

std::string sidecar_text(const TokenSidecar& sidecar) {
  const nlohmann::ordered_json json = {{"schema", kSchema},
                                       {"width", name_of_width(sidecar.width)},
                                       {"tokens", sidecar.tokens},
                                       {"documents", sidecar.documents},
                                       {"vocabulary", sidecar.vocabulary},
                                       {"tokenizer_digest", hex_of(sidecar.tokenizer)},
                                       {"source", sidecar.source}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<std::optional<TokenSidecar>> load_sidecar(const std::string& token_file) {
  const std::string path = sidecar_path(token_file);
  const auto bytes = read_file(path, kSidecarBytesMax);
  if (!bytes.ok() && bytes.code() == ErrorCode::kMissing) return std::optional<TokenSidecar>();
  if (!bytes.ok()) return bytes.error();
  SHOAL_ASSIGN(TokenSidecar sidecar, parse_sidecar(*bytes, path));
  return std::optional(std::move(sidecar));
}

Result<std::optional<DType>> width_said_by(const std::string& token_file) {
  std::vector<std::uint8_t> begin(kLlmcHeaderBytes);
  SHOAL_ASSIGN(const std::uint64_t size, read_file_at(token_file, 0, begin));
  begin.resize(std::min<std::uint64_t>(size, begin.size()));
  SHOAL_ASSIGN(const auto sidecar, load_sidecar(token_file));
  if (sidecar) return std::optional(sidecar->width);
  SHOAL_ASSIGN(const auto header, read_llmc_header(begin, size, token_file));
  return header ? std::optional(header->width) : std::nullopt;
}

Result<DType> width_of(const std::string& token_file, std::string_view given) {
  if (const auto width = width_named(given)) return *width;
  SHOAL_ASSIGN(const auto found, width_said_by(token_file));
  if (found) return *found;
  return make_error(ErrorCode::kInput, token_file +
                                           ": has neither a header nor a sidecar that says how wide its ids are. HINT: "
                                           "--width u8, u16 or u32");
}

}  // namespace shoal
