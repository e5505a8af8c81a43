#pragma once
// What the beginning of a file says that its content is: text in UTF-8 or UTF-16, or something that is no text. By the
// bytes alone, never by a name. Pure; thread: any.
#include <string>

#include "common/bytes.h"

namespace shoal {

inline constexpr std::size_t kJudgedBytes = 64u << 10;

struct TextContent {
  enum class Form {
    kUtf8,
    kUtf16Little,
    kUtf16Big,
    kKnown,    // no text: a kind of file that has a name
    kNotUtf8,  // no text: more than a tenth of it is no UTF-8
  };
  Form form = Form::kUtf8;
  std::size_t mark_bytes = 0;  // the byte order mark in front
  std::string what = {};       // but for kUtf8: "a Parquet table"
  std::string command = {};    // and what makes text of it, with @ for the file
  bool is_text() const { return form < Form::kKnown; }
};

// `begin`: the first kJudgedBytes of a file, or all of it. UTF-16 without a mark is known by its zero bytes, most of
// them at places of one parity, and has neither control characters nor half pairs.
TextContent judge_content(ByteView begin);
// "PATH is a Parquet table, no text. HINT: …" REQUIRES: not kUtf8.
std::string not_plain_text(const std::string& path, const TextContent& content);

}  // namespace shoal
