#include "transport/relay/relay_words.h"

#include <gtest/gtest.h>

#include <functional>

namespace shoal {
namespace {

template <class Tag>
Key32<Tag> key_of(std::uint8_t byte) {
  Key32<Tag> key;
  key.bytes.fill(byte);
  return key;
}
RelayToken call_name_of(std::uint8_t byte) {
  RelayToken call_name;
  call_name.fill(byte);
  return call_name;
}
std::string hex(ByteView bytes) { return hex_of(bytes.data(), bytes.size()); }
std::string times(int count, const std::string& byte) {
  std::string all;
  for (int i = 0; i < count; ++i) all += byte;
  return all;
}

RelayCall some_call() {
  RelayCall call;
  call.lane = Lane::kBulk;
  call.run = key_of<RunIdTag>(0xa1);
  call.callee = key_of<PeerIdTag>(0xa2);
  call.caller = key_of<PeerIdTag>(0xa3);
  call.call_name = call_name_of(0xa4);
  call.signature.fill(0xa5);
  return call;
}
const RelayHome kHome{RelayKind::kRegister, key_of<RunIdTag>(0xb1), key_of<PeerIdTag>(0xb2)};
const RelayHome kRunHome{RelayKind::kRun, key_of<RunIdTag>(0xb1), key_of<PeerIdTag>(0xb1)};

// docs/WIRE.md, Relays, has these bytes too.
TEST(RelayWordsTest, TheirBytesAreThose) {
  EXPECT_EQ(hex(pack_relay_home(kHome)), "5348524c01010000" + times(32, "b1") + times(32, "b2"));
  EXPECT_EQ(hex(pack_relay_home(kRunHome)), "5348524c01040000" + times(64, "b1"));
  EXPECT_EQ(hex(pack_relay_call(some_call())), "5348524c01020100" + times(32, "a1") + times(32, "a2") +
                                                   times(32, "a3") + times(16, "a4") + times(64, "a5"));
  EXPECT_EQ(hex(pack_relay_answer(call_name_of(0xc1))), "5348524c01030000" + times(16, "c1"));
  EXPECT_EQ(hex(pack_relay_verdict(RelayVerdict::kNoAnswer)), "5348525605000000");
  EXPECT_EQ(hex(pack_relay_incoming({call_name_of(0xd1), Lane::kBulk, key_of<PeerIdTag>(0xd2)})),
            times(16, "d1") + "0100000000000000" + times(32, "d2"));
  EXPECT_EQ(hex(pack_relay_ping()), "5348524c70696e67");
  EXPECT_EQ(hex(pack_relay_list({{1, 2, 3}, std::vector<std::uint8_t>(64, 0xe1)})),
            "43000000" + times(64, "e1") + "010203");
  EXPECT_EQ(hex(home_text(kHome, {})).substr(0, 26), "73686f616c20686f6d6520310a");
  EXPECT_EQ(home_text(kHome, {}).size(), 13u + 96);
  EXPECT_EQ(call_text(some_call()).size(), 13u + 113);
}

TEST(RelayWordsTest, WhatIsPackedIsRead) {
  const auto home = parse_relay_home(pack_relay_home(kHome));
  ASSERT_TRUE(home.ok());
  EXPECT_EQ(home->kind, RelayKind::kRegister);
  EXPECT_EQ(home->run, kHome.run);
  EXPECT_EQ(home->key, kHome.key);
  const auto call = parse_relay_call(pack_relay_call(some_call()));
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(hex(pack_relay_call(*call)), hex(pack_relay_call(some_call())));
  EXPECT_EQ(*parse_relay_answer(pack_relay_answer(call_name_of(7))), call_name_of(7));
  for (std::size_t code = 0; code < kRelayVerdicts; ++code) {
    const auto verdict = static_cast<RelayVerdict>(code);
    EXPECT_EQ(*parse_relay_verdict(pack_relay_verdict(verdict)), verdict);
    EXPECT_NE(name_of(verdict), "?");
  }
  const auto incoming = parse_relay_incoming(pack_relay_incoming({call_name_of(8), Lane::kBulk, kHome.key}));
  ASSERT_TRUE(incoming.ok());
  EXPECT_EQ(incoming->lane, Lane::kBulk);
  EXPECT_EQ(incoming->caller, kHome.key);
  EXPECT_TRUE(is_relay_ping(pack_relay_ping()));
  const Members list{{9}, std::vector<std::uint8_t>(64, 8)};
  const Bytes packed = pack_relay_list(list);
  EXPECT_EQ(*parse_relay_list_head(packed.view().first(4)), packed.size() - 4);
  const auto back = parse_relay_list(packed.view().subspan(4));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->body, list.body);
  EXPECT_EQ(back->signature, list.signature);
}

TEST(RelayWordsTest, EveryWordIsReadWholeOrNotAtAll) {
  const auto only_whole = [](const Bytes& word, const std::function<bool(ByteView)>& reads) {
    for (std::size_t size = 0; size < word.size(); ++size) EXPECT_FALSE(reads(word.view().first(size))) << size;
    EXPECT_TRUE(reads(word));
    std::vector<std::uint8_t> longer(word.data(), word.data() + word.size());
    longer.push_back(0);
    EXPECT_FALSE(reads(longer));
  };
  only_whole(pack_relay_home(kHome), [](ByteView b) { return parse_relay_home(b).ok(); });
  only_whole(pack_relay_call(some_call()), [](ByteView b) { return parse_relay_call(b).ok(); });
  only_whole(pack_relay_answer(call_name_of(1)), [](ByteView b) { return parse_relay_answer(b).ok(); });
  only_whole(pack_relay_verdict(RelayVerdict::kRate), [](ByteView b) { return parse_relay_verdict(b).ok(); });
  only_whole(pack_relay_incoming({call_name_of(1), Lane::kControl, kHome.key}),
             [](ByteView b) { return parse_relay_incoming(b).ok(); });
  for (std::size_t size = 0; size <= 64; ++size)
    EXPECT_FALSE(parse_relay_list(std::vector<std::uint8_t>(size)).ok()) << size;
}

std::vector<std::uint8_t> changed(const Bytes& word, std::size_t at, std::uint8_t to) {
  std::vector<std::uint8_t> bytes(word.data(), word.data() + word.size());
  bytes.at(at) = to;
  return bytes;
}

TEST(RelayWordsTest, WhatNoWriterMakesIsRefused) {
  const auto code_of = [](ByteView bytes) { return parse_relay_call(bytes).code(); };
  const Bytes call = pack_relay_call(some_call());
  EXPECT_EQ(code_of(changed(call, 0, 'X')), ErrorCode::kMalformed);
  EXPECT_EQ(code_of(changed(call, 4, 2)), ErrorCode::kVersion);
  EXPECT_EQ(code_of(changed(call, 5, 0)), ErrorCode::kMalformed);
  EXPECT_EQ(code_of(changed(call, 5, 5)), ErrorCode::kMalformed);
  EXPECT_EQ(code_of(changed(call, 6, 2)), ErrorCode::kMalformed);
  EXPECT_EQ(code_of(changed(call, 7, 1)), ErrorCode::kMalformed);
  EXPECT_FALSE(parse_relay_home(changed(pack_relay_home(kHome), 6, 1)).ok());      // a lane
  EXPECT_FALSE(parse_relay_home(changed(pack_relay_home(kRunHome), 71, 0)).ok());  // another key than the run's
  EXPECT_FALSE(parse_relay_verdict(pack_relay_answer(call_name_of(1)).slice(0, 8)).ok());
  EXPECT_FALSE(parse_relay_verdict(changed(pack_relay_verdict(RelayVerdict::kRate), 4, 8)).ok());
  EXPECT_FALSE(parse_relay_verdict(changed(pack_relay_verdict(RelayVerdict::kRate), 7, 1)).ok());
}

// A caller whose name of a call begins as a ping would have its callee read everything behind it out of step.
TEST(RelayWordsTest, NoNameOfACallBeginsAsAPing) {
  std::vector<std::uint8_t> call = changed(pack_relay_call(some_call()), 0, 'S');
  std::vector<std::uint8_t> incoming = changed(pack_relay_incoming({call_name_of(1), Lane::kControl, kHome.key}), 0, 0);
  const Bytes ping = pack_relay_ping();
  std::copy_n(ping.data(), ping.size(), call.begin() + 104);
  std::copy_n(ping.data(), ping.size(), incoming.begin());
  EXPECT_FALSE(parse_relay_call(call).ok());
  EXPECT_FALSE(parse_relay_incoming(incoming).ok());
}

TEST(RelayWordsTest, AListHasItsBound) {
  const auto head = [](std::uint32_t size) {
    std::vector<std::uint8_t> bytes(4);
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(size >> (8 * i));
    return parse_relay_list_head(bytes);
  };
  EXPECT_TRUE(head(kRelayListBytesMax).ok());
  EXPECT_EQ(head(kRelayListBytesMax + 1).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(head(64).code(), ErrorCode::kMalformed);
}

// One text for one thing: what signs a registration signs no run.
TEST(RelayWordsTest, EachKindSignsATextOfItsOwn) {
  EXPECT_NE(hex(home_text({RelayKind::kRegister, kRunHome.run, kRunHome.key}, {})), hex(home_text(kRunHome, {})));
}

}  // namespace
}  // namespace shoal
