#include "common/program/json_text.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(JsonTextTest, ValuesStandInTheOrderInWhichTheyWereMade) {
  Json out = {{"schema", "a/1"}, {"none", nullptr}, {"yes", true}, {"half", 0.5}, {"whole", 2.0}, {"least", -1}};
  out.set("most", ~std::uint64_t{0});
  out.set("none", std::optional<int>(3));
  out.set("list", std::vector<std::string>{"x", "y\n\"z\""});
  out.set("below", {{"empty", Json::array()}, {"gone", std::optional<int>()}});
  EXPECT_EQ(out.line(),
            R"({"schema":"a/1","none":3,"yes":true,"half":0.5,"whole":2.0,"least":-1,"most":18446744073709551615,)"
            R"("list":["x","y\n\"z\""],"below":{"empty":[],"gone":null}})");
  const Json small = {{"a", Json::array({1, 2})}};
  EXPECT_EQ(small.text(), "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
}

TEST(JsonTextTest, WhatIsNoUtf8IsReplacedAndWhatIsNoJsonIsNone) {
  EXPECT_EQ(Json("a\xff").line(), "\"a\xef\xbf\xbd\"");
  EXPECT_FALSE(Json::read("{\"a\":").has_value());
  EXPECT_EQ(Json::read(" {\"a\": [1.50, -2]} ")->line(), "{\"a\":[1.5,-2]}");
}

}  // namespace
}  // namespace shoal
