#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "common/fault.h"
#include "common/os/file_storage.h"
#include "sim/sim_storage.h"
#include "tests/common/scratch_folder.h"
#include "tests/common/storage_contract.h"

namespace shoal {
namespace {

class RealStorageRig : public RealLoopRig {
 public:
  Storage& storage() { return storage_; }
  std::string path(const std::string& name) { return folder_ / name; }
  std::string full_path() { return "/dev/full"; }

 private:
  ScratchFolder folder_;
  FileStorage storage_{loop()};
};

class SimStorageRig : public SimLoopRig {
 public:
  SimStorage& storage() { return storage_; }
  SimDisk& disk() { return disk_; }
  std::string path(const std::string& name) { return "/home/" + name; }
  std::string full_path() {
    disk_.set_capacity_bytes(4);
    return path("full");
  }

 private:
  SimDisk disk_{3};
  SimStorage storage_{loop(), disk_};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Real, StorageContract, RealStorageRig);
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, StorageContract, SimStorageRig);

TEST(FileStorageTest, ReplaceLeavesNoTemporaryFileMakesAFolderThatIsGoneAndNamesOneThatCannotBe) {
  ScratchFolder folder;
  RealLoopRig rig;
  FileStorage storage(rig.loop());
  std::vector<Status> answers;
  ASSERT_TRUE(rig.run([&](Finish finish) {
    storage.replace(folder / "gone/there/state", {text_bytes("x")}, [&](Status status) { answers.push_back(status); });
    storage.replace(folder / "gone/there/state/none/state", {text_bytes("x")}, [&, finish](Status status) {
      answers.push_back(status);
      finish();
    });
  }));
  EXPECT_TRUE(answers[0].ok()) << answers[0].error().message;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "gone/there"), {}), 1);
  ASSERT_FALSE(answers[1].ok());
  EXPECT_THAT(answers[1].error().message, testing::HasSubstr("state/none"));
}

// What another program opened before the restart is no file of the path any more.
TEST(FileStorageTest, ARestartLeavesNoSecondFileAndOneThatFailsLeavesTheOldOneGoingOn) {
  ScratchFolder folder;
  RealLoopRig rig;
  FileStorage storage(rig.loop());
  auto file = storage.open_append(folder / "log").value();
  const auto restart = [&](const char* text) {
    std::optional<Status> answer;
    EXPECT_TRUE(rig.run([&](Finish finish) {
      file->restart({text_bytes(text)}, [&answer, finish](Status status) {
        answer = std::move(status);
        finish();
      });
    }));
    return *answer;
  };
  const auto append = [&](const char* text) {
    EXPECT_TRUE(rig.run([&](Finish finish) {
      file->append(text_bytes(text));
      file->sync([finish](Status status) {
        EXPECT_TRUE(status.ok()) << status.error().message;
        finish();
      });
    }));
  };
  append("old");
  std::filesystem::create_directory(folder / "log.next");  // it cannot be written there
  const Status failed = restart("new");
  EXPECT_EQ(failed.code(), ErrorCode::kIo);
  EXPECT_THAT(failed.error().message, testing::HasSubstr("log.next"));
  append(" goes on");
  EXPECT_EQ(text_in(storage.read(folder / "log", 100).value()), "old goes on");
  std::filesystem::remove(folder / "log.next");
  ASSERT_TRUE(restart("new").ok());
  append(" goes on");
  EXPECT_EQ(text_in(storage.read(folder / "log", 100).value()), "new goes on");
  const std::filesystem::directory_iterator entries(folder.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(FileStorageTest, WhatADeadProcessLeftBesideTheFileIsOverwritten) {
  ScratchFolder folder;
  RealLoopRig rig;
  FileStorage storage(rig.loop());
  auto file = storage.open_append(folder / "log").value();
  storage.open_append(folder / "log.next").value()->append(text_bytes("half of a longer content"));
  ASSERT_TRUE(rig.run([&](Finish finish) {
    file->restart({text_bytes("new")}, [finish](Status status) {
      EXPECT_TRUE(status.ok()) << status.error().message;
      finish();
    });
  }));
  EXPECT_EQ(text_in(storage.read(folder / "log", 100).value()), "new");
}

TEST(FileStorageTest, AFaultPointMakesASyncFail) {
  ScratchFolder folder;
  RealLoopRig rig;
  FileStorage storage(rig.loop());
  auto file = storage.open_append(folder / "log").value();
  ASSERT_TRUE(arm_faults("storage.sync=error@2").ok());
  ASSERT_TRUE(rig.run([&](Finish finish) {
    file->append(text_bytes("x"));
    file->sync([&, finish](Status first) {
      EXPECT_TRUE(first.ok());
      file->sync([finish](Status second) {
        EXPECT_EQ(second.code(), ErrorCode::kIo);
        finish();
      });
    });
  }));
  disarm_faults();
}

TEST(FileStorageTest, ManySyncsInOneBurstAllAnswerInOrder) {
  ScratchFolder folder;
  RealLoopRig rig;
  FileStorage storage(rig.loop());
  auto file = storage.open_append(folder / "log").value();
  std::vector<int> order;
  ASSERT_TRUE(rig.run([&](Finish finish) {
    for (int i = 0; i < 2000; ++i) {
      file->append(text_bytes("0123456789"));
      file->sync([&, i, finish](Status status) {
        EXPECT_TRUE(status.ok());
        order.push_back(i);
        if (i == 1999) finish();
      });
    }
  }));
  EXPECT_EQ(order.size(), 2000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(storage.read(folder / "log", 1 << 20).value().size(), 20000u);
}

TEST(FileStorageTest, ClosingAFileWritesWhatWasAppended) {
  ScratchFolder folder;
  ThreadLoop loop;
  FileStorage storage(loop);
  auto file = storage.open_append(folder / "log").value();
  for (int i = 0; i < 100; ++i) file->append(text_bytes("line\n"));
  file.reset();
  EXPECT_EQ(storage.read(folder / "log", 1 << 20).value().size(), 500u);
}

TEST(FileStorageTest, MoreThanTheBoundMayNotWait) {
  ScratchFolder folder;
  RealLoopRig rig;
  FileStorage storage(rig.loop());
  auto file = storage.open_append(folder / "log").value();
  const Bytes large = Buffer(kAppendPendingBytesMax + 1).freeze();
  ASSERT_TRUE(rig.run([&](Finish finish) {
    file->append(large);
    file->sync([finish](Status status) {
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.code(), ErrorCode::kIo);
      EXPECT_THAT(status.error().message, testing::HasSubstr("too slow"));
      finish();
    });
  }));
  EXPECT_EQ(storage.read(folder / "log", 1 << 20).value().size(), 0u);
}

TEST(FileLockTest, TheSecondOneIsRefusedUntilTheFirstIsGone) {
  ScratchFolder folder;
  auto first = FileLock::take(folder / "lock");
  ASSERT_TRUE(first.ok());
  const auto second = FileLock::take(folder / "lock");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), ErrorCode::kBusy);
  first = make_error(ErrorCode::kInterrupted, "released");
  EXPECT_TRUE(FileLock::take(folder / "lock").ok());
}

