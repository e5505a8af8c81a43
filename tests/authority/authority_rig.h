#pragma once
// The authority over a simulated loop and disk: what peers would say to it, what it says to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "authority/authority.h"
#include "authority/authority_log.h"
#include "authority/membership.h"
#include "common/crypto/sign.h"
#include "sim/sim_loop.h"
#include "sim/sim_storage.h"
#include "tests/sync/sync_fixtures.h"

namespace shoal::test {

inline constexpr const char* kLogPath = "authority.log";

inline Digest digest_number(std::uint8_t n) {
  Digest digest;
  digest.bytes[0] = n;
  return digest;
}

inline Step step_number(std::uint64_t n) {
  Step step;
  step.step = StepId(n);
  step.targets = 32;
  step.run_targets = 32 * n;
  return step;
}

class AuthorityTest : public testing::Test, public AuthorityPort {
 protected:
  AuthorityTest() : key(KeyPair::from_seed({9, 9, 9})) {
    options.run.bytes = key.id().bytes;
    options.round_targets = 100;
  }
  ~AuthorityTest() override { stop(); }

  void boot() {
    storage = std::make_unique<SimStorage>(loop, disk);
    auto log = open_authority_log(*storage, kLogPath);
    ASSERT_TRUE(log.ok()) << log.error().message;
    auto opened = Authority::open(options, *this, *process, std::move(*log));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    authority = std::move(*opened);
    start();
  }
  void start() {
    authority->sync_log([this](Status synced) {
      EXPECT_TRUE(synced.ok());
      authority->start();
    });
    settle();
  }
  void stop() {
    authority.reset();
    if (storage) storage->die();
    storage.reset();
  }
  void reboot() {
    stop();
    disk.power_lost();
    sent.clear();
    boot();
  }
  void settle() { loop.run_for(20ms); }
  // Its log says the same in fewer records. False: it does not.
  bool compact() {
    bool done = false;
    const Status begun = authority->compact([&](const Status& status) { done = status.ok(); });
    settle();
    return begun.ok() && done;
  }

  // ---- AuthorityPort ----
  void send(const PeerId& peer, Message message) override {
    // Nothing about a decision leaves before its record is durable.
    if (const auto* open = std::get_if<RoundOpen>(&message)) check_durable_open(*open);
    if (const auto* commit = std::get_if<RoundCommit>(&message)) check_durable_commit(*commit);
    sent.emplace_back(peer, std::move(message));
  }
  std::vector<std::uint8_t> sign(ByteView body) override {
    const Signature signature = key.sign(body);
    return {signature.begin(), signature.end()};
  }
  void fence(const Session& session) override { fenced.insert(session); }
  std::string other_host(const PeerId&) const override { return host; }
  void on_members(const MemberList& list) override {
    EXPECT_GE(list.epoch, newest_epoch);
    newest_epoch = list.epoch;
  }
  void on_round_commit(const RoundCommit& commit) override { commits.push_back(commit); }
  void on_round_abandoned(const RoundAbandon& abandon) override { abandons.push_back(abandon); }
  void on_restored(const RoundCommit& commit, const RecentCommits::TakenBack&) override { restored.push_back(commit); }
  std::optional<std::string> unfit_for_round(StageId, const Session&,
                                             const std::vector<std::uint64_t>& serials) const override {
    const auto at = std::find_if(serials.begin(), serials.end(), [&](std::uint64_t s) { return invented.contains(s); });
    if (at == serials.end()) return std::nullopt;
    return "entry " + std::to_string(*at) + ", which the trainer never committed";
  }
  Version settled(StageId) const override { return trainer_settled; }
  std::uint64_t paths_logged() const override { return trainer_paths; }
  void on_session_over(const Session& session, StageId, const std::string& why) override {
    over.emplace_back(session, why);
  }
  void on_slow_log(Duration waited) override { slow_log.push_back(waited); }
  void on_log_failure(const Error& error) override { log_error = error.message; }
  void write(const EventRecord& event) override { events.push_back(event); }

  LogContent durable_log() {
    const auto bytes = disk.durable_content(kLogPath);
    return bytes ? parse_log(*bytes).value() : LogContent{};
  }
  void check_durable_open(const RoundOpen& open) {
    for (const LogRecord& record : durable_log().records)
      if (const auto* logged = std::get_if<LogOpen>(&record);
          logged && logged->open.round == open.round && logged->open.stage == open.stage)
        return;
    ADD_FAILURE() << "RoundOpen " << open.round << " left before it was durable";
  }
  void check_durable_commit(const RoundCommit& commit) {
    for (const LogRecord& record : durable_log().records)
      if (const auto* logged = std::get_if<LogCommit>(&record); logged && logged->commit.round == commit.round)
        return;
      else if (const auto* stage = std::get_if<LogStage>(&record);
               stage && stage->last_commit && stage->last_commit->round == commit.round)
        return;
    ADD_FAILURE() << "RoundCommit " << commit.round << " left before it was durable";
  }

