#pragma once
// Transport over any Wire. Included once per wire: INSTANTIATE_TYPED_TEST_SUITE_P(Name, TransportContract,
// SomeLab).
#include <map>

#include "tests/transport/transport_lab.h"
#include "transport/limits.h"

namespace shoal {

template <class Lab>
class TransportContract : public testing::Test {
 protected:
  void start(int index, std::uint64_t incarnation = 1, RunId run = test_run()) {
    start_transport(end[index], lab, index, incarnation, run);
  }
  void start_pair() {
    start(0);
    start(1);
    end[0].transport->learn(lab.peer(1), {{lab.address(1)}});
  }
  void link_pair() {
    start_pair();
    end[0].transport->dial(lab.peer(1));
    ASSERT_TRUE(until([&] { return end[0].log.ups.size() == 1 && end[1].log.ups.size() == 1; }));
  }
  void stop(int index) {
    end[index].transport.reset();
    lab.destroy(index);
  }
  bool until(const std::function<bool()>& done, Duration limit = 10s) { return lab.run_until(done, limit); }
  void TearDown() override {
    for (int i = 0; i < 3; ++i) stop(i);
  }
  Result<TransferId> send(int from, int to, Message message, std::vector<Bytes> frames = {}) {
    return end[from].transport->send(lab.peer(to), std::move(message), std::move(frames));
  }

  Lab lab;
  TransportEnd end[3];
};
TYPED_TEST_SUITE_P(TransportContract);

TYPED_TEST_P(TransportContract, DialsAtTheFirstSendAndKeepsOrder) {
  this->start_pair();
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(this->send(0, 1, Have{Lease{{}, i}}).ok());
  ASSERT_TRUE(this->until([&] { return this->end[1].log.messages.size() == 100; }));
  for (std::uint64_t i = 0; i < 100; ++i)
    EXPECT_EQ(std::get<Have>(this->end[1].log.messages[i].message).lease.serial, i);
  const Remote& remote = this->end[1].log.messages[0].remote;
  EXPECT_EQ(remote.peer, this->lab.peer(0));
  EXPECT_EQ(remote.session, Session::of(this->lab.peer(0), 1));
  EXPECT_EQ(this->end[0].transport->remote(this->lab.peer(1))->session, Session::of(this->lab.peer(1), 1));
  // One connection serves both directions: 1 never learned where 0 is, Hello told it.
  ASSERT_TRUE(this->send(1, 0, Goodbye{}).ok());
  ASSERT_TRUE(this->until([&] { return this->end[0].log.messages.size() == 1; }));
}

TYPED_TEST_P(TransportContract, FramesArriveWholeBehindTheirMessages) {
  this->link_pair();
  const std::vector<std::vector<std::size_t>> shapes = {{1}, {0, 5}, {262144}, {262145, 3}, {100, 5000000, 7, 300000},
                                                        {0}};
  std::vector<TransferId> sent;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::vector<Bytes> frames;
    for (const std::size_t size : shapes[i]) frames.push_back(numbered_bytes(size, i));
    auto transfer = this->send(0, 1, Chunk{StageId(1), Version(2), static_cast<std::uint32_t>(i), true}, frames);
    ASSERT_TRUE(transfer.ok());
    sent.push_back(*transfer);
  }
  TransportLog& log = this->end[1].log;
  ASSERT_TRUE(this->until([&] { return log.frames.size() == shapes.size(); }));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(log.messages[i].transfer, sent[i]);
    const auto found =
        std::find_if(log.frames.begin(), log.frames.end(), [&](const auto& f) { return f.transfer == sent[i]; });
    ASSERT_NE(found, log.frames.end());
    ASSERT_TRUE(found->frames.ok()) << found->frames.error().message;
    ASSERT_EQ(found->frames->size(), shapes[i].size());
    for (std::size_t f = 0; f < shapes[i].size(); ++f) {
      const Bytes& frame = (*found->frames)[f];
      EXPECT_TRUE(same_bytes(frame, numbered_bytes(shapes[i][f], i)));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame.data()) % kBufferAlignment, 0u);
    }
  }
  EXPECT_EQ(this->end[0].transport->stats(this->lab.peer(1)).queued_bytes, 0u);
}

