#include "runtime/generate/text_code.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(TextCodeTest, WithoutATokenizerEachByteIsItsId) {
  const TextCode code;
  const std::string text = "a\xc3\xa4\xff";
  const auto ids = code.ids_of(text);
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{'a', 0xc3, 0xa4, 0xff}));
  std::string back;
  for (const std::uint32_t id : ids) back += code.bytes_of(id);
  EXPECT_EQ(back, text);
  EXPECT_EQ(code.bytes_of(256), "");
  EXPECT_TRUE(code.ends().empty());
  EXPECT_TRUE(code.begin().empty());
}

TEST(WholeCharactersTest, ACharacterIsShownWhenItIsWhole) {
  const std::string text = "x\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x9fy";  // of 1, 2, 3, 4 and 1 bytes
  WholeCharacters whole;
  std::string shown;
  for (const char byte : text) {
    const std::string piece = whole.add({&byte, 1});
    EXPECT_FALSE(!piece.empty() && (static_cast<unsigned char>(piece[0]) & 0xc0) == 0x80) << "begins in the middle";
    shown += piece;
  }
  EXPECT_EQ(shown, text);
  EXPECT_EQ(whole.rest(), "");
}

TEST(WholeCharactersTest, WhatWillBeNoCharacterIsNotHeldBack) {
  WholeCharacters whole;
  EXPECT_EQ(whole.add("\xff\xfe"), "\xff\xfe");
  EXPECT_EQ(whole.add("\xe2\x82"), "");
  EXPECT_EQ(whole.add("z"), "\xe2\x82z");
  EXPECT_EQ(whole.add("\xf0\x9f"), "");
  EXPECT_EQ(whole.rest(), "\xf0\x9f");
  EXPECT_EQ(whole.add("ok"), "ok");
}

}  // namespace
}  // namespace shoal
