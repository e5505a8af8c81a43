// The checkpoints that a peer keeps on its disks, through full disks, power losses and flipped bytes.
#include "state/checkpoint_store.h"

#include <gmock/gmock.h>

#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "tests/state/checkpoint_rig.h"

namespace shoal {
namespace {

using test::file_of;
using test::image_of;
using test::key_numbered;
using test::parse_file;
using test::run_numbered;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two disks of a machine: folders that begin with "b" lie on the second.
class TwoDisks final : public Storage {
 public:
  TwoDisks(EventLoop& loop, SimDisk& first, SimDisk& second) : first_(loop, first), second_(loop, second) {}
  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path) override {
    return of(path).open_append(path);
  }
  Result<Bytes> read(const std::string& path, std::size_t limit) override { return of(path).read(path, limit); }
  Result<std::uint64_t> read_at(const std::string& path, std::uint64_t at, MutableByteView into) override {
    if (at > 0) arrays_read.push_back(path);
    return of(path).read_at(path, at, into);
  }
  void replace(const std::string& path, std::vector<Bytes> parts, std::function<void(Status)> done) override {
    of(path).replace(path, std::move(parts), std::move(done));
  }
  Status truncate(const std::string& path, std::size_t size) override { return of(path).truncate(path, size); }
  Status rewrite(const std::string& path, std::size_t at, Bytes bytes) override {
    return of(path).rewrite(path, at, std::move(bytes));
  }
  void die() {
    first_.die();
    second_.die();
  }
  std::vector<std::string> arrays_read;

 private:
  SimStorage& of(const std::string& path) { return path.starts_with('b') ? second_ : first_; }
  SimStorage first_, second_;
};

class CheckpointStoreTest : public testing::Test {
 protected:
  // A process begins, after the end of the one before.
  const CheckpointStore::Loaded& start(std::vector<std::string> folders = {"a"}) {
    store_.reset();
    if (storage_) storage_->die();
    storage_ = std::make_unique<TwoDisks>(loop_, disk_, second_disk_);
    store_ = std::make_unique<CheckpointStore>(*storage_, std::move(folders), run_, key_.id());
    loaded_ = store_->load();
    return loaded_;
  }
  std::vector<Bytes> parts_of(std::uint64_t version, std::uint64_t saved_s = 1000) {
    return checkpoint_parts({.run = run_, .sequence = store_->next_sequence(), .saved_s = saved_s},
                            image_of(*rule_, Version(version)), key_);
  }
  Status save(std::uint64_t version, std::uint64_t saved_s = 1000) {
    std::optional<Status> outcome;
    store_->save(parts_of(version, saved_s), [&outcome](const Status& status) { outcome = status; });
    EXPECT_TRUE(loop_.run_until_true([&] { return outcome.has_value(); }, loop_.now() + std::chrono::minutes(1)));
    return outcome.value_or(make_error(ErrorCode::kTimeout, "no answer"));
  }
  std::uint64_t newest() const { return loaded_.newest ? loaded_.newest->info.state.version.value : 0; }
  // Of the file in that slot; 0: none that is good.
  std::uint64_t version_in(std::size_t slot, const std::string& folder = "a") {
    const auto file = (folder == "a" ? disk_ : second_disk_).content(path(slot, folder));
    const auto read = file ? parse_file(*file) : make_error(ErrorCode::kMissing, "");
    return read.ok() ? read->info.state.version.value : 0;
  }
  std::string path(std::size_t slot, const std::string& folder = "a") const {
    return folder + "/checkpoint-0303030303030303-" + hex_of(key_.id()).substr(0, 16) + "-" + std::to_string(slot) +
           ".safetensors";
  }
  void flip(std::size_t slot) {
    std::vector<std::uint8_t> bytes = disk_.content(path(slot)).value();
    bytes[bytes.size() - 5] ^= 0x10;
    disk_.put(path(slot), std::move(bytes));
  }

