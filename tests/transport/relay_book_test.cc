#include "transport/relay/relay_book.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

constexpr TimePoint kStart{1000s};
const std::string kHere = "192.0.2.1";

PeerId peer(std::uint8_t number) {
  PeerId id;
  id.bytes.fill(number);
  return id;
}
RunId run(std::uint8_t number) { return {peer(number).bytes}; }
const PeerId kOpen = peer(100);

class RelayBookTest : public testing::Test {
 protected:
  // A run of members 1 .. n, all of them and the open one registered, by connections of their numbers.
  void serve(std::uint8_t members) {
    std::vector<PeerId> all;
    for (std::uint8_t i = 1; i <= members; ++i) all.push_back(peer(i));
    ASSERT_TRUE(book.follow(run(7), kOpen, all).ok());
    for (std::uint8_t i = 1; i <= members; ++i) ASSERT_EQ(home(i, peer(i)).verdict, RelayVerdict::kJoined);
    ASSERT_EQ(home(100, kOpen).verdict, RelayVerdict::kJoined);
  }
  RelayBook::Registered home(RelayConnection connection, const PeerId& key) {
    return book.register_home(connection, {RelayKind::kRegister, run(7), key}, kHere);
  }
  RelayCall call_of(const PeerId& caller, const PeerId& callee) {
    RelayCall call;
    call.run = run(7);
    call.caller = caller;
    call.callee = callee;
    call.call_name.fill(1);
    for (std::size_t i = 0; i < 8; ++i) call.call_name[i] = static_cast<std::uint8_t>(calls_ >> (8 * i));
    ++calls_;
    return call;
  }
  RelayToken told(RelayConnection connection) const {
    RelayToken name{};
    name.fill(0x80);
    for (std::size_t i = 0; i < 8; ++i) name[i] = static_cast<std::uint8_t>(connection >> (8 * i));
    return name;
  }
  RelayVerdict call(RelayConnection connection, const PeerId& caller, const PeerId& callee, TimePoint now = kStart,
                    const std::string& party = kHere) {
    return book.call(connection, call_of(caller, callee), party, told(connection), now).verdict;
  }

  RelayBook book;

 private:
  std::uint64_t calls_ = 0;
};

TEST_F(RelayBookTest, JoinsAMemberToAMember) {
  serve(2);
  const RelayBook::Called called = book.call(11, call_of(peer(1), peer(2)), kHere, told(11), kStart);
  EXPECT_EQ(called.verdict, RelayVerdict::kJoined);
  EXPECT_EQ(called.home, 2u);
  EXPECT_EQ(book.pairs(), 0u);
  const RelayBook::Answered answered = book.answer(12, told(11));
  EXPECT_EQ(answered.verdict, RelayVerdict::kJoined);
  EXPECT_EQ(answered.caller, 11u);
  EXPECT_EQ(book.pairs(), 1u);
  EXPECT_EQ(book.answer(13, told(11)).verdict, RelayVerdict::kNoAnswer);  // once
  EXPECT_EQ(book.gone(12, kStart), 11u);
  EXPECT_EQ(book.gone(11, kStart), 0u);
  EXPECT_EQ(book.pairs(), 0u);
}

TEST_F(RelayBookTest, AGuessedTokenJoinsNobody) {
  serve(2);
  ASSERT_EQ(call(11, peer(1), peer(2)), RelayVerdict::kJoined);
  for (RelayConnection guess = 1000; guess < 2000; ++guess)
    EXPECT_EQ(book.answer(guess, told(guess)).verdict, RelayVerdict::kNoAnswer);
  EXPECT_EQ(book.pairs(), 0u);
}

TEST_F(RelayBookTest, OnlyMembersRegisterAndCall) {
  serve(2);
  EXPECT_EQ(home(20, peer(3)).verdict, RelayVerdict::kNotListed);
  EXPECT_EQ(call(20, peer(3), peer(1)), RelayVerdict::kNotListed);
  EXPECT_EQ(call(20, peer(1), peer(3)), RelayVerdict::kNotListed);
  EXPECT_EQ(call(20, peer(1), peer(1)), RelayVerdict::kNotListed);
  EXPECT_EQ(book.register_home(20, {RelayKind::kRegister, run(8), peer(1)}, kHere).verdict, RelayVerdict::kRunUnknown);
  RelayCall other = call_of(peer(1), peer(2));
  other.run = run(8);
  EXPECT_EQ(book.may_call(other, kHere), RelayVerdict::kRunUnknown);
  EXPECT_EQ(call(20, peer(3), kOpen), RelayVerdict::kJoined);  // a stranger may call that one
  EXPECT_EQ(call(21, kOpen, peer(1)), RelayVerdict::kJoined);
}

