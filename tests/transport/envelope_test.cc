#include "transport/envelope.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "common/byte_codec.h"
#include "common/rng.h"
#include "tests/transport/request_probe.h"
#include "tests/transport/samples.h"
#include "transport/limits.h"

namespace shoal {
namespace {

std::vector<std::uint8_t> bytes_of_envelope(const Message& message,
                                            const std::optional<TransferHead>& transfer = std::nullopt) {
  auto packed = pack_envelope(message, transfer);
  SHOAL_CHECK(packed.ok());
  return {packed->data(), packed->data() + packed->size()};
}

TransferHead two_frames() { return {7, {{1000, 0x11223344}, {5, 0x55667788}}}; }

// So that what a test changed is judged by more than the checksum.
void mend_checksum(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < kPrologueBytes) return;
  const ByteView view(bytes);
  put_le<std::uint32_t>(bytes.data() + 12, crc32c(view.subspan(kPrologueBytes), crc32c(view.first(12))));
}

std::vector<std::uint8_t> with_body(std::uint8_t type, const std::vector<std::uint8_t>& body) {
  std::vector<std::uint8_t> bytes = bytes_of_envelope(Goodbye{});
  bytes.resize(kPrologueBytes);
  bytes[6] = type;
  put_le<std::uint32_t>(bytes.data() + 8, static_cast<std::uint32_t>(body.size()));
  bytes.insert(bytes.end(), body.begin(), body.end());
  mend_checksum(bytes);
  return bytes;
}

TEST(EnvelopeTest, EveryMessageComesBackAsItWasSent) {
  for (const Message& message : sample_messages()) {
    for (const bool framed : {false, true}) {
      const auto transfer = framed ? std::optional(two_frames()) : std::nullopt;
      const auto bytes = bytes_of_envelope(message, transfer);
      const auto parsed = parse_envelope(bytes);
      ASSERT_TRUE(parsed.ok()) << name_of(message) << ": " << parsed.error().message;
      EXPECT_EQ(parsed->message.index(), message.index());
      EXPECT_EQ(bytes_of_envelope(parsed->message, parsed->transfer), bytes) << name_of(message);
      ASSERT_EQ(parsed->transfer.has_value(), framed);
      if (framed) {
        EXPECT_EQ(parsed->transfer->id, 7u);
        EXPECT_EQ(parsed->transfer->total_bytes(), 1005u);
        EXPECT_EQ(parsed->transfer->frames[1].crc, 0x55667788u);
      }
    }
  }
}

TEST(EnvelopeTest, EmptyListsAndAbsentValuesComeBack) {
  const auto parsed = parse_envelope(bytes_of_envelope(Forward{}));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto& forward = std::get<Forward>(parsed->message);
  EXPECT_FALSE(forward.hint.has_value());
  EXPECT_TRUE(forward.above.empty());
}

TEST(EnvelopeTest, WholeNumbersInFloatFieldsComeBack) {
  for (const double value : {0.0, 1.0, -2.0, 1e300, -0.0}) {
    Gradient gradient;
    gradient.loss_sum = value;
    const auto parsed = parse_envelope(bytes_of_envelope(gradient));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(std::get<Gradient>(parsed->message).loss_sum, value);
  }
}

// They are no serials, which rise.
TEST(EnvelopeTest, TagsOfAPathComeBackInWhateverOrder) {
  Gradient gradient;
  gradient.tags = {PathTag(~std::uint64_t{0}), PathTag(7), PathTag(7), PathTag(0)};
  const auto parsed = parse_envelope(bytes_of_envelope(gradient));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(std::get<Gradient>(parsed->message).tags, gradient.tags);
}

// docs/WIRE.md: the bytes of a worked example, in its ```hex block.
std::vector<std::uint8_t> worked_example(const std::string& name) {
  std::ifstream file(std::string(SHOAL_SOURCE_DIR) + "/docs/WIRE.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::size_t begin = all.find("<!-- " + name + " -->");
  if (begin == std::string::npos) return {};
  const std::size_t open = all.find("```hex\n", begin) + 7;
  const std::string block = all.substr(open, all.find("```", open) - open);
  std::vector<std::uint8_t> bytes;
  std::istringstream lines(block);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string word; words >> word;) bytes.push_back(static_cast<std::uint8_t>(std::stoul(word, nullptr, 16)));
  }
  return bytes;
}