TEST(SimStorageTest, PowerLossKeepsWhatWasSyncedAndSomePagesOfTheRest) {
  const std::string whole = "safe " + std::string(500, 'u');
  bool some_tail_torn = false, some_hole = false;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimLoop loop;
    SimDisk disk(seed);
    auto storage = std::make_unique<SimStorage>(loop, disk);
    auto file = storage->open_append("/log").value();
    bool synced = false;
    file->append(text_bytes("safe "));
    file->sync([&](Status status) { synced = status.ok(); });
    loop.run_for(1s);
    ASSERT_TRUE(synced);
    file->append(text_bytes(whole.substr(5)));
    EXPECT_EQ(disk.content("/log")->size(), whole.size());
    file.reset();
    storage.reset();
    disk.power_lost();
    const auto left = disk.content("/log").value();
    ASSERT_GE(left.size(), 5u);
    EXPECT_TRUE(std::equal(left.begin(), left.begin() + 5, whole.begin()));
    bool zeros = false;
    for (std::size_t i = 5; i < left.size(); ++i) {
      EXPECT_TRUE(left[i] == 0 || left[i] == 'u');
      some_hole = some_hole || (zeros && left[i] != 0);
      zeros = zeros || left[i] == 0;
    }
    if (left.size() > 5 && left.size() < whole.size()) some_tail_torn = true;
  }
  EXPECT_TRUE(some_tail_torn);
  EXPECT_TRUE(some_hole) << "pages reach the disk in any order";
}

TEST(SimStorageTest, WhatAProcessDidNotSyncIsReadByTheNextOneAndGoneAfterAPowerLoss) {
  bool some_lost = false;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimLoop loop;
    SimDisk disk(seed);
    {
      SimStorage storage(loop, disk);
      auto file = storage.open_append("/log").value();
      file->append(text_bytes("unsynced"));
      file->sync([](Status) { ADD_FAILURE() << "the process is dead"; });
    }
    disk.process_died();
    loop.run_for(1s);
    EXPECT_EQ(disk.content("/log")->size(), 8u);
    EXPECT_EQ(disk.durable_content("/log")->size(), 0u);
    {
      SimStorage storage(loop, disk);
      auto file = storage.open_append("/log");
      ASSERT_TRUE(file.ok()) << "its lock died with it";
      EXPECT_EQ(text_in(storage.read("/log", 100).value()), "unsynced");
    }
    disk.power_lost();
    some_lost = some_lost || disk.content("/log")->size() < 8;
  }
  EXPECT_TRUE(some_lost);
}

TEST(SimStorageTest, AReplacementUnderWayAtPowerLossHappenedOrNot) {
  int happened = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimLoop loop;
    SimDisk disk(seed);
    disk.put("/state", {'o', 'l', 'd'});
    bool answered = false;
    {
      SimStorage storage(loop, disk);
      storage.replace("/state", {text_bytes("newer")}, [&](Status) { answered = true; });
    }
    disk.power_lost();
    loop.run_for(1s);
    EXPECT_FALSE(answered);
    const std::size_t size = disk.content("/state")->size();
    EXPECT_TRUE(size == 3 || size == 5);
    if (size == 5) ++happened;
  }
  EXPECT_GT(happened, 0);
  EXPECT_LT(happened, 40);
}

