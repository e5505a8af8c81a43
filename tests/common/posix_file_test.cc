// What a file may replace.
#include "common/os/posix_file.h"

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

}  // namespace
}  // namespace shoal
