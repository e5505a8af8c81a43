// ids, results, bytes, random numbers, tensor shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "common/ids.h"
#include "common/rng.h"
#include "common/tensor_view.h"

namespace shoal {
namespace {

ByteView view_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

TEST(IdsTest, HexRoundTripsAndNamesAreItsStart) {
  PeerId peer;
  for (std::size_t i = 0; i < 32; ++i) peer.bytes[i] = static_cast<std::uint8_t>(i * 7 + 1);
  const std::string text = hex_of(peer);
  EXPECT_EQ(text.substr(0, 8), "01080f16");
  EXPECT_EQ(short_name(peer), "01080f16");
  EXPECT_EQ(parse_hex32(text).value(), peer.bytes);
  const Session session = Session::of(peer, 0xabcd000000000000ull);
  EXPECT_EQ(session.peer_tag, 0x01080f161d242b32ull);
  EXPECT_EQ(short_name(session), "01080f16.abcd");
}

TEST(IdsTest, HexOfAnotherLengthOrAlphabetIsMalformed) {
  EXPECT_EQ(parse_hex32(std::string(63, 'a')).code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_hex32(std::string(65, 'a')).code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_hex32(std::string(63, 'a') + "g").code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_hex32("").code(), ErrorCode::kMalformed);
  EXPECT_TRUE(parse_hex32(std::string(64, 'F')).ok());
}

TEST(IdsTest, PrintedNamesDiffer) {
  const Session session{1, 2};
  std::ostringstream out;
  out << EntryName{session, 3} << ' ' << Lease{session, 3} << ' ' << MicrobatchId{4, 5} << ' ' << StageId(6);
  EXPECT_EQ(out.str(), "0000000000000001.0000000000000002#3 0000000000000001.0000000000000002~3 0000000000000004:5 6");
}

TEST(IdsTest, CountTagsOfAMillionMicrobatchesAreAllDifferent) {
  std::vector<CountTag> tags;
  for (std::uint64_t trainer : {1ull, 2ull}) {
    for (std::uint64_t serial = 0; serial < 500'000; ++serial) tags.push_back(count_tag({trainer, serial}));
  }
  std::sort(tags.begin(), tags.end());
  EXPECT_EQ(std::adjacent_find(tags.begin(), tags.end()), tags.end());
}

Result<int> half_of(int n) {
  if (n % 2 != 0) return make_error(ErrorCode::kInput, "odd");
  return n / 2;
}
Result<int> quarter_of(int n) {
  SHOAL_ASSIGN(const int half, half_of(n));
  SHOAL_ASSIGN(const int quarter, half_of(half));
  return quarter;
}

TEST(ResultTest, ErrorsTravelUpAndValuesComeOut) {
  EXPECT_EQ(quarter_of(8).value(), 2);
  EXPECT_EQ(quarter_of(6).code(), ErrorCode::kInput);
  EXPECT_EQ(quarter_of(6).error().message, "odd");
}

TEST(ResultTest, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInterrupted); ++code) {
    names.insert(name_of(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kInterrupted) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(ResultDeathTest, AskingAFailureForItsValueStopsWithTheMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((void)quarter_of(6).value(), "odd");
}

// RFC 3720, B.4, and the check value of the CRC catalogue.
TEST(Crc32cTest, MatchesPublishedValues) {
  EXPECT_EQ(crc32c(view_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(Buffer(32).view()), 0x8a9136aau);
  const std::vector<std::uint8_t> ones(32, 0xff);
  EXPECT_EQ(crc32c(ones), 0x62a8ab43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32cTest, TableAndInstructionAgreeAtEveryLengthAndCut) {
  Rng rng(5);
  std::vector<std::uint8_t> bytes(300);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const ByteView view(bytes.data(), size);
    const std::uint32_t whole = crc32c(view);
    EXPECT_EQ(whole, crc32c_portable(view)) << size;
    const std::size_t cut = rng.below(size + 1);
    EXPECT_EQ(whole, crc32c(view.subspan(cut), crc32c(view.first(cut))));
    EXPECT_EQ(whole, crc32c_portable(view.subspan(cut), crc32c_portable(view.first(cut))));
  }
}

// Long enough for blocks of both sizes, from every alignment.
TEST(Crc32cTest, TableAndInstructionAgreeOnLongPieces) {
  Rng rng(6);
  std::vector<std::uint8_t> bytes(20'000);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  for (const std::size_t size : {383u, 384u, 385u, 767u, 768u, 6143u, 6144u, 6145u, 6528u, 12'288u, 13'001u, 19'990u}) {
    for (std::size_t at = 0; at < 9; ++at) {
      const ByteView view(bytes.data() + at, size);
      EXPECT_EQ(crc32c(view, 77), crc32c_portable(view, 77)) << size << " from " << at;
    }
  }
}

TEST(Crc32cTest, SumsOfPiecesJoinToTheSumOfTheWhole) {
  Rng rng(7);
  std::vector<std::uint8_t> bytes(5000);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  const ByteView view(bytes);
  for (const std::size_t cut : {0u, 1u, 7u, 64u, 999u, 4999u, 5000u})
    EXPECT_EQ(crc32c_joined(crc32c(view.first(cut)), crc32c(view.subspan(cut)), view.size() - cut), crc32c(view))
        << cut;
}

TEST(BytesTest, SlicesShareAndOutliveTheWhole) {
  Bytes part;
  {
    const Bytes whole = Bytes::from_vector({1, 2, 3, 4, 5});
    part = whole.slice(1, 3);
    EXPECT_EQ(part.data(), whole.data() + 1);
  }
  EXPECT_THAT(std::vector<std::uint8_t>(part.data(), part.data() + part.size()), testing::ElementsAre(2, 3, 4));
  EXPECT_TRUE(part.slice(3, 0).empty());
}

TEST(BytesDeathTest, ASliceBeyondTheEndStops) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Bytes bytes = Bytes::from_vector({1, 2, 3});
  EXPECT_DEATH((void)bytes.slice(2, 2), "bytes.cc");
  EXPECT_DEATH((void)bytes.slice(4, SIZE_MAX), "bytes.cc");
}

TEST(BufferTest, IsAlignedZeroedAndFrozenWithoutACopy) {
  for (const std::size_t size : {1ul, 63ul, 64ul, 1000ul, 100'000ul}) {
    Buffer buffer(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kBufferAlignment, 0u);
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + size, [](std::uint8_t b) { return b == 0; }));
    const std::uint8_t* memory = buffer.data();
    const Bytes bytes = std::move(buffer).freeze();
    EXPECT_EQ(bytes.data(), memory);
    EXPECT_EQ(bytes.size(), size);
  }
  EXPECT_TRUE(Buffer().freeze().empty());
  EXPECT_TRUE(Buffer(0).freeze().empty());
}

TEST(TensorViewTest, ShapesCountAndPrint) {
  EXPECT_EQ(element_count({4, 256, 3}), 3072);
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(text_of({4, 256, 3}), "(4, 256, 3)");
  Buffer buffer(24);
  buffer.as<float>()[5] = 2.5f;
  const HostTensor tensor = make_host_tensor(DType::kF32, {2, 3}, std::move(buffer));
  EXPECT_EQ(tensor.f32()[5], 2.5f);
  EXPECT_EQ(tensor.f32().size(), 6u);
}

TEST(TensorViewDeathTest, AShapeThatDoesNotFitItsBytesStops) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(make_host_tensor(DType::kF32, {2, 3}, Buffer(20)), "20 and 24");
}

// xoshiro256** seeded with SplitMix64, as its authors advise, starts so for 42: seeds of runs must mean the same for
// ever.
TEST(RngTest, TheStreamOfASeedIsFixed) {
  Rng a(42), b(42), c(43);
  const std::uint64_t first = a.next();
  EXPECT_EQ(first, b.next());
  EXPECT_NE(first, c.next());
  EXPECT_EQ(first, 0x15780b2e0c2ec716ull);
}

TEST(RngTest, BelowIsUniform) {
  Rng rng(1);
  std::map<std::uint64_t, int> counts;
  for (int i = 0; i < 70'000; ++i) ++counts[rng.below(7)];
  ASSERT_EQ(counts.size(), 7u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10'000, 500) << value;
}

TEST(RngTest, DistributionsHaveTheirMoments) {
  Rng rng(2);
  constexpr int kDraws = 200'000;
  double sum_u = 0, sum_e = 0, sum_n = 0, sum_n2 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum_u += u;
    sum_e += rng.exponential(3.0);
    const double n = rng.normal();
    sum_n += n;
    sum_n2 += n * n;
  }
  EXPECT_NEAR(sum_u / kDraws, 0.5, 0.005);
  EXPECT_NEAR(sum_e / kDraws, 3.0, 0.05);
  EXPECT_NEAR(sum_n / kDraws, 0.0, 0.01);
  EXPECT_NEAR(sum_n2 / kDraws, 1.0, 0.02);
}

TEST(RngTest, ForksAreIndependentOfEachOthersDraws) {
  Rng first(9), second(9);
  Rng a = first.fork("network"), b = second.fork("network");
  for (int i = 0; i < 10; ++i) (void)a.next();
  Rng c = first.fork("router"), d = second.fork("router");
  EXPECT_EQ(c.next(), d.next());
  Rng third(9);
  Rng other = third.fork("storage");
  EXPECT_NE(b.next(), other.next());
}

TEST(RngTest, ShuffleKeepsTheItems) {
  Rng rng(3);
  std::vector<int> items(100);
  for (int i = 0; i < 100; ++i) items[static_cast<std::size_t>(i)] = i;
  const auto before = items;
  rng.shuffle(items);
  EXPECT_NE(items, before);
  std::sort(items.begin(), items.end());
  EXPECT_EQ(items, before);
}

TEST(RngTest, EntropyDiffers) { EXPECT_NE(entropy_seed(), entropy_seed()); }

}  // namespace
}  // namespace shoal