Message example_message() {
  Take take;
  take.microbatch = {0x0a0b, 300};
  take.lease = {{1, 2}, 3};
  take.entry_name = {{4, 0x100000000ull}, 5};
  take.above = {{1, 2}};
  return take;
}

TEST(EnvelopeTest, TheWorkedExampleOfTheDocumentIsWhatWeSend) {
  const std::vector<std::uint8_t> frame = {0xde, 0xad, 0xbe, 0xef};
  const TransferHead transfer{9, {{frame.size(), crc32c(frame)}}};
  EXPECT_EQ(bytes_of_envelope(example_message(), transfer), worked_example("example-envelope"));
  const Bytes chunk = pack_chunk({9, 0}, {frame});
  EXPECT_EQ(std::vector<std::uint8_t>(chunk.data(), chunk.data() + chunk.size()), worked_example("example-chunk"));
}

// A change of any of these sums changes the protocol: raise kProtocolVersion with it.
TEST(EnvelopeTest, TheBytesOfEveryMessageAreSettled) {
  std::ifstream file(std::string(SHOAL_SOURCE_DIR) + "/tests/transport/golden_envelopes.txt");
  ASSERT_TRUE(file.good());
  std::ostringstream now;
  for (const Message& message : sample_messages()) {
    const auto bytes = bytes_of_envelope(message, two_frames());
    now << message.index() << ' ' << name_of(message) << ' ' << bytes.size() << ' ' << std::hex << crc32c(bytes)
        << std::dec << '\n';
  }
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(golden.str(), now.str());
}

TEST(EnvelopeTest, TruncationAtEveryLengthIsRefused) {
  for (const Message& message : sample_messages()) {
    const auto whole = bytes_of_envelope(message, two_frames());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_FALSE(parse_envelope(cut).ok());
      mend_checksum(cut);
      EXPECT_FALSE(parse_envelope(cut).ok()) << name_of(message) << " cut to " << size << " of " << whole.size();
    }
  }
}

TEST(EnvelopeTest, BodiesCutShortAreRefusedAtEveryLength) {
  for (const Message& message : sample_messages()) {
    const auto whole = bytes_of_envelope(message);
    const std::vector<std::uint8_t> body(whole.begin() + kPrologueBytes, whole.end());
    for (std::size_t size = 0; size < body.size(); ++size) {
      const auto parsed =
          parse_envelope(with_body(whole[6], {body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size)}));
      ASSERT_FALSE(parsed.ok()) << name_of(message) << " with " << size << " of " << body.size();
      EXPECT_EQ(parsed.code(), ErrorCode::kMalformed);
    }
    auto longer = body;
    longer.push_back(0xc0);
    EXPECT_FALSE(parse_envelope(with_body(whole[6], longer)).ok());
  }
}

TEST(EnvelopeTest, SeededMutationsNeverCrashAndWhatPassesIsValid) {
  Rng rng(20260101);
  std::size_t passed = 0, refused = 0;
  const auto samples = sample_messages();
  for (int round = 0; round < 400; ++round) {
    for (const Message& message : samples) {
      auto bytes = bytes_of_envelope(message, rng.chance(0.5) ? std::optional(two_frames()) : std::nullopt);
      for (std::uint64_t i = 1 + rng.below(4); i > 0; --i) {
        const std::size_t at = rng.below(bytes.size());
        switch (rng.below(4)) {
          case 0:
            bytes[at] = static_cast<std::uint8_t>(rng.next());
            break;
          case 1:
            bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1u << rng.below(8)));
            break;
          case 2:
            bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(rng.next()));
            break;
          default:
            bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
            break;
        }
      }
      if (rng.chance(0.5) && bytes.size() >= kPrologueBytes) {
        put_le<std::uint32_t>(
            bytes.data() + 8,
            static_cast<std::uint32_t>(bytes.size() - kPrologueBytes -
                                       (bytes[7] == 1 ? std::min<std::size_t>(33, bytes.size() - kPrologueBytes) : 0)));
      }
      mend_checksum(bytes);
      const auto parsed = parse_envelope(bytes);
      if (!parsed.ok()) {
        ++refused;
        continue;
      }
      ++passed;
      const auto again = pack_envelope(parsed->message, parsed->transfer);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_TRUE(parse_envelope(*again).ok());
    }
  }
  EXPECT_GT(passed, 500u) << "the mutations never reach the fields";
  EXPECT_GT(refused, 5000u);
}