TEST_F(RelayBookTest, WhoIsNotRegisteredIsNotCalled) {
  serve(1);
  ASSERT_TRUE(book.follow(run(7), kOpen, {peer(1), peer(2)}).ok());
  EXPECT_EQ(call(11, peer(1), peer(2)), RelayVerdict::kNotRegistered);
  book.gone(100, kStart);
  EXPECT_EQ(call(12, peer(1), kOpen), RelayVerdict::kNotRegistered);
}

TEST_F(RelayBookTest, ACallComesOnce) {
  serve(3);
  const RelayCall once = call_of(peer(1), peer(2));
  EXPECT_EQ(book.call(11, once, kHere, told(11), kStart).verdict, RelayVerdict::kJoined);
  book.gone(11, kStart);
  EXPECT_EQ(book.call(12, once, kHere, told(12), kStart + 10s).verdict, RelayVerdict::kMalformed);
}

TEST_F(RelayBookTest, ACallWithoutAnAnswerEnds) {
  serve(2);
  ASSERT_EQ(call(11, peer(1), peer(2)), RelayVerdict::kJoined);
  EXPECT_TRUE(book.late(kStart + kRelayAnswerTime - 1ms).callers.empty());
  EXPECT_EQ(book.late(kStart + kRelayAnswerTime).callers, std::vector<RelayConnection>{11});
  book.gone(11, kStart);
  EXPECT_TRUE(book.late(kStart + kRelayAnswerTime).callers.empty());
  EXPECT_EQ(book.answer(12, told(11)).verdict, RelayVerdict::kNoAnswer);
}

TEST_F(RelayBookTest, TheNewestRegistrationOfAKeyCounts) {
  serve(2);
  EXPECT_EQ(home(50, peer(2)).replaced, 2u);
  book.gone(2, kStart);
  EXPECT_EQ(book.call(11, call_of(peer(1), peer(2)), kHere, told(11), kStart).home, 50u);
}

// A fenced session must not stay: neither where it is called, nor what it has.
TEST_F(RelayBookTest, WhoLeavesTheListIsCutOff) {
  serve(3);
  ASSERT_EQ(call(11, peer(1), peer(2)), RelayVerdict::kJoined);
  ASSERT_EQ(book.answer(12, told(11)).verdict, RelayVerdict::kJoined);
  ASSERT_EQ(call(13, peer(2), peer(3)), RelayVerdict::kJoined);
  ASSERT_EQ(call(14, peer(2), kOpen), RelayVerdict::kJoined);
  ASSERT_EQ(call(15, peer(1), peer(3)), RelayVerdict::kJoined);
  ASSERT_EQ(call(16, peer(9), kOpen), RelayVerdict::kJoined);  // a stranger, as before
  auto ended = book.follow(run(7), kOpen, {peer(1), peer(3)}).value();
  std::sort(ended.begin(), ended.end());
  EXPECT_EQ(ended, (std::vector<RelayConnection>{2, 11, 12, 13, 14}));
  for (const RelayConnection one : ended) book.gone(one, kStart);
  EXPECT_EQ(home(2, peer(2)).verdict, RelayVerdict::kNotListed);
  EXPECT_EQ(call(17, peer(2), peer(3)), RelayVerdict::kNotListed);
}

TEST_F(RelayBookTest, AStrangerThatIsAdmittedIsAMemberFromThenOn) {
  serve(1);
  ASSERT_EQ(call(16, peer(9), kOpen), RelayVerdict::kJoined);
  EXPECT_TRUE(book.follow(run(7), kOpen, {peer(1), peer(9)}).value().empty());
  EXPECT_EQ(book.follow(run(7), kOpen, {peer(1)}).value(), std::vector<RelayConnection>{16});
}

TEST_F(RelayBookTest, ACallerThatComesTooOftenTakesNothingOfOthers) {
  serve(3);
  RelayVerdict last = RelayVerdict::kJoined;
  for (RelayConnection i = 0; i < 100; ++i) {
    last = call(1000 + i, peer(1), peer(2));
    book.gone(1000 + i, kStart);
  }
  EXPECT_EQ(last, RelayVerdict::kRate);
  EXPECT_EQ(call(11, peer(3), peer(2)), RelayVerdict::kJoined);
  EXPECT_EQ(call(12, peer(1), peer(2), kStart + 1s), RelayVerdict::kJoined);
}

// A key costs a stranger nothing.
TEST_F(RelayBookTest, StrangersArePacedByTheirAddress) {
  serve(1);
  int joined = 0;
  for (std::uint8_t i = 0; i < 50; ++i) {
    joined += call(1000 + i, peer(static_cast<std::uint8_t>(150 + i)), kOpen) == RelayVerdict::kJoined ? 1 : 0;
    book.gone(1000 + i, kStart);
  }
  EXPECT_EQ(joined, static_cast<int>(kPairBurst));
  EXPECT_EQ(call(11, peer(200), kOpen, kStart, "192.0.2.2"), RelayVerdict::kJoined);
}