TYPED_TEST_P(TransportContract, RefusedFramesAreNotDeliveredAndTheNextOnesAre) {
  this->link_pair();
  TransportLog& log = this->end[1].log;
  log.on_got = [&](const TransportLog::Got& got) {
    if (std::get<Chunk>(got.message).index == 0) this->end[1].transport->refuse(got.remote.peer, got.transfer);
  };
  ASSERT_TRUE(this->send(0, 1, Chunk{StageId(1), Version(2), 0, true}, {numbered_bytes(40u << 20, 1)}).ok());
  const auto wanted = this->send(0, 1, Chunk{StageId(1), Version(2), 1, true}, {numbered_bytes(100000, 2)});
  ASSERT_TRUE(this->until([&] { return !log.frames.empty(); }));
  EXPECT_EQ(log.frames[0].transfer, *wanted);
  EXPECT_TRUE(log.frames[0].frames.ok());
  this->lab.run_for(100ms);
  EXPECT_EQ(log.frames.size(), 1u);
  EXPECT_LT(this->end[1].transport->counters().received_bytes, 30u << 20) << "refused chunks crossed all the same";
}

TYPED_TEST_P(TransportContract, TellsWhatIsAheadOfTheEndOfATransfer) {
  this->link_pair();
  constexpr std::uint64_t kBytes = 40u << 20;
  const auto first = this->send(0, 1, Chunk{StageId(1), Version(2), 0, true}, {numbered_bytes(kBytes, 1)});
  const auto second = this->send(0, 1, Chunk{StageId(1), Version(2), 1, true}, {numbered_bytes(1000, 2)});
  const auto ahead_of = [&](TransferId transfer) {
    return this->end[0].transport->ahead_of(this->lab.peer(1), transfer);
  };
  EXPECT_GT(ahead_of(*first), 0u);
  EXPECT_LE(ahead_of(*first), kBytes);
  EXPECT_EQ(ahead_of(*second), ahead_of(*first) + 1000);
  EXPECT_EQ(ahead_of(*second + 2), 0u) << "no such one";
  ASSERT_TRUE(this->until([&] { return this->end[1].log.frames.size() == 2; }, 30s));
  EXPECT_EQ(ahead_of(*first), 0u);
  EXPECT_EQ(ahead_of(*second), 0u);
}

TYPED_TEST_P(TransportContract, DroppedFramesEndWithAnErrorAtTheReceiver) {
  this->link_pair();
  const auto big = this->send(0, 1, Chunk{StageId(1), Version(2), 0, true}, {numbered_bytes(40u << 20, 1)});
  ASSERT_TRUE(this->until([&] { return this->end[1].log.messages.size() == 1; }));
  this->end[0].transport->drop(this->lab.peer(1), *big);
  const auto small = this->send(0, 1, Chunk{StageId(1), Version(2), 1, true}, {numbered_bytes(10, 1)});
  ASSERT_TRUE(this->until([&] { return this->end[1].log.frames.size() == 2; }));
  for (const auto& frames : this->end[1].log.frames) EXPECT_EQ(frames.frames.ok(), frames.transfer == *small);
  EXPECT_EQ(this->end[1].log.frames[0].frames.code(), ErrorCode::kGone);
}

TYPED_TEST_P(TransportContract, MeasuresRoundTripAndRate) {
  this->link_pair();
  ASSERT_TRUE(this->until([&] { return this->end[0].transport->stats(this->lab.peer(1)).rtt > 0ms; }));
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(this->send(0, 1, Chunk{StageId(1), Version(2), 0, true}, {numbered_bytes(8u << 20, 1)}).ok());
  ASSERT_TRUE(this->until([&] { return this->end[1].log.frames.size() == 4; }, 30s));
  ASSERT_TRUE(this->until([&] { return this->end[0].transport->stats(this->lab.peer(1)).bytes_per_second > 0; }));
  const LinkStats stats = this->end[0].transport->stats(this->lab.peer(1));
  EXPECT_TRUE(stats.up);
  EXPECT_LT(this->lab.loop().now() - stats.heard, 5s);
  EXPECT_LT(stats.rtt, 5s);
  EXPECT_GT(stats.bytes_per_second, 1e5);
  EXPECT_GT(stats.sent_bytes, 32u << 20);
}

