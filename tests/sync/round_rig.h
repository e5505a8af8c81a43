#pragma once
// Members of a round whose host keeps what it was asked, and the parts that they sent each other.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/sim_loop.h"
#include "sync/round.h"
#include "sync/round_owners.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal {

inline Digest digest_from(const Payload& payload) {
  Digest digest;
  for (std::size_t i = 0; i < payload.bytes.size(); ++i) {
    std::uint8_t& byte = digest.bytes[i % 16];
    byte = static_cast<std::uint8_t>(byte * 31 + payload.bytes.data()[i]);
  }
  digest.bytes[31] = static_cast<std::uint8_t>(payload.tag);
  return digest;
}

// A member whose state is a number; keeps what it was asked.
struct RiggedMember final : RoundHost {
  RiggedMember(EventLoop& loop, std::uint64_t n, std::map<Session, RiggedMember*>& all)
      : self(test::session_of(n)), all(all), round(*this, loop, self, StageId(0)) {
    contribution.payload = test::payload_of({1.0f * static_cast<float>(n), 2, 3, 4, 5}, n, 10 * n);
    contribution.entries = {n, n + 100};
    all[self] = this;
  }
  Version version() const override { return anchor; }
  std::uint64_t payload_bytes_max() const override { return largest_payload; }
  const OuterRule* rule(std::uint8_t id) const override { return id == 0 ? rule_.get() : nullptr; }
  void contribute(const RoundOpen&, std::function<void(Result<Contribution>)> done) override {
    calls.push_back("contribute");
    if (hold_contribution) return void(held = std::move(done));
    done(contribution);
  }
  void run_aside(std::function<void()> job, std::function<void()> done) override {
    calls.push_back("aside");
    asides.emplace_back(std::move(job), std::move(done));
  }
  // What was given to run_aside: the job, then its end.
  void run_asides() {
    for (auto& [job, done] : std::exchange(asides, {})) {
      job();
      done();
    }
  }
  void prepare(const RoundOpen&, Payload reduced, std::function<void(Result<Digest>)> done) override {
    calls.push_back("prepare");
    sum = reduced;
    done(digest_from(reduced));
  }
  void commit(const RoundOpen&, const RoundCommit& commit, std::function<void()> done) override {
    calls.push_back("commit");
    anchor = commit.version;
    done();
  }
  void abandon(const RoundOpen&) override { calls.push_back("abandon"); }
  void fell_behind(const RoundCommit&, bool secured, bool differs, const std::string&) override {
    calls.push_back(std::string("fell_behind") + (secured ? " secured" : "") + (differs ? " differs" : ""));
  }
  Carried carried(const Session&) const override { return {moved, 0}; }
  void send_to_authority(Message message) override { reports.push_back(std::get<RoundReport>(message)); }
  void send_to_member(const Session& member, Message message, std::vector<Bytes> frames) override {
    ++parts_sent;
    for (const Bytes& frame : frames) bytes_sent += frame.size();
    sent_to.insert(member);
    if (mute || !all.count(member)) return;
    all[member]->inbox.push_back({self, std::get<RoundPart>(message), frames.empty() ? Bytes() : frames[0]});
  }

  struct Arrived {
    Session from;
    RoundPart part;
    Bytes frame;
  };
  Session self;
  std::map<Session, RiggedMember*>& all;
  Version anchor;
  Contribution contribution;
  bool mute = false, hold_contribution = false;
  std::function<void(Result<Contribution>)> held;
  std::vector<std::pair<std::function<void()>, std::function<void()>>> asides;
  std::vector<std::string> calls;
  std::vector<RoundReport> reports;
  std::deque<Arrived> inbox;
  Payload sum;
  int parts_sent = 0;
  std::set<Session> sent_to;
  std::uint64_t moved = 0;  // of every link
  std::uint64_t largest_payload = 20;
  std::size_t bytes_sent = 0;
  std::unique_ptr<OuterRule> rule_ = make_allreduce_rule();
  Round round;
};

class RoundTest : public testing::Test {
 protected:
  void make(std::size_t count) {
    for (std::size_t i = 1; i <= count; ++i) members.push_back(std::make_unique<RiggedMember>(loop, i, all));
  }
  RoundOpen open(std::uint64_t id, std::uint64_t base = 0) {
    RoundOpen message;
    message.round = RoundId(id);
    message.base = Version(base);
    message.budget_ms = 1000;
    for (const auto& member : members) message.members.push_back(member->self);
    message.owners = all_own(members.size());
    return message;
  }
  RoundOpen owned_by(RoundOwners owners, std::uint64_t id = 1) {
    RoundOpen message = open(id);
    message.owners = std::move(owners);
    return message;
  }
  void pump() {
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& member : members)
        while (!member->inbox.empty()) {
          const RiggedMember::Arrived arrived = member->inbox.front();
          member->inbox.pop_front();
          member->round.on_part(arrived.from, arrived.part, arrived.frame);
          moved = true;
        }
    }
  }
  static RoundCommit commit_of(const RoundOpen& open, const Digest& digest, bool all_named = true) {
    RoundCommit commit;
    commit.round = open.round;
    commit.version = Version(open.base.value + 1);
    commit.digest = digest;
    if (all_named)
      for (const Session& session : open.members) commit.secured.push_back({session, {}});
    return commit;
  }
  void open_all(const RoundOpen& message) {
    for (const auto& member : members) member->round.on_open(message);
    pump();
  }

  SimLoop loop;
  std::map<Session, RiggedMember*> all;
  std::vector<std::unique_ptr<RiggedMember>> members;
};

}  // namespace shoal