  SimLoop loop_;
  SimDisk disk_{1}, second_disk_{2};
  RunId run_ = run_numbered(3);
  KeyPair key_ = key_numbered(1);
  std::unique_ptr<OuterRule> rule_ = make_diloco_rule();
  std::unique_ptr<TwoDisks> storage_;
  std::unique_ptr<CheckpointStore> store_;
  CheckpointStore::Loaded loaded_;
};

TEST_F(CheckpointStoreTest, TheLastOneSavedIsReadAndItsSequenceGoesOn) {
  EXPECT_FALSE(start().newest);
  EXPECT_THAT(loaded_.problems, IsEmpty());
  for (const std::uint64_t version : {4, 5, 6}) ASSERT_TRUE(save(version).ok());
  EXPECT_EQ(store_->next_sequence(), 4u);
  start();
  EXPECT_EQ(newest(), 6u);
  EXPECT_EQ(store_->next_sequence(), 4u);
  EXPECT_THAT(loaded_.problems, IsEmpty());
  EXPECT_EQ(version_in(0), 6u);
  EXPECT_EQ(version_in(1), 5u);
  EXPECT_FALSE(disk_.content(path(2)));
}

TEST_F(CheckpointStoreTest, ANameIsThatOfACheckpointOrNot) {
  const std::string name = checkpoint_name(run_, key_.id(), 12);
  EXPECT_EQ("a/" + name, path(12));
  EXPECT_TRUE(is_checkpoint_name(name));
  EXPECT_TRUE(is_checkpoint_name(name, key_.id()));
  EXPECT_FALSE(is_checkpoint_name(name, key_numbered(2).id()));
  for (std::size_t length = 0; length < name.size(); ++length) {
    EXPECT_FALSE(is_checkpoint_name(name.substr(0, length)));
    EXPECT_FALSE(is_checkpoint_name(name.substr(length + 1)));
    std::string other = name;
    other[length] = 'g';
    EXPECT_FALSE(is_checkpoint_name(other)) << other;
  }
  for (const char* other : {"checkpoint-.safetensors", "checkpoint-best.safetensors", "checkpoint-safetensors"})
    EXPECT_FALSE(is_checkpoint_name(other)) << other;
}

TEST_F(CheckpointStoreTest, AFlippedNewestFallsBackToTheOlderAndIsWrittenOverFirst) {
  start();
  for (const std::uint64_t version : {4, 5}) ASSERT_TRUE(save(version).ok());
  flip(1);
  start();
  EXPECT_EQ(newest(), 4u);
  ASSERT_THAT(loaded_.problems, SizeIs(1));
  EXPECT_THAT(loaded_.problems[0], HasSubstr(path(1) + ": checkpoint: its arrays are not those that were written"));
  ASSERT_TRUE(save(6).ok());
  EXPECT_EQ(version_in(0), 4u) << "the only good one is not touched";
  EXPECT_EQ(version_in(1), 6u);
}

TEST_F(CheckpointStoreTest, OfManyOnlyTheNewestIsReadWholeAndWhereItIsDamagedTheNextOlder) {
  start();
  store_->keep(6);
  for (const std::uint64_t version : {1, 2, 3, 4, 5, 6}) ASSERT_TRUE(save(version).ok());
  start();
  EXPECT_EQ(newest(), 6u);
  EXPECT_THAT(storage_->arrays_read, ElementsAre(path(5)));
  flip(5);
  start();
  EXPECT_EQ(newest(), 5u);
  EXPECT_THAT(storage_->arrays_read, ElementsAre(path(5), path(4)));
}

TEST_F(CheckpointStoreTest, AFileOfAnotherRunOrPeerIsAProblem) {
  start();
  ASSERT_TRUE(save(4).ok());
  const Bytes image = image_of(*rule_, Version(9));
  disk_.put(path(1), file_of(checkpoint_parts({.run = run_numbered(4), .sequence = 99}, image, key_)));
  disk_.put(path(2), file_of(checkpoint_parts({.run = run_, .sequence = 99}, image, key_numbered(2))));
  disk_.put(path(5), {'{'});
  start();
  EXPECT_EQ(newest(), 4u);
  EXPECT_EQ(store_->next_sequence(), 2u);
  ASSERT_THAT(loaded_.problems, SizeIs(3));
  for (const std::size_t i : {0, 1}) {
    EXPECT_THAT(loaded_.problems[i], HasSubstr(path(i + 1) + ": "));
    EXPECT_THAT(loaded_.problems[i], HasSubstr("of another run or another peer"));
  }
  EXPECT_THAT(loaded_.problems[2], HasSubstr(path(5) + ": "));
}

TEST_F(CheckpointStoreTest, AFullOrFailingDiskLeavesTheNewestReadable) {
  start();
  for (const std::uint64_t version : {4, 5}) ASSERT_TRUE(save(version).ok());
  const std::size_t size = disk_.content(path(0))->size();
  for (const bool full : {true, false}) {
    if (full) disk_.set_capacity_bytes(2 * size + size / 2);
    disk_.set_failing(!full);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const Status saved = save(6);
      ASSERT_FALSE(saved.ok());
      EXPECT_THAT(saved.error().message, HasSubstr(path(0)));
      EXPECT_EQ(store_->next_sequence(), 3u);
    }
    start();
    EXPECT_EQ(newest(), 5u);
    EXPECT_THAT(loaded_.problems, IsEmpty());
  }
  disk_.set_capacity_bytes(SIZE_MAX);
  disk_.set_failing(false);
  ASSERT_TRUE(save(7).ok());
  start();
  EXPECT_EQ(newest(), 7u);
}

