// scripts/test decides which test programs are built with sanitizers; here is checked that it forgets none.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace {

using Names = std::set<std::string>;
const std::filesystem::path kRoot = SHOAL_SOURCE_DIR;

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Names all_matches(const std::string& text, const char* pattern) {
  Names names;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) names.insert((*at)[1].str());
  return names;
}

// `list=(a_test b_test)` in scripts/test.
Names sanitized(const std::string& list) {
  const std::string script = read(kRoot / "scripts/test");
  const std::size_t start = script.find("\n" + list + "=(");
  if (start == std::string::npos) return {};
  return all_matches(script.substr(start, script.find(')', start) - start), "([a-z_]+_test)");
}

// Test programs by the folder of tests/ that declares them; without those that are made only where torch is.
Names declared(bool with_torch) {
  Names names;
  for (const auto& folder : std::filesystem::directory_iterator(kRoot / "tests")) {
    const std::string list = read(folder.path() / "CMakeLists.txt");
    const bool needs_torch = list.find("SHOAL_HAS_TORCH") != std::string::npos;
    if (!needs_torch || with_torch) names.merge(all_matches(list, "shoal_test\\(([a-z_]+)"));
  }
  return names;
}

TEST(SanitizedTest, EveryTestThatNeedsNoTorchIsInAListAndNoOther) {
  Names in_lists = sanitized("asan");
  EXPECT_GE(in_lists.size(), 6u);
  for (const char* list : {"asan_more", "bare"})
    for (const std::string& name : sanitized(list))
      EXPECT_TRUE(in_lists.insert(name).second) << name << " is in two lists";
  EXPECT_EQ(in_lists, declared(false));
}

TEST(SanitizedTest, WhatNoSanitizerSeesIsBuiltForDebugging) {
  Names all = sanitized("asan");
  all.merge(sanitized("asan_more"));
  all.merge(sanitized("bare"));
  for (const std::string& name : sanitized("debug")) EXPECT_TRUE(all.insert(name).second) << name << " is in both";
  EXPECT_EQ(all, declared(true));
}

TEST(SanitizedTest, WhatHasThreadsIsRunWithTsan) {
  const Names wanted = sanitized("tsan"), there = declared(true);
  EXPECT_GE(wanted.size(), 2u);
  for (const std::string& name : wanted) EXPECT_TRUE(there.contains(name)) << name;
}

// scripts/test FOLDER builds FOLDER_test, on which a second program of the folder depends, and runs both.
TEST(SanitizedTest, EachTestProgramIsNamedAfterItsFolder) {
  for (const auto& folder : std::filesystem::directory_iterator(kRoot / "tests")) {
    const std::string first = folder.path().filename().string() + "_test",
                      list = read(folder.path() / "CMakeLists.txt");
    for (const std::string& name : all_matches(list, "shoal_test\\(([a-z_]+)")) {
      if (name == first) continue;
      EXPECT_TRUE(name.starts_with(folder.path().filename().string() + "_")) << name;
      EXPECT_NE(list.find("add_dependencies(" + first + " " + name + ")"), std::string::npos)
          << "scripts/test FOLDER would not build " << name;
    }
  }
}

}  // namespace