TEST(SimStorageTest, ARestartUnderWayAtPowerLossHappenedOrNotAndOneOnAFullDiskDidNot) {
  int happened = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimLoop loop;
    SimDisk disk(seed);
    {
      SimStorage storage(loop, disk);
      auto file = storage.open_append("/log").value();
      file->append(text_bytes("old"));
      bool full = false;
      file->sync([](Status status) { EXPECT_TRUE(status.ok()); });
      loop.run_for(1s);
      disk.set_capacity_bytes(5);
      file->restart({text_bytes("newer")}, [&](Status status) { full = status.code() == ErrorCode::kIo; });
      loop.run_for(1s);
      EXPECT_TRUE(full);
      disk.set_capacity_bytes(100);
      file->append(text_bytes("!"));
      file->sync([](Status status) { EXPECT_TRUE(status.ok()); });
      loop.run_for(1s);
      EXPECT_EQ(text_in(storage.read("/log", 100).value()), "old!");
      file->restart({text_bytes("newer")}, [](Status) { ADD_FAILURE() << "the process is dead"; });
    }
    disk.power_lost();
    loop.run_for(1s);
    const std::size_t size = disk.content("/log")->size();
    EXPECT_TRUE(size == 4 || size == 5);
    if (size == 5) ++happened;
  }
  EXPECT_GT(happened, 0);
  EXPECT_LT(happened, 40);
}

TEST(SimStorageTest, ADeadProcessHearsNothingAndFreesItsLock) {
  SimLoop loop;
  SimDisk disk;
  bool answered = false;
  {
    SimStorage storage(loop, disk);
    auto file = storage.open_append("/log").value();
    file->append(text_bytes("written, not synced"));
    file->sync([&](Status) { answered = true; });
  }
  loop.run_for(1s);
  EXPECT_FALSE(answered);
  SimStorage next(loop, disk);
  EXPECT_TRUE(next.open_append("/log").ok());
  EXPECT_EQ(disk.content("/log")->size(), 19u);  // the page cache outlives the process
}

TEST(SimStorageTest, AFailingDiskStaysAnErrorOfTheFileAfterItRecovered) {
  SimLoop loop;
  SimDisk disk;
  SimStorage storage(loop, disk);
  auto file = storage.open_append("/log").value();
  std::vector<bool> ok;
  const auto sync = [&] {
    file->append(text_bytes("x"));
    file->sync([&](Status status) { ok.push_back(status.ok()); });
    loop.run_for(1s);
  };
  sync();
  disk.set_failing(true);
  sync();
  disk.set_failing(false);
  sync();
  EXPECT_EQ(ok, std::vector<bool>({true, false, false}));
  EXPECT_EQ(disk.durable_content("/log")->size(), 1u);
}

// As Linux does: the error is said once, to whoever had the file open.
TEST(SimStorageTest, WhatAFailedSyncWasAskedForIsReadBackAndNeverDurableUnlessItIsWrittenAgain) {
  const std::string text = "safe " + std::string(500, 'u');
  for (const bool again : {false, true}) {
    SimLoop loop;
    SimDisk disk;
    const auto synced = [&](AppendFile& file) {
      std::optional<Status> answer;
      file.sync([&](Status status) { answer = std::move(status); });
      loop.run_for(1s);
      return answer && answer->ok();
    };
    {
      SimStorage storage(loop, disk);
      auto file = storage.open_append("/log").value();
      file->append(text_bytes("safe "));
      ASSERT_TRUE(synced(*file));
      file->append(text_bytes(text.substr(5)));
      disk.set_failing(true);
      ASSERT_FALSE(synced(*file));
    }
    disk.set_failing(false);
    disk.process_died();
    SimStorage storage(loop, disk);
    auto file = storage.open_append("/log").value();
    EXPECT_EQ(text_in(storage.read("/log", 1000).value()), text);
    if (again) {
      ASSERT_TRUE(storage.rewrite("/log", 5, text_bytes(text.substr(5))).ok());
    }
    ASSERT_TRUE(synced(*file));
    const auto durable = disk.durable_content("/log").value();
    disk.power_lost();
    const auto left = disk.content("/log").value();
    EXPECT_EQ(left, durable);
    EXPECT_EQ(std::string(left.begin(), left.end()), again ? text : "safe " + std::string(500, '\0'));
  }
}

TEST(SimStorageTest, SyncsThatWaitTogetherShareOne) {
  SimLoop loop;
  SimDisk disk;
  SimStorage storage(loop, disk);
  auto file = storage.open_append("/log").value();
  int answered = 0;
  for (int i = 0; i < 10; ++i) file->sync([&](Status) { ++answered; });
  loop.run_for(1s);
  EXPECT_EQ(answered, 10);
  EXPECT_EQ(disk.syncs(), 1u);
}

}  // namespace
}  // namespace shoal
