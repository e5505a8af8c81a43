#pragma once
// What every Wire must do. Included once per implementation: INSTANTIATE_TYPED_TEST_SUITE_P(Name, WireContract,
// SomeLab).
#include <map>

#include "tests/transport/wire_lab.h"
#include "transport/limits.h"

namespace shoal {

template <class Lab>
class WireContract : public testing::Test {
 protected:
  // 0 dials 1.
  void connect() {
    lab.wire(0).set_listener(&log[0]);
    lab.wire(1).set_listener(&log[1]);
    dialled = lab.wire(0).connect(lab.peer(1), lab.address(1));
    ASSERT_TRUE(until([&] { return !log[0].ups.empty() && !log[1].ups.empty(); }));
    accepted = log[1].ups[0].connection;
  }
  bool until(const std::function<bool()>& done, Duration limit = 15s) { return lab.run_until(done, limit); }
  void TearDown() override {
    for (int i = 0; i < 3; ++i) lab.destroy(i);
  }

  WireLog log[3];
  Lab lab;
  ConnectionId dialled = 0, accepted = 0;
};
TYPED_TEST_SUITE_P(WireContract);

TYPED_TEST_P(WireContract, BothEndsLearnTheProvedPeer) {
  this->connect();
  EXPECT_EQ(this->log[0].ups[0].connection, this->dialled);
  EXPECT_EQ(this->log[0].ups[0].peer, this->lab.peer(1));
  EXPECT_TRUE(this->log[0].ups[0].dialled);
  EXPECT_EQ(this->log[1].ups[0].peer, this->lab.peer(0));
  EXPECT_FALSE(this->log[1].ups[0].dialled);
  EXPECT_NE(this->accepted, 0u);
  EXPECT_EQ(this->lab.wire(0).relayed(this->dialled), this->lab.relayed());
  EXPECT_EQ(this->lab.wire(1).relayed(this->accepted), this->lab.relayed());
  for (const std::string& host :
       {this->lab.wire(0).other_host(this->dialled), this->lab.wire(1).other_host(this->accepted)})
    EXPECT_EQ(host.empty(), this->lab.relayed()) << "what a relay says of a caller proves nothing";
}

TYPED_TEST_P(WireContract, NeverCallsBackFromInsideACall) {
  this->lab.wire(0).set_listener(&this->log[0]);
  (void)this->lab.wire(0).connect(this->lab.peer(1), this->lab.nobody());
  EXPECT_EQ(this->log[0].events, 0u);
  ASSERT_TRUE(this->until([&] { return this->log[0].events > 0; }));
}

TYPED_TEST_P(WireContract, MessagesOfBothLanesArriveWholeAndInOrderBothWays) {
  this->connect();
  Wire& a = this->lab.wire(0);
  Wire& b = this->lab.wire(1);
  const std::size_t sizes[] = {1, 29, 30, 8191, 8192, 262168, 1000000};
  for (std::uint64_t i = 0; i < 42; ++i) {
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      const Bytes message = numbered_bytes(sizes[i % 7], i);
      const Bytes reply = numbered_bytes(sizes[(i + 3) % 7], i);
      ASSERT_TRUE(this->until([&] { return a.send(this->dialled, lane, message).ok(); }));
      ASSERT_TRUE(this->until([&] { return b.send(this->accepted, lane, reply).ok(); }));
    }
  }
  for (int end = 0; end < 2; ++end) {
    WireLog& log = this->log[end];
    ASSERT_TRUE(this->until([&] { return log.messages.size() == 84; }));
    std::map<Lane, std::uint64_t> next;
    for (const WireLog::Message& message : log.messages) {
      EXPECT_EQ(message.connection, end == 0 ? this->dialled : this->accepted);
      const std::uint64_t i = next[message.lane]++;
      EXPECT_TRUE(same_bytes(message.bytes, numbered_bytes(sizes[(i + (end == 0 ? 3 : 0)) % 7], i)))
          << "end " << end << " message " << i;
    }
  }
  EXPECT_GT(a.bytes_sent(), 7u * 2 * 1000000);
}

TYPED_TEST_P(WireContract, AFullLaneAnswersBusyAndSaysWhenItTakesMore) {
  this->connect();
  Wire& a = this->lab.wire(0);
  const Bytes message = numbered_bytes(limits::kChunkBytes, 1);
  std::size_t sent = 0;
  bool busy = false;
  while (!busy && sent < 4096) {
    const Status status = a.send(this->dialled, Lane::kBulk, message);
    busy = !status.ok();
    if (busy) {
      EXPECT_EQ(status.code(), ErrorCode::kBusy);
    } else {
      ++sent;
    }
  }
  ASSERT_TRUE(busy) << "took a gigabyte without a word";
  ASSERT_TRUE(this->until([&] { return this->log[0].writables > 0; }));
  EXPECT_TRUE(a.send(this->dialled, Lane::kBulk, message).ok());
  ASSERT_TRUE(this->until([&] { return this->log[1].messages.size() == sent + 1; }));
}

