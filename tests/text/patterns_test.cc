// How patterns of Oniguruma are read by PCRE2, and the text below that.
#include <gmock/gmock.h>

#include "text/byte_map.h"
#include "text/normaliser.h"
#include "text/pattern_dialect.h"
#include "text/split_pattern.h"
#include "text/utf8.h"

namespace shoal {
namespace {

using testing::ElementsAre;

std::vector<std::string> found(const std::string& pattern, const std::string& text) {
  const SplitPattern split = SplitPattern::of_pattern(pattern).value();
  MatchRoom room;
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (const auto match = split.find(text, at, room)) {
    parts.push_back(text.substr(match->begin, match->end - match->begin));
    at = match->end;
  }
  return parts;
}

TEST(SplitPatternTest, BlanksAreUnicodesWhiteSpace) {
  EXPECT_THAT(found("\\s", "\u00a0\u180e\u0085\u3000\u200b"), ElementsAre("\u00a0", "\u0085", "\u3000"));
  EXPECT_THAT(found("[^\\s]", "\u00a0\u180e\u3000"), ElementsAre("\u180e"));
  EXPECT_THAT(found("[\\S]", "\u00a0\u180e\u3000"), ElementsAre("\u180e"));
}

TEST(SplitPatternTest, LettersOfWordsTakeMarksAndJoiners) {
  EXPECT_THAT(found("\\w+", "e\u0301_\u203fa \u2160-\u24b6"), ElementsAre("e\u0301_\u203fa", "\u2160", "\u24b6"));
}

TEST(SplitPatternTest, ANameOfAScriptIsTheScriptAlone) {
  EXPECT_THAT(found("\\p{Han}", "\u6f22\u3002\u3006"), ElementsAre("\u6f22"));  // others have it as an extension
}

TEST(SplitPatternTest, CharactersThatUnicodeAddedLaterHaveTheirCategories) {
  EXPECT_THAT(found("\\p{So}+", "\U0001FAE8\U0001F6DC\U0001FAE9"), ElementsAre("\U0001FAE8\U0001F6DC\U0001FAE9"));
  EXPECT_THAT(found("[^\\p{L}]", "\U0002EBF0\U00031350\U00016D6D"), ElementsAre("\U00016D6D"));
  EXPECT_THAT(found("\\P{L}", "\U0002EBF0\U00031350\U00016D6D"), ElementsAre("\U00016D6D"));
  EXPECT_THAT(found("\\d\\w", "\U00011F50\U00011F02"), ElementsAre("\U00011F50\U00011F02"));
}

TEST(SplitPatternTest, AnEmptyMatchCutsAndTheSearchGoesOn) {
  EXPECT_THAT(found("(?=b)|c", "abcab"), ElementsAre("", "c", ""));
}

TEST(SplitPatternTest, ASearchWithoutEndFindsNothing) {
  EXPECT_THAT(found("(?:a+)+b", std::string(60, 'a')), ElementsAre());
}

TEST(SplitPatternTest, ALongMatchNeedsNoStackOfOurs) {
  const std::string text(1 << 17, 'a');
  EXPECT_THAT(found("(?:a|b)+", text), ElementsAre(text));
}

TEST(SplitPatternTest, ALiteralIsNoPattern) {
  const SplitPattern split = SplitPattern::of_literal("a.*\\E[").value();
  MatchRoom room;
  const auto match = split.find("abc a.*\\E[", 0, room);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->begin, 4u);
}

TEST(PatternDialectTest, RefusesWhatTheTwoReadDifferently) {
  for (const std::string pattern : {"^a",      "a$",    "\\bx",    "\\h",   "\\R",     "\\1",     "[a[b]]", "[a&&b]",
                                    "[]a]",    "a{,3}", "a{2}?",   "a{2}+", "{",       "(?<n>a)", "(?m:a)", "(?i)a",
                                    "(*UTF)a", "\\pL",  "\\p{^L}", "\\xff", "[a-\\s]", "[\\s-a]", "[\\W]",  "\\"}) {
    EXPECT_FALSE(pcre2_pattern(pattern).ok()) << pattern;
  }
  EXPECT_EQ(pcre2_pattern(std::string(kPatternBytesMax + 1, 'a')).code(), ErrorCode::kTooLarge);
}

TEST(PatternDialectTest, WritesAnewWhatHasAnEqual) {
  EXPECT_EQ(*pcre2_pattern("a.\\v]\\u00e9(b)"), "a[^\\n]\\x{b}\\]\\x{00e9}(?:b)");
  EXPECT_EQ(*pcre2_pattern("\\p{Zs}[-\\p{Zs}]\\\u00e9"), "[\\p{Zs}][-\\p{Zs}]\u00e9");
}

TEST(Utf8Test, EachLongestBeginOfACharacterIsReplacedOnce) {
  const auto shown = [](std::string_view bytes) { return replaced(with_replacements(bytes), kReplacement, "?"); };
  EXPECT_EQ(shown("a\xFF\xFE z"), "a?? z");
  EXPECT_EQ(shown("\xE2\x82"), "?");
  EXPECT_EQ(shown("\xE2\x82x\xF0\x9F\x98"), "?x?");
  EXPECT_EQ(shown("\xED\xA0\x80"), "???");       // a surrogate
  EXPECT_EQ(shown("\xC0\x80"), "??");            // a long form
  EXPECT_EQ(shown("\xF4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(shown("\xE0\x9F\x80"), "???");       // a long form
  EXPECT_EQ(shown("\u00e9\u4f60\U0001F600"), "\u00e9\u4f60\U0001F600");
  EXPECT_FALSE(is_utf8("12345678\x80"));
  EXPECT_TRUE(is_utf8("12345678\u00e9"));
}

TEST(ByteMapTest, EveryByteHasACharacterOfItsOwn) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  const std::string characters = characters_of_bytes(bytes);
  EXPECT_EQ(bytes_of_characters(characters), std::optional(bytes));
  EXPECT_EQ(characters_of_bytes(" a\n"), "\u0120a\u010a");
  EXPECT_FALSE(bytes_of_characters("\u2581").has_value());
}

TEST(NormaliserTest, ComposesHangulAsUnicodeDoes) {
  const Normaliser nfc = Normaliser::make({NormalForm::kNfc}).value();
  std::string room;
  EXPECT_EQ(nfc.apply("\u1100\u1161\u11a8", room), "\uac01");
  EXPECT_EQ(nfc.apply("\uac00\u11a7", room), "\uac00\u11a7");  // U+11A7 is no trailing letter
  EXPECT_EQ(nfc.apply("e\u0301\u11a7e\u0301", room), "\u00e9\u11a7\u00e9");
}

}  // namespace
}  // namespace shoal
