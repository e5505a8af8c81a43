#include "dht/disk_cache.h"

#include <gtest/gtest.h>

#include "dht/record.h"
#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "tests/dht/records.h"

namespace shoal {
namespace {

std::string some_record(std::uint64_t sequence) {
  const KeyPair run = key_of_number(1), peer = key_of_number(2);
  return packed(peer_record(run, peer, 0, sequence, kTestWall), peer);
}

class DiskCacheTest : public ::testing::Test {
 protected:
  SimLoop loop_{kTestWall};
  SimDisk disk_;
  SimStorage storage_{loop_, disk_};
  DiskCache cache_{&storage_, "peers.cache"};
};

TEST_F(DiskCacheTest, GivesBackWhatWasSaved) {
  const CacheContent content{{some_record(1), some_record(2)}, {"198.51.100.7:4222", "[2001:db8::1]:4222"}};
  cache_.save(content);
  loop_.run_for(1s);
  EXPECT_TRUE(cache_.last_status().ok());
  const CacheContent back = cache_.load();
  EXPECT_EQ(back.records, content.records);
  EXPECT_EQ(back.nodes, content.nodes);
}

TEST_F(DiskCacheTest, AnAbsentFileIsEmpty) { EXPECT_TRUE(cache_.load().records.empty()); }

TEST_F(DiskCacheTest, OfManySavesTheLastOneStandsInTheEnd) {
  for (std::uint64_t i = 1; i <= 5; ++i) cache_.save({{some_record(i)}, {}});
  loop_.run_for(1s);
  EXPECT_EQ(cache_.load().records, std::vector<std::string>{some_record(5)});
}

TEST_F(DiskCacheTest, KeepsTheNewestWithinItsBounds) {
  CacheContent content;
  for (std::uint64_t i = 0; i < kCacheRecordsMax + 10; ++i) content.records.push_back(some_record(i));
  for (std::uint64_t i = 1; i < kCacheNodesMax + 10; ++i) content.nodes.push_back("198.51.100.7:" + std::to_string(i));
  cache_.save(content);
  loop_.run_for(1s);
  const CacheContent back = cache_.load();
  ASSERT_EQ(back.records.size(), kCacheRecordsMax);
  EXPECT_EQ(back.records.front(), content.records.front());
  EXPECT_EQ(back.nodes.size(), kCacheNodesMax);
}

TEST_F(DiskCacheTest, ADiskThatFailsIsReportedAndNothingElse) {
  disk_.set_failing(true);
  cache_.save({{some_record(1)}, {}});
  loop_.run_for(1s);
  EXPECT_EQ(cache_.last_status().code(), ErrorCode::kIo);
  EXPECT_TRUE(cache_.load().records.empty());
}

TEST(CacheTextTest, EveryTruncationLosesAtMostWhatWasCut) {
  const std::string text = pack_cache({{some_record(1), some_record(2)}, {"198.51.100.7:4222"}});
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const CacheContent content = parse_cache(std::string_view(text).substr(0, size));
    for (const std::string& record : content.records) EXPECT_TRUE(parse_any_record(record).ok()) << size;
  }
}

TEST(CacheTextTest, SkipsLinesThatAreNeitherARecordNorANode) {
  const std::string text = "{\"shoal_cache\":1}\nrubbish\n{\"node\":\"0.0.0.0:1\"}\n{\"node\":7}\n[]\n\n" +
                           std::string(5000, 'x') + "\n" + some_record(3);
  const CacheContent content = parse_cache(text);
  EXPECT_EQ(content.records, std::vector<std::string>{some_record(3)});
  EXPECT_TRUE(content.nodes.empty());
  EXPECT_TRUE(parse_cache("{\"shoal_cache\":2}\n" + some_record(3)).records.empty()) << "another form";
}

}  // namespace
}  // namespace shoal
