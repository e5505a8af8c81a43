#include "common/large_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "common/bulk_bytes.h"
#include "common/bytes.h"
#include "common/time.h"

namespace shoal {
namespace {

bool mapped(const std::uint8_t* page) {
  unsigned char state = 0;
  return ::mincore(const_cast<std::uint8_t*>(page), 1, &state) == 0 || errno != ENOMEM;
}

bool touched(const std::uint8_t* page) {
  unsigned char state = 0;
  return ::mincore(const_cast<std::uint8_t*>(page), 1, &state) == 0 && (state & 1) != 0;
}

TEST(LargeMemoryTest, ALargeBufferIsZeroWithoutHavingBeenCleared) {
  bulk_bytes() = 0;
  Buffer large(kLargeBytes + 1);
  EXPECT_EQ(bulk_bytes(), 0u);
  EXPECT_FALSE(touched(large.data())) << "taken as it is used";
  EXPECT_TRUE(std::all_of(large.data(), large.data() + large.size(), [](std::uint8_t b) { return b == 0; }));
  large.data()[kLargeBytes] = 7;
  const Bytes bytes = std::move(large).freeze();
  EXPECT_EQ(bytes.data()[kLargeBytes], 7);
  Buffer small(kLargeBytes - 1);
  EXPECT_EQ(bulk_bytes(), kLargeBytes - 1) << "memory that is used again is cleared";
}

TEST(LargeMemoryTest, WhatWasDroppedIsGivenBack) {
  const std::uint8_t* first = nullptr;
  {
    Buffer large(3 * kLargeBytes);
    first = large.data();
    std::fill_n(large.data(), large.size(), std::uint8_t{1});
    ASSERT_TRUE(mapped(first));
  }
  for (int i = 0; mapped(first) && i < 1000; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(mapped(first));
}

TEST(LargeMemoryTest, BytesKnowTheirSumWhenItWasMade) {
  const Bytes bytes = Bytes::copy_of(std::string_view("123456789"));
  const Bytes summed = bytes.summed();
  bulk_bytes() = 0;
  EXPECT_EQ(summed.sum(), 0xe3069283u) << "CRC-32C's check value";
  EXPECT_EQ(bulk_bytes(), 0u);
  EXPECT_EQ(bytes.sum(), summed.sum());
  EXPECT_EQ(bulk_bytes(), 9u);
  EXPECT_EQ(summed.slice(0, 4).sum(), crc32c(bytes.view().first(4))) << "a part has a sum of its own";
}

TEST(BulkBytesTest, WhatRanElsewhereDoesNotCount) {
  bulk_bytes() = 5;
  {
    const BulkElsewhere elsewhere;
    Buffer buffer(100);
    EXPECT_EQ(bulk_bytes(), 105u);
  }
  EXPECT_EQ(bulk_bytes(), 5u);
}

}  // namespace
}  // namespace shoal
