#include "tests/house/class_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

int functions_of_first(std::string_view text) {
  const auto found = classes_of(text);
  return found.empty() ? -1 : found.front().functions;
}

TEST(ClassRulesTest, FunctionsOfAClassAreCounted) {
  EXPECT_EQ(functions_of_first(
                "class A final : public B<int> {\n public:\n  A();\n  ~A() override;\n  int f() const { return g(); }\n"
                "  bool operator==(const A&) const = default;\n private:\n  virtual void g() = 0;\n};\n"),
            5);
}

TEST(ClassRulesTest, MembersAndNestedTypesAreNoFunctions) {
  EXPECT_EQ(functions_of_first(
                "struct A {\n  int a = f(1);\n  B b{g(2)};\n  std::function<void(int)> done;\n  using F = void (*)();\n"
                "  friend void h();\n  enum class E { kA };\n  std::map<int, std::vector<int>> m;\n};\n"),
            0);
  const auto found = classes_of("class A {\n  void f();\n  struct B {\n    void g();\n    void h();\n  };\n};\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].functions, 1);
  EXPECT_EQ(found[1].name, "B");
  EXPECT_EQ(found[1].functions, 2);
}

TEST(ClassRulesTest, DeclarationsWithoutABodyAreNoClasses) {
  EXPECT_THAT(classes_of("class A;\nenum class E { kA };\nstruct A* f();\ntemplate <class T>\nvoid g(T t) {}\n"),
              IsEmpty());
}

TEST(ClassRulesTest, ClassesAreFoundByWhatASourceDefines) {
  EXPECT_THAT(classes_defined_in("A::A(int x) : x_(x) {}\nvoid B::f() {}\nstd::vector<C::D> g() { return {}; }\n"),
              ElementsAre("A", "B"));
}

TEST(ClassRulesTest, AClassThatIsTooLargeOrSpreadOutIsNamed) {
  std::string body;
  for (int i = 0; i <= kClassFunctionsMax; ++i) body += "  void f" + std::to_string(i) + "();\n";
  EXPECT_THAT(judge_classes({{"a/a.h", "class A {\n" + body + "};\n"}}), testing::SizeIs(1));
  std::map<std::string, std::string> files = {
      {"a/a.h", "class A {\n  void f();\n};\n"}, {"a/a.cc", "void A::f() {}\n"}, {"a/b.cc", "void A::g() {}\n"}};
  EXPECT_THAT(judge_classes(files), IsEmpty());
  files["a/c.cc"] = "void A::h() {}\n";
  EXPECT_THAT(judge_classes(files), testing::SizeIs(1));
}

}  // namespace
}  // namespace shoal
