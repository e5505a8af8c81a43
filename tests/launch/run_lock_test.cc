#include "runtime/launch/run_lock.h"

#include <gtest/gtest.h>

#include "common/os/file_storage.h"
#include "common/os/thread_loop.h"
#include "runtime/launch/standby.h"
#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

TEST(RunLockTest, OneProcessHasItAndTheOthersAreToldWhich) {
  SimLoop loop;
  SimDisk disk;
  SimStorage one(loop, disk), other(loop, disk);
  auto first = std::make_optional(RunLock::take(one, "run", "process 7 on a machine with a long name").value());
  const auto second = RunLock::take(other, "run", "process 8");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), ErrorCode::kBusy);
  EXPECT_EQ(second.error().message, "run is in use by process 7 on a machine with a long name");
  first.reset();
  const auto third = RunLock::take(other, "run", "process 9");
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(RunLock::take(one, "run", "process 7").error().message, "run is in use by process 9")
      << "nothing is left of the earlier holder's word";
}

TEST(RunLockTest, AFolderThatIsGoneIsNamedAndNotWaitedFor) {
  ScratchFolder folder;
  ThreadLoop loop;
  FileStorage storage(loop);
  const auto lock = RunLock::take(storage, folder / "nowhere", "process 1");
  ASSERT_FALSE(lock.ok());
  EXPECT_EQ(lock.code(), ErrorCode::kMissing);
  EXPECT_NE(lock.error().message.find(folder / "nowhere"), std::string::npos) << lock.error().message;

  class Heard final : public Standby::Owner {
   public:
    explicit Heard(ThreadLoop& loop) : loop_(loop) {}
    void on_waiting(const std::string& why) override { ADD_FAILURE() << why; }
    void on_warning(const std::string& line) override { ADD_FAILURE() << line; }
    void on_turn(RunLock) override { ADD_FAILURE() << "of a folder that is not there"; }
    void on_failed(const Error& error) override {
      failure = error;
      loop_.stop();
    }
    std::optional<Error> failure;

   private:
    ThreadLoop& loop_;
  } heard(loop);
  Standby standby(loop, storage, folder / "nowhere", "process 1", heard);
  standby.start();
  loop.run();
  ASSERT_TRUE(heard.failure);
  EXPECT_EQ(heard.failure->code, ErrorCode::kMissing);
}

}  // namespace
}  // namespace shoal