TYPED_TEST_P(TransportContract, WhenBothDialAtOnceOneLinkRemainsAndNothingIsLost) {
  this->start_pair();
  this->end[1].transport->learn(this->lab.peer(0), {{this->lab.address(0)}});
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(this->send(0, 1, Have{Lease{{}, i}}).ok());
    ASSERT_TRUE(this->send(1, 0, Have{Lease{{}, i}}).ok());
  }
  ASSERT_TRUE(
      this->until([&] { return this->end[0].log.messages.size() == 20 && this->end[1].log.messages.size() == 20; }));
  this->lab.run_for(limits::kLingerTime * 3);
  ASSERT_TRUE(this->send(0, 1, Goodbye{}).ok());
  ASSERT_TRUE(this->send(1, 0, Goodbye{}).ok());
  ASSERT_TRUE(
      this->until([&] { return this->end[0].log.messages.size() == 21 && this->end[1].log.messages.size() == 21; }));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(this->end[i].log.ups.size(), 1u);
    EXPECT_TRUE(this->end[i].log.downs.empty());
  }
}

TYPED_TEST_P(TransportContract, AForeignRunIsRefusedByNameAtBothEnds) {
  this->start(0, 1, test_run(1));
  this->start(1, 1, test_run(2));
  this->end[0].transport->learn(this->lab.peer(1), {{this->lab.address(1)}});
  ASSERT_TRUE(this->send(0, 1, Goodbye{}).ok());
  ASSERT_TRUE(this->until([&] { return this->end[0].log.downs.size() == 1; }));
  EXPECT_EQ(this->end[0].log.downs[0].second.code, ErrorCode::kForeign);
  EXPECT_EQ(this->end[0].log.downs[0].first.session, Session{});
  ASSERT_TRUE(this->until([&] { return this->end[1].transport->counters().foreign_run == 1; }));
  EXPECT_TRUE(this->end[1].log.messages.empty());
  EXPECT_TRUE(this->end[1].log.ups.empty());
}

TYPED_TEST_P(TransportContract, AFencedSessionIsCutOffAndRefusedByName) {
  this->link_pair();
  this->end[1].transport->fence(Session::of(this->lab.peer(0), 1));
  ASSERT_TRUE(this->until([&] { return this->end[0].log.downs.size() == 1 && this->end[1].log.downs.size() == 1; }));
  EXPECT_EQ(this->end[1].log.downs[0].second.code, ErrorCode::kStale);
  EXPECT_EQ(count_of<Fenced>(this->end[0].log), 1u);
  // It comes again with the same session: refused. With a new one: welcome.
  ASSERT_TRUE(this->until([&] { return this->send(0, 1, Goodbye{}).ok(); }));
  ASSERT_TRUE(this->until([&] { return this->end[0].log.downs.size() == 2; }));
  EXPECT_EQ(this->end[0].log.downs[1].second.code, ErrorCode::kStale) << this->end[0].log.downs[1].second.message;
  EXPECT_EQ(this->end[1].transport->counters().stale_session, 1u);
  this->stop(0);
  this->start(0, 2);
  this->end[0].transport->learn(this->lab.peer(1), {{this->lab.address(1)}});
  ASSERT_TRUE(this->send(0, 1, Goodbye{}).ok());
  ASSERT_TRUE(this->until([&] { return count_of<Goodbye>(this->end[1].log) == 1; }));
}

TYPED_TEST_P(TransportContract, ANewSessionReplacesTheOldOneWhichIsNotLetInAgain) {
  this->link_pair();
  for (const std::uint64_t incarnation : {2, 1}) {
    this->stop(0);
    this->start(0, incarnation);
    this->end[0].log = TransportLog{};
    this->end[0].transport->learn(this->lab.peer(1), {{this->lab.address(1)}});
    ASSERT_TRUE(this->send(0, 1, Goodbye{}).ok());
    if (incarnation == 2) {
      ASSERT_TRUE(this->until([&] { return count_of<Goodbye>(this->end[1].log) == 1; }));
      EXPECT_EQ(this->end[1].log.messages.back().remote.session, Session::of(this->lab.peer(0), 2));
    } else {
      ASSERT_TRUE(this->until([&] { return this->end[0].log.downs.size() == 1; }));
      EXPECT_EQ(this->end[0].log.downs[0].second.code, ErrorCode::kStale);
      EXPECT_EQ(count_of<Goodbye>(this->end[1].log), 1u);
    }
  }
}

TYPED_TEST_P(TransportContract, ALostPeerIsToldWithItsUnfinishedFrames) {
  this->link_pair();
  ASSERT_TRUE(this->send(0, 1, Chunk{StageId(1), Version(2), 0, true}, {numbered_bytes(200u << 20, 1)}).ok());
  ASSERT_TRUE(this->until([&] { return this->end[1].log.messages.size() == 1; }));
  this->stop(0);
  ASSERT_TRUE(this->until([&] { return this->end[1].log.downs.size() == 1; }));
  EXPECT_EQ(this->end[1].log.downs[0].first.session, Session::of(this->lab.peer(0), 1));
  ASSERT_EQ(this->end[1].log.frames.size(), 1u);
  EXPECT_FALSE(this->end[1].log.frames[0].frames.ok());
  EXPECT_FALSE(this->end[1].transport->remote(this->lab.peer(0)).has_value());
}