TYPED_TEST_P(WireContract, TooLargeIsRefusedAndTheConnectionStays) {
  this->connect();
  Wire& a = this->lab.wire(0);
  const Status status = a.send(this->dialled, Lane::kControl, numbered_bytes(limits::kControlBytesMax + 1, 1));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kTooLarge);
  EXPECT_FALSE(a.send(this->dialled, Lane::kBulk, numbered_bytes(2 * limits::kChunkBytesMax, 1)).ok());
  ASSERT_TRUE(a.send(this->dialled, Lane::kControl, numbered_bytes(limits::kControlBytesMax, 2)).ok());
  ASSERT_TRUE(this->until([&] { return this->log[1].messages.size() == 1; }));
  EXPECT_EQ(this->log[1].messages[0].bytes.size(), limits::kControlBytesMax);
}

TYPED_TEST_P(WireContract, DisconnectIsToldToTheOtherEndOnly) {
  for (const bool dialler_ends : {true, false}) {
    this->log[0] = WireLog{};
    this->log[1] = WireLog{};
    this->connect();
    const int ends = dialler_ends ? 0 : 1;
    this->lab.wire(ends).disconnect(dialler_ends ? this->dialled : this->accepted);
    WireLog& other = this->log[1 - ends];
    ASSERT_TRUE(this->until([&] { return !other.downs.empty(); }));
    EXPECT_EQ(other.downs[0].connection, dialler_ends ? this->accepted : this->dialled);
    EXPECT_EQ(other.downs[0].cause.code, ErrorCode::kUnreachable);
    EXPECT_TRUE(this->log[ends].downs.empty());
    const Status status =
        this->lab.wire(ends).send(dialler_ends ? this->dialled : this->accepted, Lane::kControl, numbered_bytes(8, 1));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::kUnreachable);
  }
}

TYPED_TEST_P(WireContract, TheEndOfAProcessIsNoticed) {
  this->connect();
  this->lab.destroy(1);
  ASSERT_TRUE(this->until([&] { return !this->log[0].downs.empty(); }));
  EXPECT_EQ(this->log[0].downs[0].connection, this->dialled);
  EXPECT_FALSE(this->lab.wire(0).send(this->dialled, Lane::kControl, numbered_bytes(8, 1)).ok());
}

TYPED_TEST_P(WireContract, NobodyThereIsUnreachable) {
  this->lab.wire(0).set_listener(&this->log[0]);
  const ConnectionId id = this->lab.wire(0).connect(this->lab.peer(1), this->lab.nobody());
  ASSERT_TRUE(this->until([&] { return !this->log[0].downs.empty(); }));
  EXPECT_EQ(this->log[0].downs[0].connection, id);
  EXPECT_EQ(this->log[0].downs[0].cause.code, ErrorCode::kUnreachable);
}

TYPED_TEST_P(WireContract, ADialThatNobodyAnswersFailsWithinItsBoundAndNothingOfItStays) {
  this->lab.wire(0).set_listener(&this->log[0]);
  this->lab.wire(1).set_listener(&this->log[1]);
  const TimePoint begun = this->lab.loop().now();
  const ConnectionId id = this->lab.wire(0).connect(this->lab.peer(1), this->lab.silent());
  (void)this->lab.wire(0).connect(this->lab.peer(1), this->lab.address(1));
  ASSERT_TRUE(this->until([&] { return this->log[0].ups.size() == 1; })) << "another dial does not wait for it";
  ASSERT_TRUE(this->until([&] { return !this->log[0].downs.empty(); }));
  EXPECT_LE(this->lab.loop().now() - begun, (this->lab.relayed() ? 2 : 1) * limits::kDialTime + 1s);
  EXPECT_EQ(this->log[0].downs[0].connection, id);
  EXPECT_EQ(this->log[0].downs[0].cause.code, ErrorCode::kTimeout);
  EXPECT_EQ(this->lab.wire(0).send(id, Lane::kControl, numbered_bytes(8, 1)).code(), ErrorCode::kUnreachable);
  this->lab.wire(0).disconnect(id);
  EXPECT_TRUE(this->lab.wire(0).send(this->log[0].ups[0].connection, Lane::kControl, numbered_bytes(8, 2)).ok());
  ASSERT_TRUE(this->until([&] { return this->log[1].messages.size() == 1; }));
  EXPECT_EQ(this->log[0].events, 2u);
}

TYPED_TEST_P(WireContract, AnotherPeerAtTheAddressIsRefused) {
  this->lab.wire(0).set_listener(&this->log[0]);
  this->lab.wire(1).set_listener(&this->log[1]);
  (void)this->lab.wire(0).connect(this->lab.peer(2), this->lab.address(1));
  ASSERT_TRUE(this->until([&] { return !this->log[0].downs.empty(); }));
  EXPECT_EQ(this->log[0].downs[0].cause.code,
            this->lab.relayed() ? ErrorCode::kUnreachable : ErrorCode::kRefused);  // a relay calls by key
  EXPECT_TRUE(this->log[1].ups.empty());
}