TEST_F(CheckpointStoreTest, APowerLossDuringAReplacementNeverCostsTheNewest) {
  start();
  ASSERT_TRUE(save(1).ok());
  int happened = 0;
  constexpr int kLosses = 60;
  for (int loss = 0; loss < kLosses; ++loss) {
    const std::uint64_t version = start().newest->info.state.version.value;
    store_->save(parts_of(version + 1), [](const Status&) { FAIL() << "the process is dead"; });
    storage_->die();
    disk_.power_lost();
    start();
    ASSERT_THAT(loaded_.problems, IsEmpty());
    ASSERT_TRUE(newest() == version || newest() == version + 1);
    happened += newest() == version + 1 ? 1 : 0;
  }
  EXPECT_GT(happened, 0);
  EXPECT_LT(happened, kLosses);
}

TEST_F(CheckpointStoreTest, EveryFolderGetsEachAndOneThatFailsIsTold) {
  const std::vector<std::string> folders = {"a", "b"};
  start(folders);
  ASSERT_TRUE(save(4).ok());
  EXPECT_THAT(store_->take_problems(), IsEmpty());
  EXPECT_EQ(version_in(0, "a"), 4u);
  EXPECT_EQ(version_in(0, "b"), 4u);
  second_disk_.set_failing(true);
  for (const std::uint64_t version : {5, 6}) {
    ASSERT_TRUE(save(version).ok()) << "the other one has it";
    const std::vector<std::string> problems = store_->take_problems();
    ASSERT_THAT(problems, SizeIs(1));
    EXPECT_THAT(problems[0], HasSubstr("b/checkpoint-"));
    EXPECT_THAT(store_->take_problems(), IsEmpty());
  }
  start(folders);
  EXPECT_EQ(newest(), 6u) << "the second folder has an older one in the same slot";
  disk_.set_failing(true);
  EXPECT_FALSE(save(7).ok()) << "nobody has it";
  EXPECT_THAT(store_->take_problems(), IsEmpty()) << "the error says it";
  second_disk_.set_failing(false);
  ASSERT_TRUE(save(7).ok());
  EXPECT_THAT(store_->take_problems(), SizeIs(1));
  start({"b"});
  EXPECT_EQ(newest(), 7u) << "each folder stands alone";
}

