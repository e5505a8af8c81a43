#pragma once
// What every PeerDirectory promises, run on the real one (OpenDHT in child processes on loopback) and on the simulated
// one. A rig: EventLoop& loop(); DhtDirectory& make(run) (a new process's directory in the same DHT; lives as long as
// the rig); bool run_until(condition, limit); void set_outage(bool) (no child anywhere until it ends).
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "dht/dht_directory.h"
#include "tests/dht/records.h"

namespace shoal {

inline constexpr Duration kBudget = 5s;
inline constexpr Duration kPatience = 30s;

template <class Rig>
class DirectoryContract : public ::testing::Test {
 protected:
  PeerRecord record_of(const KeyPair& peer, std::uint16_t stage, std::uint64_t sequence) {
    return peer_record(run_, peer, stage, sequence, rig_.loop().wall());
  }
  void announce(PeerDirectory& directory, const KeyPair& peer, std::uint16_t stage, std::uint64_t sequence) {
    directory.announce(packed(record_of(peer, stage, sequence), peer), stage_key(run_of(run_), StageId(stage)));
  }
  std::vector<PeerRecord> stage_seen_by(PeerDirectory& directory, std::uint16_t stage, Duration budget = kBudget) {
    std::optional<std::vector<PeerRecord>> answer;
    directory.look_up_stage(StageId(stage), budget, [&](std::vector<PeerRecord> records) {
      EXPECT_FALSE(answer.has_value()) << "answered twice";
      answer = std::move(records);
    });
    EXPECT_FALSE(answer.has_value()) << "called back from inside the call";
    EXPECT_TRUE(rig_.run_until([&] { return answer.has_value(); }, budget + 1s)) << "no answer within the budget";
    return answer.value_or(std::vector<PeerRecord>());
  }
  // Asks again and again: a DHT is not instantaneous.
  bool sees_sequence(PeerDirectory& directory, const KeyPair& peer, std::uint16_t stage, std::uint64_t sequence) {
    const TimePoint limit = rig_.loop().now() + kPatience;
    while (rig_.loop().now() < limit) {
      for (const PeerRecord& record : stage_seen_by(directory, stage))
        if (record.peer == peer.id() && record.sequence == sequence) return true;
      rig_.run_until([] { return false; }, 100ms);
    }
    return false;
  }
  void wait_alive(PeerDirectory& directory) {
    ASSERT_TRUE(rig_.run_until([&] { return directory.alive(); }, kPatience));
  }

  const KeyPair run_ = key_of_number(1);
  const KeyPair ann_ = key_of_number(2), ben_ = key_of_number(3);
  Rig rig_;
};

TYPED_TEST_SUITE_P(DirectoryContract);

TYPED_TEST_P(DirectoryContract, WhatOneAnnouncesAnotherFinds) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  DhtDirectory& b = this->rig_.make(run_of(this->run_));
  this->announce(a, this->ann_, 0, 1);
  this->announce(b, this->ben_, 0, 1);
  EXPECT_TRUE(this->sees_sequence(b, this->ann_, 0, 1));
  EXPECT_TRUE(this->sees_sequence(a, this->ben_, 0, 1));
  EXPECT_EQ(this->stage_seen_by(b, 0).size(), 2u);
}

TYPED_TEST_P(DirectoryContract, ANewerRecordTakesThePlaceOfTheOlder) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  DhtDirectory& b = this->rig_.make(run_of(this->run_));
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    this->announce(a, this->ann_, 0, sequence);
    EXPECT_TRUE(this->sees_sequence(b, this->ann_, 0, sequence));
    EXPECT_EQ(this->stage_seen_by(b, 0).size(), 1u);
  }
}

TYPED_TEST_P(DirectoryContract, ALeaversLastWordReplacesItsRecordForStrangers) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  this->announce(a, this->ann_, 0, 1);
  ASSERT_TRUE(this->sees_sequence(this->rig_.make(run_of(this->run_)), this->ann_, 0, 1));
  PeerRecord last = this->record_of(this->ann_, 0, 2);
  last.serving = false;
  a.announce(packed(last, this->ann_), stage_key(last.run, last.stage));
  ASSERT_TRUE(this->sees_sequence(this->rig_.make(run_of(this->run_)), this->ann_, 0, 2));
  a.withdraw(stage_key(last.run, last.stage));
  DhtDirectory& stranger = this->rig_.make(run_of(this->run_));
  this->wait_alive(stranger);
  for (const PeerRecord& record : this->stage_seen_by(stranger, 0)) EXPECT_FALSE(record.serving);
}

TYPED_TEST_P(DirectoryContract, EveryStrangerFindsItAtItsFirstQuestion) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  this->announce(a, this->ann_, 0, 1);
  ASSERT_TRUE(this->sees_sequence(this->rig_.make(run_of(this->run_)), this->ann_, 0, 1));
  for (int i = 0; i < 10; ++i) {
    DhtDirectory& stranger = this->rig_.make(run_of(this->run_));
    EXPECT_EQ(this->stage_seen_by(stranger, 0).size(), 1u) << "stranger " << i;
  }
}