  // ---- peers ----
  static Remote remote(std::uint64_t n) { return {peer_of(n), session_of(n), PeerRole::kPeer}; }
  void join(std::uint64_t n, JoinRequest request = {}) {
    authority->on_link_up(remote(n));
    authority->on_message(remote(n), request);
    settle();
  }
  Beat beat_of(std::uint64_t version = 0, std::uint64_t settled = 0, StageId stage = StageId(0)) {
    Beat beat;
    beat.stage = stage;
    beat.version = Version(version);
    beat.serving = true;
    beat.settled_targets = settled;
    return beat;
  }
  void beat(std::uint64_t n, std::uint64_t version = 0, std::uint64_t settled = 0, StageId stage = StageId(0)) {
    authority->on_message(remote(n), beat_of(version, settled, stage));
    settle();
  }
  void join_and_serve(std::uint64_t n) {
    join(n);
    beat(n);
  }
  void boot_with(std::uint64_t members) {
    boot();
    for (std::uint64_t n = 1; n <= members; ++n) join_and_serve(n);
  }
  void contribute(std::uint64_t n, std::uint64_t round, std::vector<std::uint64_t> entries) {
    RoundReport report;
    report.round = RoundId(round);
    report.weight = n;
    report.tag = 10 * n;
    report.entries = std::move(entries);
    authority->on_message(remote(n), report);
  }
  void agree(std::uint64_t n, std::uint64_t round, std::uint8_t digest, std::uint64_t weight, CountTag tag) {
    RoundReport report;
    report.round = RoundId(round);
    report.kind = ReportKind::kAgreed;
    report.digest = digest_number(digest);
    report.weight = weight;
    report.tag = tag;
    authority->on_message(remote(n), report);
  }
  // Members 1..n have enough settled for round 1, and bring an entry each; then they agree.
  void contribute_all(std::uint64_t members) {
    beat(1, 0, 300);
    for (std::uint64_t n = 1; n <= members; ++n) contribute(n, 1, {n});
  }
  void commit_first(std::uint64_t members) {
    contribute_all(members);
    const std::uint64_t weight = members * (members + 1) / 2;
    for (std::uint64_t n = 1; n <= members; ++n) agree(n, 1, 7, weight, 10 * weight);
    settle();
  }
  void fail_round(std::uint64_t n, std::uint64_t round, std::optional<Session> silent, const std::string& reason,
                  ReportKind kind = ReportKind::kFailed) {
    RoundReport report;
    report.kind = kind;
    report.round = RoundId(round);
    report.silent = silent;
    report.reason = reason;
    authority->on_message(remote(n), report);
  }
  template <class T>
  std::vector<T> sent_to(std::uint64_t n) const {
    std::vector<T> messages;
    for (const auto& [peer, message] : sent)
      if (const T* of = std::get_if<T>(&message); of && peer == peer_of(n)) messages.push_back(*of);
    return messages;
  }
  std::vector<EventRecord> told(EventKind event) const {
    std::vector<EventRecord> lines;
    std::copy_if(events.begin(), events.end(), std::back_inserter(lines),
                 [&](const EventRecord& line) { return line.event == event; });
    return lines;
  }
  std::size_t members(StageId stage = StageId(0)) const {
    return authority->members().stages[stage.value].members.size();
  }
  // Members 1..n serve, beat until `until`, and have enough settled to open a round.
  void keep_alive(std::size_t n, Duration time, std::uint64_t version = 0) {
    for (const TimePoint end = loop.now() + time; loop.now() < end;) {
      for (std::uint64_t i = 1; i <= n; ++i) beat(i, version);
      loop.run_for(980ms - 20ms * static_cast<int>(n));
    }
  }

  SimLoop loop;
  EventLoop* process = &loop;  // the authority's
  SimDisk disk;
  KeyPair key;
  AuthorityOptions options;
  std::unique_ptr<SimStorage> storage;
  std::unique_ptr<Authority> authority;
  std::vector<std::pair<PeerId, Message>> sent;
  std::set<Session> fenced;
  std::set<std::uint64_t> invented;  // serials of nobody's committed entries
  std::vector<RoundCommit> commits, restored;
  std::vector<RoundAbandon> abandons;
  std::vector<std::pair<Session, std::string>> over;
  std::vector<EventRecord> events;
  std::string log_error;
  std::string host;         // that everybody's connection comes from; empty: not known
  Version trainer_settled;  // what the trainer's log says durably, of every stage
  std::uint64_t trainer_paths = 0;
  std::vector<Duration> slow_log;
  Epoch newest_epoch;
};

}  // namespace shoal::test
