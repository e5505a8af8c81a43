#include "stages/safetensors.h"

#include <gtest/gtest.h>

#include "common/rng.h"

namespace shoal {
namespace {

Bytes joined(const std::vector<Bytes>& parts) {
  std::vector<std::uint8_t> all;
  for (const Bytes& part : parts) all.insert(all.end(), part.data(), part.data() + part.size());
  return Bytes::from_vector(std::move(all));
}

// A file from a header text and a number of bytes behind it; no padding.
Bytes file_of(std::string_view json, std::size_t buffer_bytes) {
  std::vector<std::uint8_t> all(8 + json.size() + buffer_bytes);
  for (std::size_t i = 0; i < 8; ++i) all[i] = static_cast<std::uint8_t>(json.size() >> (8 * i));
  std::memcpy(all.data() + 8, json.data(), json.size());
  return Bytes::from_vector(std::move(all));
}

ErrorCode code_of(std::string_view json, std::size_t buffer_bytes) {
  const Result<Safetensors> parsed = parse_safetensors(file_of(json, buffer_bytes));
  EXPECT_FALSE(parsed.ok()) << json;
  return parsed.ok() ? ErrorCode::kTimeout : parsed.code();
}

const std::vector<float> kOne{1.5f}, kSix{1, 2, 3, 4, 5, 6};
NamedTensor named(const std::string& name, const std::vector<float>& values, Shape shape) {
  return {name, {DType::kF32, std::move(shape), bytes_of(std::span<const float>(values))}};
}

TEST(SafetensorsTest, GoldenBytes) {
  const Bytes file = joined(safetensors_parts({}, {named("a", kOne, {1})}));
  const std::string_view json =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   )";
  ASSERT_EQ(json.size(), 88u);
  ASSERT_EQ(file.size(), 8 + 88 + 4u);
  const std::uint8_t length[8] = {0x58, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(std::memcmp(file.data(), length, 8), 0);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(file.data()) + 8, 88), json);
  const std::uint8_t value[4] = {0, 0, 0xc0, 0x3f};
  EXPECT_EQ(std::memcmp(file.data() + 96, value, 4), 0);
}

TEST(SafetensorsTest, WhatIsWrittenIsReadBack) {
  const std::vector<double> wide{0.5};
  const NamedTensor last{"z", {DType::kF64, {1}, bytes_of(std::span<const double>(wide))}};
  const StringMap metadata{{"a \"quoted\" \\ key", "line\nbreak\x01"}, {"plain", "\xc3\xa9"}};
  const Bytes file = joined(safetensors_parts(metadata, {named("b", kSix, {2, 3}), named("a", kOne, {}), last}));
  const Result<Safetensors> parsed = parse_safetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  StringMap expected = metadata;
  expected["format"] = "pt";
  EXPECT_EQ(parsed->metadata, expected);
  ASSERT_EQ(parsed->tensors.size(), 3u);
  EXPECT_EQ(parsed->tensors[0].name, "z") << "the widest dtype comes first";
  EXPECT_EQ(parsed->tensors[1].name, "a") << "then by name";
  EXPECT_EQ(parsed->tensors[1].tensor.shape, Shape{});
  EXPECT_EQ(parsed->tensors[2].tensor.shape, (Shape{2, 3}));
  EXPECT_EQ(parsed->tensors[2].tensor.f32()[5], 6.0f);
}

TEST(SafetensorsTest, TensorsStartAtAMultipleOfEight) {
  for (std::size_t extra = 0; extra < 9; ++extra) {
    const std::vector<Bytes> parts = safetensors_parts({{"k", std::string(extra, 'x')}}, {named("a", kOne, {1})});
    EXPECT_EQ(parts[0].size() % 8, 0u);
  }
}

TEST(SafetensorsTest, ReadsForeignOrderSpacesAndEscapes) {
  const Result<Safetensors> parsed = parse_safetensors(
      file_of("{ \"b\\u00e9\\n\" : {\"data_offsets\":[ 4 , 8 ],\"shape\":[1, 1],\"dtype\":\"F32\"} "
              ",\n\t\"a\":{\"dtype\":\"U8\",\"shape\":[4],"
              "\"data_offsets\":[0,4]}, \"empty\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]} }  ",
              8));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->tensors[0].name, "a");
  EXPECT_EQ(parsed->tensors[1].name, "b\xc3\xa9\n");
  EXPECT_EQ(parsed->tensors[2].name, "empty");
}

