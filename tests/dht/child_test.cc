// The supervisor and real children.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/os/file_storage.h"
#include "dht/dht_child.h"
#include "dht/spawned_child.h"
#include "tests/common/scratch_folder.h"
#include "tests/dht/real_rig.h"
#include "tests/dht/records.h"

namespace shoal {
namespace {

class ChildTest : public ::testing::Test {
 protected:
  std::vector<PeerRecord> look_up(DhtDirectory& directory, Duration budget = 5s) {
    std::optional<std::vector<PeerRecord>> answer;
    directory.look_up_stage(StageId(0), budget, [&](std::vector<PeerRecord> records) { answer = std::move(records); });
    EXPECT_TRUE(rig_.run_until([&] { return answer.has_value(); }, budget + 1s));
    return answer.value_or(std::vector<PeerRecord>());
  }
  void announce(DhtDirectory& directory, std::uint64_t sequence) {
    directory.announce(packed(peer_record(run_, ann_, 0, sequence, rig_.loop().wall()), ann_),
                       stage_key(run_of(run_), StageId(0)));
  }
  // Until `wanted` are found: an answer may come within milliseconds, before what was put has spread.
  std::vector<PeerRecord> look_up_until(DhtDirectory& directory, std::size_t wanted) {
    std::vector<PeerRecord> found = look_up(directory);
    for (const TimePoint end = monotonic_now() + 60s; found.size() < wanted && monotonic_now() < end;) {
      (void)rig_.run_until([] { return false; }, 100ms);
      found = look_up(directory);
    }
    return found;
  }
  bool found_by_stranger() { return !look_up_until(rig_.make(run_of(run_)), 1).empty(); }
  const KeyPair run_ = key_of_number(1), ann_ = key_of_number(2);
  RealDirectoryRig rig_;
};

TEST_F(ChildTest, AKilledChildIsReplacedAndItsRecordsComeBack) {
  DhtDirectory& a = rig_.make(run_of(run_));
  DhtDirectory& b = rig_.make(run_of(run_));
  announce(a, 1);
  ASSERT_TRUE(rig_.run_until([&] { return a.alive(); }, 30s));
  const int before = rig_.child_of(a).process_id();
  const std::uint16_t port = a.port();
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  ASSERT_TRUE(rig_.run_until([&] { return rig_.child_of(a).counters().starts == 2 && a.alive(); }, 30s));
  EXPECT_NE(rig_.child_of(a).process_id(), before);
  EXPECT_EQ(a.port(), port) << "others still know it by its port";
  EXPECT_EQ(rig_.child_of(a).counters().deaths, 1u);
  EXPECT_TRUE(rig_.run_until([&] { return a.good_nodes() > 0; }, 30s));
  EXPECT_FALSE(look_up(b).empty());
  EXPECT_TRUE(found_by_stranger());
}

TEST_F(ChildTest, WhileNoChildCanStartTheCacheServesAlsoANewProcess) {
  ScratchFolder folder;
  FileStorage storage(rig_.loop());
  DhtDirectory& a = rig_.make(run_of(run_), &storage, folder / "peers.cache");
  announce(a, 1);
  ASSERT_TRUE(rig_.run_until([&] { return std::ifstream(folder / "peers.cache").good(); }, 30s));
  ASSERT_TRUE(rig_.run_until([&] { return a.alive(); }, 30s));
  rig_.set_outage(true);
  ASSERT_TRUE(rig_.run_until([&] { return !a.alive(); }, 30s));
  EXPECT_EQ(look_up(a).size(), 1u);
  DhtDirectory& later = rig_.make(run_of(run_), &storage, folder / "peers.cache");
  EXPECT_EQ(look_up(later).size(), 1u);
  EXPECT_FALSE(later.alive());
  rig_.set_outage(false);
  EXPECT_TRUE(rig_.run_until([&] { return a.alive() && later.alive(); }, 30s));
  EXPECT_TRUE(found_by_stranger());
}

TEST_F(ChildTest, AFrozenChildIsNoticedAndReplaced) {
  DhtChildOptions options = RealDirectoryRig::child_options(rig_.network());
  options.silence_max = 2s;
  auto child = DhtChild::start(rig_.loop(), options);
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(rig_.run_until([&] { return (*child)->alive(); }, 30s));
  ASSERT_EQ(::kill((*child)->process_id(), SIGSTOP), 0);
  EXPECT_TRUE(rig_.run_until([&] { return (*child)->counters().starts >= 2 && (*child)->alive(); }, 30s));
}

TEST_F(ChildTest, TheChildEndsWithItsSupervisor) {
  auto child = DhtChild::start(rig_.loop(), RealDirectoryRig::child_options(rig_.network()));
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(rig_.run_until([&] { return (*child)->alive(); }, 30s));
  const int process = (*child)->process_id();
  child->reset();
  EXPECT_EQ(::kill(process, 0), -1) << "reaped";
}

TEST_F(ChildTest, ItsMemoryIsLimitedAndItHoldsNoFilesOfOurs) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow memory takes terabytes of address space: no limit in this build";
#endif
  const int ours = open("/dev/null", O_RDONLY);  // not close-on-exec, as files of libraries may be
  DhtDirectory& a = rig_.make(run_of(run_));
  ASSERT_TRUE(rig_.run_until([&] { return a.alive(); }, 30s));
  const std::string proc = "/proc/" + std::to_string(rig_.child_of(a).process_id());
  std::ifstream limits(proc + "/limits");
  std::string line, address_space;
  while (std::getline(limits, line))
    if (line.starts_with("Max address space")) address_space = line;
  EXPECT_NE(address_space.find(" 536870912 "), std::string::npos) << address_space;
  for (const auto& file : std::filesystem::directory_iterator(proc + "/fd")) {
    std::error_code gone;
    EXPECT_NE(std::filesystem::read_symlink(file.path(), gone), "/dev/null") << file.path();
  }
  close(ours);
  std::ifstream status(proc + "/status");
  std::string privileges;
  while (std::getline(status, line))
    if (line.starts_with("NoNewPrivs")) privileges = line;
  EXPECT_NE(privileges.find('1'), std::string::npos) << privileges;
}

// The packaged OpenDHT dies of this datagram; a later one may not, and then needs no restart.
TEST_F(ChildTest, ADatagramThatKillsTheChildCostsARestartOnly) {
  DhtDirectory& a = rig_.make(run_of(run_));
  announce(a, 1);
  ASSERT_TRUE(rig_.run_until([&] { return a.alive() && a.good_nodes() > 0; }, 30s));
  const int udp = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(a.port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const unsigned char packet[] = {0x81, 0xa1, 'e', 0x90};  // a map whose "e" is an empty array
  ASSERT_EQ(sendto(udp, packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&to), sizeof to), 4);
  close(udp);
  const bool died = rig_.run_until([&] { return rig_.child_of(a).counters().deaths > 0; }, 3s);
  EXPECT_TRUE(rig_.run_until([&] { return a.alive(); }, 30s));
  EXPECT_EQ(look_up(a).size(), 1u);
  const std::uint64_t starts = died ? 2 : 1;
  EXPECT_TRUE(rig_.run_until([&] { return rig_.child_of(a).counters().starts >= starts && a.good_nodes() > 0; }, 30s));
  EXPECT_TRUE(found_by_stranger());
}

// Strangers may put anything anywhere: nodes of ours hold only what is signed and belongs there, and a copied value id
// replaces nothing.
TEST_F(ChildTest, ForgedValuesAreNeitherStoredNorSeen) {
  DhtDirectory& a = rig_.make(run_of(run_));
  announce(a, 5);
  ASSERT_TRUE(found_by_stranger());
  auto stranger = DhtChild::start(rig_.loop(), RealDirectoryRig::child_options(rig_.network()));
  ASSERT_TRUE(stranger.ok());
  ASSERT_TRUE(rig_.run_until([&] { return (*stranger)->alive(); }, 30s));
  (*stranger)->bootstrap("127.0.0.1:" + std::to_string(rig_.seed_port()));
  const std::string key = stage_key(run_of(run_), StageId(0));
  std::string forged = packed(peer_record(run_, ann_, 0, 6, rig_.loop().wall()), ann_);
  forged.replace(forged.find("\"seq\":6"), 7, "\"seq\":9");
  const KeyPair other = key_of_number(50);
  (*stranger)->put(key, 1, 1, forged);
  (*stranger)->put(key, 2, 1, "{}");
  (*stranger)->put(key, 3, 1, packed(peer_record(run_, ann_, 1, 7, rig_.loop().wall()), ann_));   // of another key
  (*stranger)->put(key, 4, 1, packed(peer_record(other, ann_, 0, 8, rig_.loop().wall()), ann_));  // of another run
  // Putting a good one last shows when the others have had their chance.
  const KeyPair ben = key_of_number(3);
  (*stranger)->put(key, 5, 1, packed(peer_record(run_, ben, 0, 1, rig_.loop().wall()), ben));
  DhtDirectory& reader = rig_.make(run_of(run_));
  const std::vector<PeerRecord> seen = look_up_until(reader, 2);
  ASSERT_EQ(seen.size(), 2u);
  for (const PeerRecord& record : seen) EXPECT_EQ(record.sequence, record.peer == ben.id() ? 1u : 5u);
}

TEST(ChildStartTest, RefusesThePublicNetworkAndAMissingProgram) {
  ThreadLoop loop;
  DhtChildOptions options = RealDirectoryRig::child_options(0);
  EXPECT_EQ(DhtChild::start(loop, options).code(), ErrorCode::kInput);
  options.network = 5;
  options.program = "/nonexistent/shoal-dht";
  EXPECT_EQ(DhtChild::start(loop, options).code(), ErrorCode::kMissing);
}

TEST(SpawnedChildTest, SaysHowAProcessEnded) {
  auto child = SpawnedChild::spawn({"/bin/sh", "-c", "read line; exit 7"});
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->end(5s), "exit 7");
  auto stubborn = SpawnedChild::spawn({"/bin/sh", "-c", "trap '' TERM; while :; do read line < /dev/zero; done"});
  ASSERT_TRUE(stubborn.ok());
  EXPECT_EQ(stubborn->end(10ms), "signal 9");
  EXPECT_EQ(SpawnedChild::spawn({"/nonexistent"}).code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace shoal
