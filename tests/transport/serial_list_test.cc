#include "transport/serial_list.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "common/rng.h"
#include "transport/envelope.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using Serials = std::vector<std::uint64_t>;
using Packed = std::vector<std::uint8_t>;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

Serials every(std::uint64_t step, std::size_t count, std::uint64_t first = 1) {
  Serials serials(count);
  for (std::size_t i = 0; i < count; ++i) serials[i] = first + step * i;
  return serials;
}

TEST(SerialListTest, HasItsBytes) {
  EXPECT_EQ(*pack_serials({}), Packed{});
  EXPECT_EQ(*pack_serials({0}), (Packed{0, 0}));
  EXPECT_EQ(*pack_serials({5, 6, 7, 10, 300}), (Packed{5, 2, 2, 0, 0xa1, 0x02, 0}));
  EXPECT_EQ(pack_serials(every(1, 51200))->size(), 4u);
}

TEST(SerialListTest, ComesBackAsItWas) {
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    Serials serials;
    std::uint64_t at = rng.below(2) == 0 ? 0 : rng.next() >> rng.below(64);
    for (std::uint64_t n = rng.below(300); serials.size() < n && at < kMax - (1u << 20);) {
      serials.push_back(at);
      at += rng.below(3) == 0 ? 1 + rng.below(1u << rng.below(16)) : 1;
    }
    const auto packed = pack_serials(serials);
    ASSERT_TRUE(packed.ok());
    EXPECT_EQ(*parse_serials(*packed), serials);
  }
  const Serials last = {kMax - 3, kMax - 1, kMax};
  EXPECT_EQ(*parse_serials(*pack_serials(last)), last);
}

TEST(SerialListTest, RefusesWhatDoesNotRise) {
  for (const Serials& bad :
       {Serials{1, 1}, Serials{2, 1}, Serials{1, 2, 3, 2}, Serials{kMax, 0}, Serials{1, kMax, kMax}})
    EXPECT_EQ(pack_serials(bad).code(), ErrorCode::kMalformed);
}

TEST(SerialListTest, RefusesHostileBytes) {
  const Packed good = *pack_serials({5, 6, 7, 10, 300});
  for (const std::size_t cut : {1u, 3u, 5u, 6u})
    EXPECT_EQ(parse_serials(ByteView(good).first(cut)).code(), ErrorCode::kMalformed) << cut;
  const Packed huge = {0, 0xff, 0xff, 0xff, 0xff, 0x0f};
  EXPECT_EQ(parse_serials(huge).code(), ErrorCode::kTooLarge) << "a run that would fill the memory";
  const Packed touching = {0, 0, 0, 0}, overlong = {0x80, 0, 0};
  EXPECT_EQ(parse_serials(touching).code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_serials(overlong).code(), ErrorCode::kMalformed);
  Packed wide(10, 0xff);
  wide.back() = 0x7f;
  EXPECT_EQ(parse_serials(wide).code(), ErrorCode::kMalformed) << "above 64 bits";
  Packed behind_last(9, 0xff);
  behind_last.insert(behind_last.end(), {0x01, 0, 1, 0});  // the last serial there is, then another run
  EXPECT_EQ(parse_serials(behind_last).code(), ErrorCode::kMalformed);
  behind_last.resize(10);
  behind_last.push_back(1);  // a run beyond the last serial
  EXPECT_EQ(parse_serials(behind_last).code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_serials(Packed(limits::kSerialBytesMax + 1)).code(), ErrorCode::kTooLarge);
  Packed two_long;  // together more than allowed
  for (int i = 0; i < 2; ++i) two_long.insert(two_long.end(), {1, 0xff, 0xff, 0x0a});
  EXPECT_EQ(parse_serials(two_long).code(), ErrorCode::kTooLarge);
}

TEST(SerialListTest, NeverCrashesOnRandomBytes) {
  Rng rng(11);
  for (int i = 0; i < 20000; ++i) {
    Packed bytes(rng.below(24));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next() >> (rng.below(2) * 6));
    const auto parsed = parse_serials(bytes);
    if (parsed.ok()) {
      EXPECT_EQ(*pack_serials(*parsed), bytes);
    }
  }
}

// As many as a run's window of ids allows, and no two neighbours: a message of the control lane still holds it.
TEST(SerialListTest, TheLongestRoundFitsAMessage) {
  RoundReport report;
  report.entries = every(2, limits::kSerialsMax);
  RoundCommit commit;
  for (std::uint64_t member = 0; member < limits::kReplicasMax; ++member)
    commit.secured.push_back({Session{member, kMax}, every(100, limits::kSerialsMax / limits::kReplicasMax, kMax / 2)});
  for (const Message& message : {Message(report), Message(commit)}) {
    const auto packed = pack_envelope(message, std::nullopt);
    ASSERT_TRUE(packed.ok()) << packed.error().message;
    EXPECT_TRUE(parse_envelope(*packed).ok());
  }
  commit.secured.push_back({Session{}, {1}});
  EXPECT_EQ(pack_envelope(commit, std::nullopt).code(), ErrorCode::kTooLarge)
      << "the limit is the message's, not a list's";
  report.entries.push_back(kMax);
  EXPECT_EQ(pack_envelope(report, std::nullopt).code(), ErrorCode::kTooLarge);
}

// A list of a few bytes may stand for many serials; thousands of such lists in one message must not.
TEST(SerialListTest, ManyListsShareOneLimit) {
  const Packed half = *pack_serials(every(1, limits::kSerialsMax / 2 + 1));
  EXPECT_TRUE(parse_serials(half).ok());
  EXPECT_EQ(parse_serials(half, limits::kSerialsMax / 2).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(parse_serials(*pack_serials({7}), 0).code(), ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace shoal