TYPED_TEST_P(DirectoryContract, AnotherRunIsAnotherWorld) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  this->announce(a, this->ann_, 0, 1);
  ASSERT_TRUE(this->sees_sequence(this->rig_.make(run_of(this->run_)), this->ann_, 0, 1));
  DhtDirectory& other = this->rig_.make(run_of(key_of_number(77)));
  this->wait_alive(other);
  EXPECT_TRUE(this->stage_seen_by(other, 0).empty());
  other.offer(a.known(10));
  EXPECT_TRUE(other.known(10).empty());
  EXPECT_EQ(other.counters().foreign, 1u);
}

TYPED_TEST_P(DirectoryContract, NothingIsFoundWithinTheBudgetAndSaidOnce) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  EXPECT_TRUE(this->stage_seen_by(a, 9, 2s).empty());
  std::optional<Result<RunRecord>> answer;
  a.look_up_run(2s, [&](Result<RunRecord> record) { answer.emplace(std::move(record)); });
  ASSERT_TRUE(this->rig_.run_until([&] { return answer.has_value(); }, 3s));
  EXPECT_EQ(answer->code(), ErrorCode::kTimeout);
}

TYPED_TEST_P(DirectoryContract, TheRunsRecordIsFoundByItsKeyAlone) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  DhtDirectory& b = this->rig_.make(run_of(this->run_));
  a.announce(packed(run_record(this->run_, 3, this->rig_.loop().wall()), this->run_), run_key_name(run_of(this->run_)));
  std::optional<Result<RunRecord>> answer;
  const TimePoint limit = this->rig_.loop().now() + kPatience;
  while ((!answer || !answer->ok()) && this->rig_.loop().now() < limit) {
    answer.reset();
    b.look_up_run(kBudget, [&](Result<RunRecord> record) { answer.emplace(std::move(record)); });
    ASSERT_TRUE(this->rig_.run_until([&] { return answer.has_value(); }, kBudget + 1s));
  }
  ASSERT_TRUE(answer->ok()) << answer->error().message;
  EXPECT_EQ((*answer)->name, "tide pool");
  EXPECT_EQ((*answer)->stages, 4);
}

TYPED_TEST_P(DirectoryContract, OfferedRecordsServeWhileTheDhtIsAway) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  this->wait_alive(a);
  this->rig_.set_outage(true);
  ASSERT_TRUE(this->rig_.run_until([&] { return !a.alive(); }, kPatience));
  a.offer({packed(this->record_of(this->ann_, 0, 1), this->ann_), "rubbish"});
  ASSERT_EQ(a.known(10).size(), 1u);
  std::vector<std::string> flood(kExchangedMax, "rubbish");
  flood.push_back(packed(this->record_of(this->ann_, 0, 2), this->ann_));
  a.offer(flood);
  EXPECT_TRUE(this->stage_seen_by(a, 0).at(0).sequence == 1) << "of a message longer than ours the end is not read";
  const TimePoint begin = this->rig_.loop().now();
  EXPECT_EQ(this->stage_seen_by(a, 0).size(), 1u);
  EXPECT_LT(this->rig_.loop().now() - begin, 1s) << "memory answers at once";
  this->rig_.set_outage(false);
}

TYPED_TEST_P(DirectoryContract, AfterAnOutageEverybodysRecordsComeBack) {
  DhtDirectory& a = this->rig_.make(run_of(this->run_));
  DhtDirectory& b = this->rig_.make(run_of(this->run_));
  this->announce(a, this->ann_, 0, 1);
  ASSERT_TRUE(this->sees_sequence(b, this->ann_, 0, 1));
  this->rig_.set_outage(true);
  ASSERT_TRUE(this->rig_.run_until([&] { return !a.alive() && !b.alive(); }, kPatience));
  EXPECT_TRUE(this->sees_sequence(b, this->ann_, 0, 1)) << "memory serves";
  this->announce(a, this->ann_, 0, 2);  // while away: published when it is back
  this->rig_.set_outage(false);
  EXPECT_TRUE(this->sees_sequence(this->rig_.make(run_of(this->run_)), this->ann_, 0, 2)) << "for a stranger too";
  EXPECT_TRUE(this->sees_sequence(b, this->ann_, 0, 2));
}

REGISTER_TYPED_TEST_SUITE_P(DirectoryContract, WhatOneAnnouncesAnotherFinds, ANewerRecordTakesThePlaceOfTheOlder,
                            ALeaversLastWordReplacesItsRecordForStrangers, EveryStrangerFindsItAtItsFirstQuestion,
                            AnotherRunIsAnotherWorld, NothingIsFoundWithinTheBudgetAndSaidOnce,
                            TheRunsRecordIsFoundByItsKeyAlone, OfferedRecordsServeWhileTheDhtIsAway,
                            AfterAnOutageEverybodysRecordsComeBack);

}  // namespace shoal