TEST_F(CheckpointStoreTest, AsManyAsAreKeptTakeTurns) {
  start();
  store_->keep(3);
  for (const std::uint64_t version : {1, 2, 3, 4, 5}) ASSERT_TRUE(save(version).ok());
  EXPECT_EQ(version_in(0), 4u);
  EXPECT_EQ(version_in(1), 5u);
  EXPECT_EQ(version_in(2), 3u);
  EXPECT_FALSE(disk_.content(path(3)));
  start();
  store_->keep(3);
  ASSERT_TRUE(save(6).ok()) << "in the turn that the process before left";
  EXPECT_EQ(version_in(2), 6u);
  store_->keep(1);  // fewer than two would leave none while one is written
  ASSERT_TRUE(save(7).ok());
  ASSERT_TRUE(save(8).ok());
  EXPECT_EQ(version_in(0), 7u);
  EXPECT_EQ(version_in(1), 8u);
  EXPECT_EQ(version_in(2), 6u) << "those of more slots stay";
  start();
  EXPECT_EQ(newest(), 8u);
}

TEST_F(CheckpointStoreTest, AClockThatGoesBackDoesNotMatter) {
  start();
  for (const std::uint64_t version : {4, 5, 6}) ASSERT_TRUE(save(version, 10'000 - 100 * version).ok());
  start();
  EXPECT_EQ(newest(), 6u);
  ASSERT_TRUE(save(7, 0).ok());
  start();
  EXPECT_EQ(newest(), 7u);
  EXPECT_EQ(loaded_.newest->info.saved_s, 0u);
}

// A stage that was restored stands at a lower version than what its disk has seen.
TEST_F(CheckpointStoreTest, ALowerVersionThatWasSavedLaterIsTheNewest) {
  start();
  for (const std::uint64_t version : {8, 9, 5}) ASSERT_TRUE(save(version).ok());
  start();
  EXPECT_EQ(newest(), 5u);
}

// What is offered is what a stage may go back to: also when the newest is of no use to it.
TEST_F(CheckpointStoreTest, EveryVersionIsOfferedNewestFirstAndReadWhenItIsWanted) {
  start();
  store_->keep(3);
  for (std::uint64_t version = 1; version <= 4; ++version) ASSERT_TRUE(save(version).ok());
  const auto versions = [&] {
    std::vector<std::uint64_t> all;
    for (const HeldState& one : store_->usable(StageId(0))) all.push_back(one.version.value);
    return all;
  };
  EXPECT_THAT(versions(), ElementsAre(4, 3, 2)) << "as it was written";
  start();
  EXPECT_THAT(versions(), ElementsAre(4, 3, 2)) << "as it is found";
  EXPECT_THAT(store_->usable(StageId(1)), IsEmpty());
  const HeldState third = store_->usable(StageId(0))[1];
  const auto read = store_->read(StageId(0), third.digest);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->info.state.version, Version(3));
  EXPECT_EQ(digest_of_image(read->image), third.digest);
  EXPECT_EQ(store_->read(StageId(1), third.digest).code(), ErrorCode::kMissing);
}

TEST_F(CheckpointStoreTest, AnOlderOneThatIsDamagedIsOfferedNoMoreOnceThatIsSeen) {
  start();
  for (std::uint64_t version = 1; version <= 2; ++version) ASSERT_TRUE(save(version).ok());
  auto file = disk_.content(path(0)).value();
  file.back() ^= 1;
  disk_.put(path(0), file);
  start();
  ASSERT_THAT(store_->usable(StageId(0)), SizeIs(2));
  const Digest damaged = store_->usable(StageId(0))[1].digest;
  EXPECT_FALSE(store_->read(StageId(0), damaged).ok());
  EXPECT_THAT(store_->usable(StageId(0)), SizeIs(1));
}

}  // namespace
}  // namespace shoal
