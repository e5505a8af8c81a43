// What a file may replace.
#include "common/os/posix_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/common/irregular_files.h"

namespace shoal {
namespace {

TEST(PosixFileTest, NothingButARegularFileIsReplaced) {
  ScratchFolder folder;
  for (const auto& [path, kind] : irregular_files(folder)) {
    const Status status = replace_file(path, {Bytes::copy_of(std::string_view("x"))});
    EXPECT_EQ(status.code(), ErrorCode::kOutput) << path;
    EXPECT_THAT(status.error().message, testing::HasSubstr(kind)) << path;
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/zero"));
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "fifo"));
}

TEST(PosixFileTest, AnOutputIsCheckedBeforeItIsWritten) {
  ScratchFolder folder;
  const std::string input = folder.write("input", "x");
  EXPECT_TRUE(check_output_file(folder / "new", {input}).ok());
  EXPECT_TRUE(check_output_file(input, {folder / "absent"}).ok());
  std::filesystem::create_hard_link(input, folder / "same");
  EXPECT_EQ(check_output_file(folder / "same", {input}).code(), ErrorCode::kInput);
  for (const std::string& path : {folder / "none/new", folder.path(), std::string("/dev/zero"), std::string()})
    EXPECT_EQ(check_output_file(path).code(), ErrorCode::kOutput) << path;
}

TEST(PosixFileTest, WhatNobodyWritesAnyMoreWasLeft) {
  ScratchFolder folder;
  const std::string left = folder.write("state.tmp.7", "half"), written = folder.write("state.tmp.8", "half");
  folder.write("state.tmp.", "x");
  folder.write("state.tmp.7b", "x");
  folder.write(".tmp.7", "x");
  std::filesystem::create_symlink(left, folder / "link.tmp.9");
  const Descriptor writer = open_file(written, O_WRONLY).value();
  ASSERT_TRUE(lock_file(writer, written).ok());
  EXPECT_THAT(left_temporaries(folder.path()).value(), testing::ElementsAre(left));
  EXPECT_EQ(left_temporaries(folder / "none").code(), ErrorCode::kMissing);
  EXPECT_EQ(replaced_name("a.tmp.1.tmp.22"), "a.tmp.1");
}

}  // namespace
}  // namespace shoal