TEST(EnvelopeTest, PrologueFieldsAreChecked) {
  const auto whole = bytes_of_envelope(Goodbye{});
  const auto changed = [&](std::size_t at, std::uint8_t value, bool mend) {
    auto bytes = whole;
    bytes[at] = value;
    if (mend) mend_checksum(bytes);
    return parse_envelope(bytes);
  };
  EXPECT_EQ(changed(0, 'X', true).code(), ErrorCode::kMalformed);
  const auto version =
      changed(4, 99, false);  // named even though the sum of another version may be made in another way
  EXPECT_EQ(version.code(), ErrorCode::kVersion);
  EXPECT_NE(version.error().message.find("99"), std::string::npos);
  EXPECT_NE(version.error().message.find(std::to_string(limits::kProtocolVersion)), std::string::npos);
  EXPECT_EQ(changed(6, 200, true).code(), ErrorCode::kMalformed);
  EXPECT_EQ(changed(7, 2, true).code(), ErrorCode::kMalformed);
  EXPECT_EQ(changed(8, 0, true).code(), ErrorCode::kMalformed);
  EXPECT_EQ(changed(12, static_cast<std::uint8_t>(whole[12] ^ 1), false).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(changed(16, 0x91, false).code(), ErrorCode::kCorrupt);
}

TEST(EnvelopeTest, LimitsHoldWhenPacking) {
  EXPECT_EQ(pack_envelope(End{std::string(limits::kTextMax + 1, 'x')}, std::nullopt).code(), ErrorCode::kTooLarge);
  EXPECT_TRUE(pack_envelope(End{std::string(limits::kTextMax, 'x')}, std::nullopt).ok());
  Renew renew;
  renew.leases.resize(limits::kListMax + 1);
  EXPECT_EQ(pack_envelope(renew, std::nullopt).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(pack_envelope(Manifest{std::string(limits::kBodyMax + 1, 'x'), {}}, std::nullopt).code(),
            ErrorCode::kTooLarge);
  EXPECT_TRUE(pack_envelope(Manifest{std::string(limits::kBodyMax, 'x'), {}}, std::nullopt).ok());
  Peers peers;
  peers.records.assign(3000, std::string(limits::kTextMax, 'x'));
  EXPECT_EQ(pack_envelope(peers, std::nullopt).code(), ErrorCode::kTooLarge)
      << "more than one control message may hold";
  EXPECT_EQ(pack_envelope(Goodbye{}, TransferHead{1, {{limits::kTransferBytesMax, 0}, {1, 0}}}).code(),
            ErrorCode::kTooLarge);
  EXPECT_EQ(pack_envelope(Goodbye{}, TransferHead{1, {{~0ull, 0}, {2, 0}}}).code(), ErrorCode::kTooLarge)
      << "the sum must not wrap";
  EXPECT_EQ(pack_envelope(Goodbye{}, TransferHead{1, std::vector<FrameHead>(limits::kFramesPerMessageMax + 1)}).code(),
            ErrorCode::kTooLarge);
  EXPECT_EQ(pack_envelope(Goodbye{}, TransferHead{0, {{1, 0}}}).code(), ErrorCode::kMalformed);
}

TEST(EnvelopeTest, HostileBodiesAreRefusedWithoutTheMemoryTheyAskFor) {
  const auto type = static_cast<std::uint8_t>(Message(RoundReport{}).index());
  std::vector<std::vector<std::uint8_t>> bodies = {
      {0xdd, 0x10, 0x00, 0x00, 0x00},           // an array of 268 million
      {0xdd, 0xff, 0xff, 0xff, 0xff},           // of four thousand million
      {0xdf, 0x00, 0x10, 0x00, 0x00},           // a map
      {0xdb, 0xff, 0xff, 0xff, 0xff},           // a text of 4 GiB
      {0xc6, 0x7f, 0xff, 0xff, 0xff},           // a byte string of 2 GiB
      {0xc9, 0x7f, 0xff, 0xff, 0xff, 0x01},     // an extension
      {0x80},                                   // an empty map where fields should be
      {0xc1},                                   // a byte that msgpack never uses
      std::vector<std::uint8_t>(500000, 0x91),  // arrays in arrays
      std::vector<std::uint8_t>(500000, 0xdc),
  };
  for (int i = 0; i < 1000; ++i) bodies.back().insert(bodies.back().end(), {0xdc, 0x20, 0x00});
  for (const auto& body : bodies) {
    const auto bytes = with_body(type, body);
    const RequestProbe probe;
    const auto parsed = parse_envelope(bytes);
    EXPECT_LT(probe.total(), 2u << 20) << "body of " << body.size() << " bytes beginning with " << +body[0];
    EXPECT_FALSE(parsed.ok());
  }
}

TEST(EnvelopeTest, AFullMessageOfTinyObjectsCostsABoundedMultipleOfItsSize) {
  // Lists of the longest kind, all elements there: what an admitted peer may send at most.
  std::vector<std::uint8_t> body = {0xdc, 0x20, 0x00};
  while (body.size() + 8195 < limits::kControlBytesMax - kPrologueBytes) {
    body.insert(body.end(), {0xdc, 0x20, 0x00});
    body.insert(body.end(), 8192, 0x01);
  }
  const auto bytes = with_body(5, body);
  const RequestProbe probe;
  EXPECT_FALSE(parse_envelope(bytes).ok());
  EXPECT_LT(probe.total(), 64u << 20);
}

TEST(EnvelopeTest, OversizeIsRefusedByItsSizeAlone) {
  const std::vector<std::uint8_t> bytes(limits::kControlBytesMax + 1);
  const RequestProbe probe;
  EXPECT_EQ(parse_envelope(bytes).code(), ErrorCode::kTooLarge);
  EXPECT_LT(probe.total(), 4096u);
}

TEST(EnvelopeTest, WrongTypesAndRangesAreRefused) {
  const auto busy = static_cast<std::uint8_t>(Message(Busy{}).index());
  const std::vector<std::uint8_t> good = {0x93, 0x92, 0x92, 0x01, 0x02, 0x03, 0x00, 0x00};
  ASSERT_TRUE(parse_envelope(with_body(busy, good)).ok());
  const auto with = [&](std::size_t at, std::uint8_t value) {
    auto body = good;
    body[at] = value;
    return parse_envelope(with_body(busy, body));
  };
  EXPECT_FALSE(with(6, 9).ok()) << "a reason that does not exist";
  EXPECT_TRUE(with(6, 8).ok());
  EXPECT_FALSE(with(7, 0xff).ok()) << "a negative number";
  EXPECT_FALSE(with(7, 0xc0).ok()) << "nil";
  EXPECT_FALSE(with(7, 0xc3).ok()) << "true";
  EXPECT_FALSE(with(0, 0x92).ok()) << "a field too few";
  EXPECT_FALSE(with(1, 0x91).ok());
  std::vector<std::uint8_t> wide = good;
  wide.pop_back();
  wide.insert(wide.end(), {0xcf, 0, 0, 0, 1, 0, 0, 0, 0});  // 2^32 in a 32-bit field
  EXPECT_FALSE(parse_envelope(with_body(busy, wide)).ok());
}

TEST(EnvelopeTest, MemberListsStandOnTheirOwn) {
  MemberList list;
  SampleFiller().fill(list);
  const auto packed = pack_member_list(list);
  ASSERT_TRUE(packed.ok());
  const auto parsed = parse_member_list(*packed);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*pack_member_list(*parsed), *packed);
  EXPECT_EQ(parsed->stages[1].members[1].whereabouts.addresses, list.stages[1].members[1].whereabouts.addresses);
  for (std::size_t size = 0; size < packed->size(); ++size)
    EXPECT_FALSE(parse_member_list(ByteView(*packed).first(size)).ok());
  EXPECT_EQ(parse_member_list(std::vector<std::uint8_t>(limits::kListBytesMax + 1)).code(), ErrorCode::kTooLarge);
}

TEST(EnvelopeTest, AListOfAThousandMembersIsOneMessage) {
  MemberList list;
  for (std::uint16_t stage = 0; stage < 4; ++stage) {
    list.stages.emplace_back();
    for (std::uint64_t n = 0; n < 250; ++n)
      list.stages.back().members.push_back(
          {{n, ~n}, {}, {{"198.51.100.200:47000", "[2001:db8:85a3::8a2e:370:7334]:47000"}}, true, Version(1'000'000)});
  }
  const auto packed = pack_member_list(list);
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  const auto parsed = parse_envelope(bytes_of_envelope(Members{*packed, std::vector<std::uint8_t>(64)}));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(std::get<Members>(parsed->message).body, *packed);
  const std::vector<std::uint8_t> most(limits::kListBytesMax), more(limits::kListBytesMax + 1);
  EXPECT_TRUE(parse_envelope(bytes_of_envelope(MembersChange{most, {}})).ok());
  EXPECT_EQ(pack_envelope(MembersChange{more, {}}, std::nullopt).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(pack_envelope(Members{more, {}}, std::nullopt).code(), ErrorCode::kTooLarge);
}

TEST(EnvelopeTest, WhatChangedOfAListStandsOnItsOwn) {
  ListChange change;
  SampleFiller().fill(change);
  const auto packed = pack_list_change(change);
  ASSERT_TRUE(packed.ok());
  const auto parsed = parse_list_change(*packed);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*pack_list_change(*parsed), *packed);
  EXPECT_EQ(parsed->stages[1].joined[1].whereabouts.addresses, change.stages[1].joined[1].whereabouts.addresses);
  for (std::size_t size = 0; size < packed->size(); ++size)
    EXPECT_FALSE(parse_list_change(ByteView(*packed).first(size)).ok()) << size;
  Rng rng(5);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = *packed;
    for (std::uint64_t k = 1 + rng.below(3); k > 0; --k)
      bytes[rng.below(bytes.size())] = static_cast<std::uint8_t>(rng.next());
    if (const auto garbled = parse_list_change(bytes); garbled.ok()) {
      EXPECT_TRUE(pack_list_change(*garbled).ok());
    }
  }
  EXPECT_EQ(parse_list_change(std::vector<std::uint8_t>(limits::kListBytesMax + 1)).code(), ErrorCode::kTooLarge);
}

TEST(ChunkTest, ComesBackAndIsRefusedAtEveryOtherLength) {
  const std::vector<std::uint8_t> a = {1, 2, 3}, b = {4};
  const Bytes chunk = pack_chunk({12, 34}, {a, b});
  const auto parsed = parse_chunk(chunk);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->head.transfer, 12u);
  EXPECT_EQ(parsed->head.offset, 34u);
  EXPECT_EQ(std::vector<std::uint8_t>(parsed->payload.begin(), parsed->payload.end()),
            (std::vector<std::uint8_t>{1, 2, 3, 4}));
  for (std::size_t size = 0; size < chunk.size(); ++size) EXPECT_FALSE(parse_chunk(chunk.view().first(size)).ok());
  std::vector<std::uint8_t> longer(chunk.data(), chunk.data() + chunk.size());
  longer.push_back(0);
  EXPECT_FALSE(parse_chunk(longer).ok());
  EXPECT_EQ(parse_chunk(std::vector<std::uint8_t>(kChunkHeadBytes + limits::kChunkBytesMax + 1)).code(),
            ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace shoal
