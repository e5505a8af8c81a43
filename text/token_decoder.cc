#include "text/token_decoder.h"

#include <optional>

#include "text/byte_map.h"
#include "text/utf8.h"

namespace shoal {
namespace {

using Tokens = std::vector<std::string>;

// A token with a character that stands for no byte is text.
std::string byte_level(std::string_view token) {
  auto bytes = bytes_of_characters(token);
  return bytes ? std::move(*bytes) : std::string(token);
}

std::string joined(const Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(high * 16 + low));
}

std::string stripped(std::string_view token, const StripDecode& step) {
  for (std::size_t i = 0; i < step.start && token.starts_with(step.character); ++i)
    token.remove_prefix(step.character.size());
  for (std::size_t i = 0; i < step.stop && token.ends_with(step.character); ++i)
    token.remove_suffix(step.character.size());
  return std::string(token);
}

struct AppliesToAll {
  Tokens tokens;

  void operator()(const ByteLevelDecode&) {
    for (std::string& token : tokens) token = byte_level(token);
    const std::string bytes = joined(tokens);
    tokens.assign(1, is_utf8(bytes) ? bytes : with_replacements(bytes));
  }
  void operator()(const ByteFallbackDecode&) {
    Tokens out;
    std::string run;
    const auto end_run = [&] {
      if (is_utf8(run)) {
        if (!run.empty()) out.push_back(run);
      } else {
        out.insert(out.end(), run.size(), std::string(kReplacement));
      }
      run.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = fallback_byte(token)) {
        run.push_back(*byte);
        continue;
      }
      end_run();
      out.push_back(std::move(token));
    }
    end_run();
    tokens = std::move(out);
  }
  void operator()(const ReplaceText& step) {
    for (std::string& token : tokens) token = replaced(token, step.from, step.to);
  }
  void operator()(const FuseDecode&) { tokens.assign(1, joined(tokens)); }
  void operator()(const StripDecode& step) {
    for (std::string& token : tokens) token = stripped(token, step);
  }
  void operator()(const MarkDecode& step) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], step.mark, i == 0 && step.prefixed ? "" : " ");
  }
};

struct AppliesToOne {
  std::string token;

  void operator()(const ByteLevelDecode&) { token = byte_level(token); }
  void operator()(const ByteFallbackDecode&) {
    if (const auto byte = fallback_byte(token)) token.assign(1, *byte);
  }
  void operator()(const ReplaceText& step) { token = replaced(token, step.from, step.to); }
  void operator()(const FuseDecode&) {}
  void operator()(const StripDecode&) {}
  void operator()(const MarkDecode& step) { token = replaced(token, step.mark, " "); }
};

}  // namespace

std::string TokenDecoder::text_of(std::vector<std::string> tokens) const {
  AppliesToAll all{std::move(tokens)};
  for (const DecodeStep& step : steps_) std::visit(all, step);
  return joined(all.tokens);
}

std::string TokenDecoder::bytes_of(std::string_view token) const {
  AppliesToOne one{std::string(token)};
  for (const DecodeStep& step : steps_) std::visit(one, step);
  return std::move(one.token);
}

}  // namespace shoal