TYPED_TEST_P(WireContract, AKeyThatIsNotAdmittedIsRefusedAndToldItsKey) {
  this->lab.admit_only(1, {this->lab.peer(2)});
  this->lab.wire(0).set_listener(&this->log[0]);
  this->lab.wire(1).set_listener(&this->log[1]);
  this->lab.wire(2).set_listener(&this->log[2]);
  (void)this->lab.wire(0).connect(this->lab.peer(1), this->lab.address(1));
  (void)this->lab.wire(2).connect(this->lab.peer(1), this->lab.address(1));
  ASSERT_TRUE(this->until(
      [&] { return !this->log[0].downs.empty() && !this->log[1].ups.empty() && !this->log[2].ups.empty(); }));
  EXPECT_EQ(this->log[0].downs[0].cause.code, ErrorCode::kNotAdmitted);
  EXPECT_NE(this->log[0].downs[0].cause.message.find(hex_of(this->lab.peer(0))), std::string::npos)
      << this->log[0].downs[0].cause.message;
  ASSERT_EQ(this->log[1].ups.size(), 1u);
  EXPECT_EQ(this->log[1].ups[0].peer, this->lab.peer(2));
}

TYPED_TEST_P(WireContract, FewerKeysAdmittedEndWhatStrangersDialledAndNothingElse) {
  this->connect();
  Wire& closing = this->lab.wire(1);
  this->lab.wire(2).set_listener(&this->log[2]);
  const ConnectionId welcome = this->lab.wire(2).connect(this->lab.peer(1), this->lab.address(1));
  const ConnectionId ours = closing.connect(this->lab.peer(0), this->lab.address(0));
  ASSERT_TRUE(this->until([&] { return this->log[1].ups.size() == 3 && this->log[2].ups.size() == 1; }));
  ASSERT_TRUE(closing.admit_only({this->lab.peer(2)}).ok());
  ASSERT_TRUE(this->until([&] { return !this->log[1].downs.empty() && !this->log[0].downs.empty(); }));
  EXPECT_EQ(this->log[1].downs[0].connection, this->accepted);
  EXPECT_EQ(this->log[1].downs[0].cause.code, ErrorCode::kRefused);
  EXPECT_EQ(this->log[0].downs[0].connection, this->dialled);
  (void)this->lab.wire(0).connect(this->lab.peer(1), this->lab.address(1));
  ASSERT_TRUE(this->until([&] { return this->log[0].downs.size() == 2; }));
  EXPECT_EQ(this->log[0].downs[1].cause.code, ErrorCode::kNotAdmitted);
  EXPECT_NE(this->log[0].downs[1].cause.message.find(hex_of(this->lab.peer(0))), std::string::npos);
  ASSERT_TRUE(this->lab.wire(2).send(welcome, Lane::kControl, numbered_bytes(8, 1)).ok());
  ASSERT_TRUE(closing.send(ours, Lane::kControl, numbered_bytes(8, 2)).ok());
  ASSERT_TRUE(this->until([&] { return this->log[1].messages.size() == 1 && this->log[0].messages.size() == 1; }));
  EXPECT_EQ(this->log[1].downs.size(), 1u);
  EXPECT_TRUE(this->log[2].downs.empty());
}

TYPED_TEST_P(WireContract, ConnectionsOfOnePairAreIndependent) {
  this->connect();
  const ConnectionId second = this->lab.wire(1).connect(this->lab.peer(0), this->lab.address(0));
  ASSERT_TRUE(this->until([&] { return this->log[0].ups.size() == 2 && this->log[1].ups.size() == 2; }));
  EXPECT_NE(second, this->accepted);
  this->lab.wire(1).disconnect(second);
  ASSERT_TRUE(this->until([&] { return this->log[0].downs.size() == 1; }));
  ASSERT_TRUE(this->lab.wire(0).send(this->dialled, Lane::kControl, numbered_bytes(5, 5)).ok());
  ASSERT_TRUE(this->until([&] { return this->log[1].messages.size() == 1; }));
  EXPECT_EQ(this->log[1].messages[0].connection, this->accepted);
}

REGISTER_TYPED_TEST_SUITE_P(WireContract, BothEndsLearnTheProvedPeer, NeverCallsBackFromInsideACall,
                            MessagesOfBothLanesArriveWholeAndInOrderBothWays,
                            AFullLaneAnswersBusyAndSaysWhenItTakesMore, TooLargeIsRefusedAndTheConnectionStays,
                            DisconnectIsToldToTheOtherEndOnly, TheEndOfAProcessIsNoticed, NobodyThereIsUnreachable,
                            ADialThatNobodyAnswersFailsWithinItsBoundAndNothingOfItStays,
                            AnotherPeerAtTheAddressIsRefused, AKeyThatIsNotAdmittedIsRefusedAndToldItsKey,
                            FewerKeysAdmittedEndWhatStrangersDialledAndNothingElse, ConnectionsOfOnePairAreIndependent);

}  // namespace shoal
