#include "runtime/config/home.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <map>
#include <optional>

#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

int mode_of(const std::string& path) {
  struct stat facts = {};
  stat(path.c_str(), &facts);
  return facts.st_mode & 0777;
}

TEST(HomeTest, MakesAKeyOnceAndKeepsIt) {
  const ScratchFolder folder;
  PeerId first;
  {
    const auto home = Home::open(folder / "home");
    ASSERT_TRUE(home.ok()) << home.error().message;
    EXPECT_FALSE(home->is_temporary());
    first = home->key().id();
  }
  EXPECT_EQ(mode_of(folder / "home/key"), 0600);
  EXPECT_EQ(mode_of(folder / "home"), 0700);
  const auto again = Home::open(folder / "home");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->key().id(), first);
}

TEST(HomeTest, ASecondProcessGetsATemporaryKey) {
  const ScratchFolder folder;
  auto first = Home::open(folder / "home");
  ASSERT_TRUE(first.ok());
  const auto second = Home::open(folder / "home");
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->is_temporary());
  EXPECT_NE(second->key().id(), first->key().id());
  const Home moved = std::move(*first);
  EXPECT_TRUE(Home::open(folder / "home")->is_temporary());
}

TEST(HomeTest, TheLockEndsWithItsHolder) {
  const ScratchFolder folder;
  PeerId id;
  {
    const auto first = Home::open(folder / "home");
    id = first->key().id();
  }
  EXPECT_EQ(Home::open(folder / "home")->key().id(), id);
}

TEST(HomeTest, RefusesAKeyThatOthersMayRead) {
  const ScratchFolder folder;
  ASSERT_TRUE(load_or_make_key(folder / "key").ok());
  chmod((folder / "key").c_str(), 0640);
  const auto key = load_or_make_key(folder / "key");
  ASSERT_FALSE(key.ok());
  EXPECT_EQ(key.code(), ErrorCode::kRefused);
  EXPECT_THAT(key.error().message, testing::HasSubstr("chmod 600"));
}

TEST(HomeTest, RefusesADamagedKeyInsteadOfMakingAnother) {
  const ScratchFolder folder;
  ASSERT_TRUE(load_or_make_key(folder / "key").ok());
  std::string text = ScratchFolder::read(folder / "key");
  text[20] = text[20] == 'A' ? 'B' : 'A';
  folder.write("key", text);
  EXPECT_EQ(load_or_make_key(folder / "key").code(), ErrorCode::kCorrupt);
  folder.write("key", "");
  EXPECT_EQ(load_or_make_key(folder / "key").code(), ErrorCode::kCorrupt);
}

// With another key its peers would take it for another run, and its logs would be nobody's.
TEST(HomeTest, AResumedRunThatLostItsKeyIsRefusedByNameAndGetsNoOther) {
  const ScratchFolder folder;
  const auto refused = load_run_key(folder / "", true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), ErrorCode::kMissing);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("run.key is missing"));
  EXPECT_THAT(refused.error().message, testing::HasSubstr("HINT: put it back"));
  EXPECT_EQ(load_key(run_key_path(folder / "")).code(), ErrorCode::kMissing) << "none was made";
  const auto made = load_run_key(folder / "", false);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(load_run_key(folder / "", true)->id(), made->id());
}

TEST(HomeTest, WithoutAHomeInTheEnvironmentItIsHere) {
  std::map<std::string, std::optional<std::string>> kept;
  for (const char* name : {"HOME", "XDG_DATA_HOME"}) {
    const char* const value = getenv(name);
    kept[name] = value == nullptr ? std::optional<std::string>() : std::optional<std::string>(value);
    unsetenv(name);
  }
  EXPECT_EQ(Home::default_path(), Home::kHere);
  setenv("HOME", "/somebody", 1);
  EXPECT_EQ(Home::default_path(), "/somebody/.local/share/shoal");
  setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(Home::default_path(), "/data/shoal");
  for (const auto& [name, value] : kept) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
}

TEST(HomeTest, AKeyThatIsNoFileIsNamedAtOnce) {
  const ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "key").c_str(), 0600), 0);
  const auto key = load_key(folder / "key");
  ASSERT_FALSE(key.ok());
  EXPECT_THAT(key.error().message, testing::HasSubstr("a FIFO"));
  folder.write("large", std::string(1000, 'x'));
  chmod((folder / "large").c_str(), 0600);
  EXPECT_EQ(load_key(folder / "large").code(), ErrorCode::kCorrupt);
}

TEST(HomeTest, NamesTheFolderThatCannotBeMade) {
  const ScratchFolder folder;
  folder.write("file", "x");
  const auto home = Home::open(folder / "file/home");
  ASSERT_FALSE(home.ok());
  EXPECT_THAT(home.error().message, testing::HasSubstr(folder / "file/home"));
}

}  // namespace
}  // namespace shoal