TYPED_TEST_P(TransportContract, NoAddressAndNobodyThereAreUnreachableWithBackoff) {
  this->start(0);
  const auto unknown = this->send(0, 1, Goodbye{});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.code(), ErrorCode::kUnreachable);
  EXPECT_EQ(this->send(0, 0, Goodbye{}).code(), ErrorCode::kUnreachable);
  this->end[0].transport->learn(this->lab.peer(1), {{this->lab.nobody()}});
  ASSERT_TRUE(this->send(0, 1, Goodbye{}).ok());
  ASSERT_TRUE(this->until([&] { return this->end[0].log.downs.size() == 1; }));
  EXPECT_EQ(this->end[0].log.downs[0].second.code, ErrorCode::kUnreachable);
  EXPECT_EQ(this->send(0, 1, Goodbye{}).code(), ErrorCode::kUnreachable) << "no second attempt at once";
  ASSERT_TRUE(this->until([&] { return this->send(0, 1, Goodbye{}).ok(); }));
}

TYPED_TEST_P(TransportContract, TriesTheNextAddress) {
  this->start_pair();
  this->end[0].transport->learn(this->lab.peer(1), {{this->lab.nobody(), this->lab.address(1)}});
  ASSERT_TRUE(this->send(0, 1, Goodbye{}).ok());
  ASSERT_TRUE(this->until([&] { return count_of<Goodbye>(this->end[1].log) == 1; }, 20s));
  EXPECT_TRUE(this->end[0].log.downs.empty());
}

TYPED_TEST_P(TransportContract, WhatTheListSaysIsDialledAndNotWhatAHelloSays) {
  this->start_pair();
  Transport::Options lying = test_options(this->lab, 0);
  lying.whereabouts = {{this->lab.nobody()}};
  this->end[0].transport.reset();  // which lets go of the wire
  this->end[0].transport = std::make_unique<Transport>(this->lab.wire(0), this->lab.loop(), std::move(lying));
  this->end[0].transport->set_listener(&this->end[0].log);
  this->end[0].transport->hear(this->lab.peer(1), {{this->lab.address(1)}});
  this->end[1].transport->learn(this->lab.peer(0), {{this->lab.address(0)}});
  ASSERT_TRUE(this->send(0, 1, Goodbye{}).ok());
  ASSERT_TRUE(this->until([&] { return count_of<Goodbye>(this->end[1].log) == 1; }));
  this->end[1].transport->close(this->lab.peer(0), "to dial it");
  ASSERT_TRUE(this->until([&] { return this->send(1, 0, Goodbye{}).ok(); }));
  ASSERT_TRUE(this->until([&] { return count_of<Goodbye>(this->end[0].log) == 1; }));
}

TYPED_TEST_P(TransportContract, CloseIsToldToBothAndCanBeDialledAgain) {
  this->link_pair();
  ASSERT_TRUE(this->send(0, 1, End{"over"}).ok());
  this->end[0].transport->close(this->lab.peer(1), "the run is over");
  EXPECT_TRUE(this->end[0].log.downs.empty()) << "not from inside the call";
  ASSERT_TRUE(this->until([&] { return this->end[0].log.downs.size() == 1 && this->end[1].log.downs.size() == 1; }));
  EXPECT_EQ(count_of<End>(this->end[1].log), 1u) << "what was sent before close arrives";
  ASSERT_TRUE(this->until([&] { return this->send(0, 1, Goodbye{}).ok(); }));
  ASSERT_TRUE(this->until([&] { return count_of<Goodbye>(this->end[1].log) == 1; }));
}

TYPED_TEST_P(TransportContract, QueuesAreBoundedBeforeTheLinkStands) {
  this->start_pair();
  std::size_t queued = 0;
  while (queued < 2 * limits::kOutboundQueueMax && this->send(0, 1, Goodbye{}).ok()) ++queued;
  EXPECT_EQ(queued, limits::kOutboundQueueMax);
  EXPECT_EQ(this->send(0, 1, Goodbye{}).code(), ErrorCode::kBusy);
  ASSERT_TRUE(this->until([&] { return this->end[1].log.messages.size() == queued; }));
}