TEST(SafetensorsTest, EveryByteBelongsToExactlyOneTensor) {
  const auto two = [](std::string_view first, std::string_view second) {
    return R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + std::string(first) +
           R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + std::string(second) + "}}";
  };
  ASSERT_TRUE(parse_safetensors(file_of(two("[0,4]", "[4,8]"), 8)).ok());
  EXPECT_EQ(code_of(two("[0,4]", "[0,4]"), 4), ErrorCode::kMalformed) << "overlap";
  EXPECT_EQ(code_of(two("[0,4]", "[5,9]"), 9), ErrorCode::kMalformed) << "hole";
  EXPECT_EQ(code_of(two("[1,5]", "[5,9]"), 9), ErrorCode::kMalformed) << "hole at the start";
  EXPECT_EQ(code_of(two("[0,4]", "[4,8]"), 9), ErrorCode::kMalformed) << "trailing byte";
  EXPECT_EQ(code_of(two("[0,4]", "[4,8]"), 7), ErrorCode::kMalformed) << "file too short";
  EXPECT_EQ(code_of(two("[0,4]", "[4,12]"), 12), ErrorCode::kMalformed) << "size does not fit the shape";
  EXPECT_EQ(code_of(two("[4,0]", "[4,8]"), 8), ErrorCode::kMalformed) << "end before begin";
}

TEST(SafetensorsTest, RefusesHeadersThatBreakTheFormat) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  ASSERT_TRUE(parse_safetensors(file_of(good, 4)).ok());
  for (
      const char* bad :
      {R"( {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}x)",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[1]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})",
       R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[01],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})",
       R"({"__metadata__":{"k":1},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"__metadata__":{"k":"1","k":"2"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"a\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"({"a\q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"(["a"])",
       R"({"a":[]})",
       R"({)",
       R"({"a)",
       R"({"a":)"}) {
    EXPECT_EQ(code_of(bad, 4), ErrorCode::kMalformed) << bad;
  }
  EXPECT_EQ(code_of(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})", 4), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4]}})", 4),
            ErrorCode::kTooLarge);
  const std::string long_name =
      "{\"" + std::string(kSafetensorsNameMax + 1, 'n') + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(code_of(long_name, 4), ErrorCode::kMalformed);
}

TEST(SafetensorsTest, RefusesEveryTruncation) {
  const Bytes file = joined(safetensors_parts({{"k", "v"}}, {named("b", kSix, {2, 3}), named("a", kOne, {1})}));
  ASSERT_TRUE(parse_safetensors(file).ok());
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parse_safetensors(file.slice(0, size)).ok()) << size;
}

TEST(SafetensorsTest, AHostileLengthAllocatesNothing) {
  std::vector<std::uint8_t> bytes(16, 0xff);
  EXPECT_EQ(parse_safetensors(Bytes::from_vector(bytes)).code(), ErrorCode::kTooLarge);
  bytes.assign(16, 0);
  bytes[0] = 200;
  EXPECT_EQ(parse_safetensors(Bytes::from_vector(bytes)).code(), ErrorCode::kMalformed);
}

TEST(SafetensorsTest, MutatedFilesAreReadOrRefusedButNeverBreak) {
  const Bytes file = joined(safetensors_parts({{"k", "v"}}, {named("b", kSix, {2, 3}), named("a", kOne, {1})}));
  Rng rng(2024);
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint8_t> bytes(file.data(), file.data() + file.size());
    for (std::uint64_t edits = 1 + rng.below(3); edits > 0; --edits) {
      bytes[rng.below(bytes.size())] = static_cast<std::uint8_t>(rng.below(256));
    }
    const Result<Safetensors> parsed = parse_safetensors(Bytes::from_vector(std::move(bytes)));
    if (!parsed.ok()) {
      ++refused;
      continue;
    }
    std::size_t covered = 0;
    for (const NamedTensor& entry : parsed->tensors) covered += entry.tensor.bytes.size();
    EXPECT_LE(covered, file.size());
  }
  EXPECT_GT(refused, 10000u);
}

}  // namespace
}  // namespace shoal