TEST_F(RelayBookTest, StrangersFromManyAddressesTakeNothingOfMembers) {
  serve(2);
  std::size_t joined = 0;
  for (RelayConnection i = 0; i < 200; ++i) {
    joined += call(1000 + i, peer(150), kOpen, kStart, "192.0.2." + std::to_string(i)) == RelayVerdict::kJoined ? 1 : 0;
    book.gone(1000 + i, kStart);
  }
  EXPECT_EQ(joined, static_cast<std::size_t>(kStrangersBurst));
  EXPECT_EQ(call(11, peer(1), kOpen), RelayVerdict::kJoined);
}

TEST_F(RelayBookTest, LanesOfOneMemberOfStrangersAndOfAllAreBounded) {
  serve(40);
  TimePoint now = kStart;
  RelayConnection next = 1000;
  const auto calls = [&](std::uint8_t caller, const PeerId& callee, const std::string& party = kHere) {
    now += 1s;
    return call(next++, peer(caller), callee, now, party);
  };
  for (std::size_t i = 0; i < kRelayLanesPerMemberMax; ++i)
    EXPECT_EQ(calls(1, peer(static_cast<std::uint8_t>(2 + i / 2))), RelayVerdict::kJoined);
  EXPECT_EQ(calls(1, peer(20)), RelayVerdict::kTooMany);
  EXPECT_EQ(calls(20, peer(1)), RelayVerdict::kTooMany);
  for (std::size_t i = 0; i < kRelayStrangerLanesPerPartyMax; ++i)
    EXPECT_EQ(calls(static_cast<std::uint8_t>(150 + i), kOpen), RelayVerdict::kJoined);
  EXPECT_EQ(calls(200, kOpen), RelayVerdict::kTooMany);
  std::size_t strangers = kRelayStrangerLanesPerPartyMax;
  const auto next_stranger = [&] {
    return calls(static_cast<std::uint8_t>(170 + strangers), kOpen, "192.0.2." + std::to_string(strangers));
  };
  while (next_stranger() == RelayVerdict::kJoined) ++strangers;
  EXPECT_EQ(strangers, kRelayStrangerLanesMax);
  EXPECT_EQ(calls(21, kOpen), RelayVerdict::kJoined);  // a member is none of them
  std::size_t lanes = kRelayStrangerLanesMax + kRelayLanesPerMemberMax + 1;
  for (std::uint8_t i = 34; i <= 45 && lanes < kRelayLanesPerRunMax; ++i)
    for (std::size_t j = 0; j < kRelayLanesPerMemberMax && lanes < kRelayLanesPerRunMax; ++j, ++lanes)
      EXPECT_EQ(calls(i, kOpen), RelayVerdict::kJoined);
  EXPECT_EQ(calls(2, kOpen), RelayVerdict::kTooMany);
}

TEST_F(RelayBookTest, RunsOfOneAddressAndOfAllAreBounded) {
  const auto tell = [&](std::uint8_t number, const std::string& party) {
    return book.register_home(number, {RelayKind::kRun, run(number), peer(number)}, party).verdict;
  };
  for (std::uint8_t i = 1; i <= kRelayRunsPerPartyMax; ++i) EXPECT_EQ(tell(i, kHere), RelayVerdict::kJoined);
  EXPECT_EQ(tell(50, kHere), RelayVerdict::kTooMany);
  EXPECT_EQ(tell(1, kHere), RelayVerdict::kJoined);  // again
  for (std::uint8_t i = kRelayRunsPerPartyMax + 1; i <= kRelayRunsMax; ++i)
    EXPECT_EQ(tell(i, "192.0.2.2"), RelayVerdict::kJoined);
  EXPECT_EQ(tell(51, "192.0.2.3"), RelayVerdict::kTooMany);
  EXPECT_EQ(book.follow(run(51), kOpen, {}).code(), ErrorCode::kBusy);
}

TEST_F(RelayBookTest, ARunIsKeptForAWhileWithoutWord) {
  const auto tell = [&](RelayConnection connection) {
    return book.register_home(connection, {RelayKind::kRun, run(7), peer(7)}, kHere);
  };
  ASSERT_EQ(tell(60).verdict, RelayVerdict::kJoined);
  serve(2);
  ASSERT_EQ(call(11, peer(1), peer(2)), RelayVerdict::kJoined);
  book.gone(60, kStart);
  EXPECT_TRUE(book.late(kStart + kRelayAnswerTime - 1ms).ended.empty());
  EXPECT_EQ(tell(61).replaced, 0u);
  EXPECT_TRUE(book.late(kStart + 2 * kRelayRunGrace).ended.empty());
  book.gone(61, kStart);
  EXPECT_EQ(book.late(kStart + kRelayRunGrace).ended, (std::vector<RelayConnection>{1, 2, 100, 11}));
  EXPECT_EQ(book.runs(), 0u);
}

}  // namespace
}  // namespace shoal
