// What a file may replace.
#include "common/os/posix_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "common/fault.h"
#include "common/os/new_files.h"
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

// A link to a file, to none yet, to another link, in another folder, absolute and relative: the link stays, and what it
// leads to is written.
TEST(PosixFileTest, ALinkIsWrittenThrough) {
  for (const std::string target : {"there", "sub/there", "/there", "second", "sub/absent", "up/../there"}) {
    ScratchFolder folder;
    std::filesystem::create_directories(folder / "sub");
    std::filesystem::create_directories(folder / "up");
    std::filesystem::create_symlink("sub/../sub/last", folder / "second");
    if (!target.ends_with("absent") && target != "second") folder.write(target, "old");
    std::filesystem::create_symlink(target.starts_with("/") ? folder / target : target, folder / "link");
    ASSERT_TRUE(check_output_file(folder / "link").ok()) << target;
    ASSERT_TRUE(replace_file(folder / "link", {Bytes::copy_of(std::string_view("new"))}).ok()) << target;
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link")) << target;
    EXPECT_EQ(ScratchFolder::read(folder / "link"), "new") << target;
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      files += entry.is_regular_file() && !entry.is_symlink();
    EXPECT_EQ(files, 1u) << target << ": nothing is left beside it";
  }
}

TEST(PosixFileTest, WhatAProcessHasOpenIsNoName) {
  ScratchFolder folder;
  const std::string path = folder.write("open", "x");
  const Descriptor open = open_file(path, O_RDWR).value();
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(open.get()), folder / "link");
  std::filesystem::create_symlink("loop", folder / "loop");
  for (const std::string& name : {folder / "link", folder / "loop", "/dev/fd/" + std::to_string(open.get())}) {
    EXPECT_EQ(check_output_file(name).code(), ErrorCode::kOutput) << name;
    EXPECT_EQ(replace_file(name, {Bytes::copy_of(std::string_view("y"))}).code(), ErrorCode::kOutput) << name;
    EXPECT_EQ(OutputFile::begin(name).code(), ErrorCode::kOutput) << name;
  }
  EXPECT_EQ(ScratchFolder::read(path), "x");
}

// Every step of it fails in turn.
TEST(PosixFileTest, AFileThatCannotBeWrittenLeavesWhatWasThere) {
  for (const bool there : {false, true}) {
    ScratchFolder folder;
    if (there) folder.write("file", "old");
    int failed = 0;
    for (Status status = make_error(ErrorCode::kIo, ""); !status.ok(); ++failed) {
      disarm_faults();
      ASSERT_TRUE(arm_faults("output.step=error@" + std::to_string(failed + 1)).ok());
      status = replace_file(folder / "file", {Bytes::copy_of(std::string_view("new"))});
      EXPECT_EQ(ScratchFolder::read(folder / "file"), status.ok() ? "new" : there ? "old" : "");
      const std::size_t names = static_cast<std::size_t>(
          std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()));
      EXPECT_EQ(names, there || status.ok() ? 1u : 0u) << failed;
    }
    disarm_faults();
    EXPECT_GT(failed, 3) << "open, write, sync, rename";
  }
}

TEST(NewFilesTest, WhatWasNotThereGoesAwayAgain) {
  for (const bool kept : {false, true}) {
    ScratchFolder folder;
    folder.write("old", "x");
    std::filesystem::create_symlink("far", folder / "link");
    const std::vector<std::string> made = {folder / "new", folder / "a/b/file", folder / "link"};
    {
      NewFiles files;
      files.expect(folder / "old");
      files.expect(folder / "a/b");
      for (const std::string& path : made) files.expect(path);
      files.expect(folder / "never");
      std::filesystem::create_directories(folder / "a/b");
      for (const std::string& path : made) folder.write(path.substr(folder.path().size() + 1), "y");
      folder.write("old", "z");
      folder.write("a/of another", "stays");
      if (kept) files.keep();
    }
    EXPECT_EQ(ScratchFolder::read(folder / "old"), "z");
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
    EXPECT_TRUE(std::filesystem::exists(folder / "a/of another"));
    EXPECT_EQ(std::filesystem::exists(folder / "a/b"), kept);
    for (const std::string& path : made) EXPECT_EQ(std::filesystem::exists(path), kept) << path;
  }
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
