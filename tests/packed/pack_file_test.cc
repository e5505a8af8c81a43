#include "common/packed/pack_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "common/packed/byte_source.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

std::string content_of(const std::string& path) {
  auto source = ByteSource::open(path);
  EXPECT_TRUE(source.ok()) << source.error().message;
  std::string text;
  std::vector<std::uint8_t> piece(1000);
  while (true) {
    const auto got = (*source)->read(piece);
    EXPECT_TRUE(got.ok()) << got.error().message;
    if (!got.ok() || *got == 0) return text;
    text.append(reinterpret_cast<const char*>(piece.data()), *got);
  }
}

TEST(PackFileTest, WhatWasInTheFileComesBackOfAnySize) {
  const ScratchFolder folder;
  for (const std::size_t lines : {0u, 1u, 100'000u}) {
    std::string text;
    for (std::size_t i = 0; i < lines; ++i) text += "{\"event\":\"issue\",\"microbatch\":" + std::to_string(i) + "}\n";
    const std::string path = folder.write("e" + std::to_string(lines), text);
    const Status packed = pack_file(path);
    ASSERT_TRUE(packed.ok()) << packed.error().message;
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(content_of(path + ".zst"), text);
    if (lines > 1) {
      EXPECT_LT(std::filesystem::file_size(path + ".zst"), text.size() / 5);
    }
  }
}

TEST(PackFileTest, WhereItCannotBeMadeTheFileStays) {
  const ScratchFolder folder;
  folder.write("e", "text");
  std::filesystem::create_directory(folder / "e.zst");  // in its way
  EXPECT_EQ(pack_file(folder / "e").code(), ErrorCode::kIo);
  EXPECT_EQ(content_of(folder / "e"), "text");
  EXPECT_FALSE(std::filesystem::exists(folder / "e.zst.part"));
  EXPECT_EQ(pack_file(folder / "none").code(), ErrorCode::kMissing);
}

// What a kill left of an earlier attempt is in nobody's way.
TEST(PackFileTest, LeftoversAreReplaced) {
  const ScratchFolder folder;
  folder.write("e", "text");
  folder.write("e.zst", "half of some");
  folder.write("e.zst.part", "half of a larger one than that of now");
  ASSERT_TRUE(pack_file(folder / "e").ok());
  EXPECT_EQ(content_of(folder / "e.zst"), "text");
}

}  // namespace
}  // namespace shoal
