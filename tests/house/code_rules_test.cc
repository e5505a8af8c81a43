#include "tests/house/code_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> functions(std::string_view text) {
  std::vector<std::string> all;
  for (const FunctionSpan& function : functions_of(text))
    all.push_back(std::to_string(function.line) + "+" + std::to_string(function.lines) + " " + function.head);
  return all;
}

std::vector<std::string> complaints(const std::string& path, std::string_view text) {
  std::vector<std::string> all;
  for (const Violation& violation : judge_code(path, text))
    all.push_back(std::to_string(violation.line) + ": " + violation.what);
  return all;
}

std::string lines(int count, const std::string& line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line + "\n";
  return text;
}

TEST(CodeRulesTest, CommentsQuotesAndPreprocessorLinesAreNoCode) {
  EXPECT_EQ(code_only("a // b {\nc"), "a       \nc");
  EXPECT_EQ(code_only("a /* {\n{ */ b"), "a     \n     b");
  EXPECT_EQ(code_only("f(\"}\\\"{\", '{', '\\'');"), "f(      ,    ,     );");
  EXPECT_EQ(code_only("x = R\"re(})\" {)re\"; y"), "x =               ; y");
  EXPECT_EQ(code_only("#define A(x) \\\n  {\nb"), "              \n   \nb");
  EXPECT_EQ(code_only("n = 1'000'000; {"), "n = 1'000'000; {");
  EXPECT_EQ(code_only("\"never closed {\n}"), "               \n}");
}

TEST(CodeRulesTest, FunctionsAreFoundWithTheirLines) {
  EXPECT_THAT(functions("int f() {\n  return 1;\n}\n"), ElementsAre("1+3 int f()"));
  EXPECT_THAT(functions("namespace a {\nnamespace {\n\nvoid f(int x,\n       int y) {}\n}\n}\n"),
              ElementsAre("4+2 void f(int x, int y)"));
  EXPECT_THAT(functions("class A : public B {\n public:\n  A() : a_{1}, b_(2) {\n  }\n  int b() const { return b_; }\n"
                        " private:\n  int b_ = 0;\n  C c_{1, 2};\n};\nvoid A::f() && {\n}\n"),
              ElementsAre("3+2 A() : a_{1}, b_(2)", "5+1 int b() const", "10+2 void A::f() &&"));
  EXPECT_THAT(functions("template <typename T, std::size_t N>\nauto f(T (&a)[N]) -> T {\n}\n"),
              ElementsAre("1+3 template <typename T, std::size_t N> auto f(T (&a)[N]) -> T"));
  EXPECT_THAT(functions("TEST_F(A, B) {\n  if (x) {\n  }\n}\nTEST(A, C) {\n}\n"),
              ElementsAre("1+4 TEST_F(A, B)", "5+2 TEST(A, C)"));
  EXPECT_THAT(
      functions("extern \"C\" {\nvoid f() {}\n}\ntemplate <>\nstruct hash<A> {\n  int operator()(A a) const {}\n};\n"),
      ElementsAre("2+1 void f()", "6+1 int operator()(A a) const"));
}

TEST(CodeRulesTest, WhatIsNoFunctionIsNotTakenForOne) {
  EXPECT_THAT(functions("enum class A { kB };\nstruct C {\n  int d = 0;\n};\nunion E {};\n"), IsEmpty());
  EXPECT_THAT(functions("const std::map<int, int> kTable = {\n    {1, f(2)},\n};\nint x{3};\n"), IsEmpty());
  EXPECT_THAT(functions("const Table kTable = make({\n    {1},\n});\nA a(B{1}, {2});\n"), IsEmpty());
  EXPECT_THAT(functions("int f();\n// int g() {\n#define H() {\n"), IsEmpty());
}

TEST(CodeRulesTest, AFunctionBehindABraceInQuotesIsStillFound) {
  EXPECT_THAT(functions("void f() {\n  g('}', \"}}\");  // }\n}\nvoid h() {\n}\n"),
              ElementsAre("1+3 void f()", "4+2 void h()"));
}

TEST(CodeRulesTest, ALongFunctionIsNamedWithItsLine) {
  const std::string body = lines(kFunctionLinesMax - 2, "  g();");
  EXPECT_THAT(complaints("router/a.cc", "\nvoid f() {\n" + body + "}\n"), IsEmpty());
  EXPECT_THAT(complaints("router/a.cc", "\nvoid f() {\n  g();\n" + body + "}\n"),
              ElementsAre("2: 71 lines, at most 70: void f()"));
  EXPECT_THAT(complaints("tests/router/a.cc", "class A {\n  void f() {\n    g();\n" + body + "  }\n};\n"),
              ElementsAre("2: 71 lines, at most 70: void f()"));
  EXPECT_THAT(complaints("router/a.cc", "class A {\n" + body + body + "};\n"), IsEmpty()) << "a class is no function";
}

TEST(CodeRulesTest, ALongFileIsNamed) {
  EXPECT_THAT(complaints("kernels/a.cu", lines(kFileLinesMax, "int x;")), IsEmpty());
  EXPECT_THAT(complaints("kernels/a.cu", lines(kFileLinesMax + 1, "int x;")), ElementsAre("0: 401 lines; at most 400"));
}

TEST(CodeRulesTest, RetiredWordsAreFoundWithTheirLines) {
  EXPECT_THAT(complaints("common/ids.h", "struct Entry {};\nstruct Token {};\n"),
              ElementsAre("2: 'Token' is a retired word; say EntryName"));
  EXPECT_THAT(complaints("events/a.cc", "x = parse_token(y);\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("router/a.cc", "auto token = f();\ng(token);\n"),
              ElementsAre("1: 'token' is a retired word; say entry, or name",
                          "2: 'token' is a retired word; say entry, or name"));
  EXPECT_THAT(complaints("tests/sync/a.cc", "int token;\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("sync/a.cc", "if (is_listed(a) || x.listed || y == State::kListed || listed_) {}\n"),
              testing::SizeIs(4));
  EXPECT_THAT(complaints("sync/a.cc", "int unlisted_keys;\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("router/a.cc", "if (options_.planted.x || planted_.y) PlantedBugs();\n"), testing::SizeIs(3));
}

TEST(CodeRulesTest, AWhoHasItsNounAndNoCommentBeginsWithOf) {
  const auto lines_of = [](const std::string& path, std::string_view text) {
    std::vector<int> lines;
    for (const Violation& violation : judge_comments(path, text)) lines.push_back(violation.line);
    return lines;
  };
  EXPECT_THAT(lines_of("a/a.h", "// A list for who asks.\nint x;  // Who asks gets it.\n// Of the list.\n"),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(
      lines_of("a/a.h", "// A peer that asks, and everybody who is there.\nf(\"// Of who\");\n// Often, of whose\n"),
      IsEmpty());
  EXPECT_THAT(lines_of("docs/A.md", "Of these.\n| it is told to who asks |\n"), ElementsAre(2));
}

TEST(CodeRulesTest, WordsThatOnlyResembleThemAreLeftAlone) {
  EXPECT_THAT(complaints("runtime/data/a.cc", "int token = bytes[0];\nTokenFile file; TokenCount tokens;\n"),
              IsEmpty());
  EXPECT_THAT(complaints("router/a.cc", "// a token, listed\nf(\"token\", \"listed\");\nenlisted(blisted);\n"),
              IsEmpty());
  EXPECT_THAT(complaints("runtime/peer/a.cc", "config.token_dtype();\n"), IsEmpty());
}

}  // namespace
}  // namespace shoal