TYPED_TEST_P(TransportContract, AnAddressIsTriedBesideTheLinkThatStands) {
  this->link_pair();
  std::map<std::string, Status> outcomes;
  const auto note = [&](const std::string& address, const Status& answered) { outcomes.emplace(address, answered); };
  // The second end's own side of a pair tries the dialler: its connection came in, so nothing is known of its listener.
  const Address there = this->lab.address(0), nobody = this->lab.nobody();
  this->end[1].transport->try_dialling(this->lab.peer(0), {{nobody, there}}, note);
  EXPECT_TRUE(outcomes.empty()) << "called back from inside the call";
  ASSERT_TRUE(this->until([&] { return outcomes.size() == 2; }));
  EXPECT_TRUE(outcomes.at(there).ok());
  EXPECT_FALSE(outcomes.at(nobody).ok());
  ASSERT_TRUE(this->send(0, 1, Goodbye{}).ok());
  ASSERT_TRUE(this->send(1, 0, Goodbye{}).ok());
  ASSERT_TRUE(
      this->until([&] { return this->end[0].log.messages.size() == 1 && this->end[1].log.messages.size() == 1; }));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(this->end[i].log.ups.size(), 1u) << "the trial became a link of its own";
    EXPECT_TRUE(this->end[i].log.downs.empty());
  }
}

TYPED_TEST_P(TransportContract, ATrialFailsWhereNobodyOrAnotherPeerListensAndSaysWhere) {
  this->link_pair();
  this->start(2);
  std::map<std::string, Status> outcomes;
  const auto note = [&](const std::string& address, const Status& answered) { outcomes.emplace(address, answered); };
  this->end[1].transport->try_dialling(this->lab.peer(0), {{this->lab.nobody(), this->lab.address(2)}}, note);
  ASSERT_TRUE(this->until([&] { return outcomes.size() == 2; }));
  for (const auto& [address, answered] : outcomes) {
    ASSERT_FALSE(answered.ok()) << address;
    EXPECT_NE(answered.error().message.find(address), std::string::npos) << answered.error().message;
  }
  EXPECT_TRUE(this->end[1].log.downs.empty());
}

// A list that names no address says more than a Hello that does.
TYPED_TEST_P(TransportContract, WhomTheListGivesNoAddressIsNotDialled) {
  this->link_pair();
  this->end[1].transport->learn(this->lab.peer(0), {{}, Reach::kNone});
  EXPECT_TRUE(this->end[1].transport->reaches(this->lab.peer(0))) << "the link that it dialled is good";
  this->end[0].transport->close(this->lab.peer(1), "to be dialled");
  ASSERT_TRUE(this->until([&] { return this->end[1].log.downs.size() == 1; }));
  EXPECT_FALSE(this->end[1].transport->reaches(this->lab.peer(0)));
  EXPECT_EQ(this->send(1, 0, Goodbye{}).code(), ErrorCode::kUnreachable);
  ASSERT_TRUE(this->until([&] { return this->send(0, 1, Goodbye{}).ok(); }));
  ASSERT_TRUE(this->until([&] { return count_of<Goodbye>(this->end[1].log) == 1; }));
  EXPECT_TRUE(this->send(1, 0, Goodbye{}).ok());
}

REGISTER_TYPED_TEST_SUITE_P(TransportContract, DialsAtTheFirstSendAndKeepsOrder, FramesArriveWholeBehindTheirMessages,
                            RefusedFramesAreNotDeliveredAndTheNextOnesAre, TellsWhatIsAheadOfTheEndOfATransfer,
                            DroppedFramesEndWithAnErrorAtTheReceiver, MeasuresRoundTripAndRate,
                            WhenBothDialAtOnceOneLinkRemainsAndNothingIsLost, AForeignRunIsRefusedByNameAtBothEnds,
                            AFencedSessionIsCutOffAndRefusedByName, ANewSessionReplacesTheOldOneWhichIsNotLetInAgain,
                            ALostPeerIsToldWithItsUnfinishedFrames, NoAddressAndNobodyThereAreUnreachableWithBackoff,
                            TriesTheNextAddress, WhatTheListSaysIsDialledAndNotWhatAHelloSays,
                            CloseIsToldToBothAndCanBeDialledAgain, QueuesAreBoundedBeforeTheLinkStands,
                            AnAddressIsTriedBesideTheLinkThatStands,
                            ATrialFailsWhereNobodyOrAnotherPeerListensAndSaysWhere,
                            WhomTheListGivesNoAddressIsNotDialled);

}  // namespace shoal
