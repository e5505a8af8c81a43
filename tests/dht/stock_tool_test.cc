// The stock command-line tool of OpenDHT reads the records that `inspect` shows, through no code of ours (docs/dht.md
// says how to get it).
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "dht/inspect.h"
#include "dht/spawned_child.h"
#include "tests/dht/real_rig.h"
#include "tests/dht/records.h"

namespace shoal {
namespace {

std::string find_dhtnode() {
  const char* given = std::getenv("SHOAL_DHTNODE");
  for (const std::string& path :
       {std::string(given != nullptr ? given : ""), std::string(SHOAL_SOURCE_DIR "/build/deps/dhtnode/usr/bin/dhtnode"),
        std::string("/usr/bin/dhtnode")})
    if (!path.empty() && access(path.c_str(), X_OK) == 0) return path;
  return {};
}

// Everything that the tool printed so far.
void read_more(const SpawnedChild& tool, std::string& output) {
  char bytes[4096];
  for (ssize_t size; (size = recv(tool.socket(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
    output.append(bytes, static_cast<std::size_t>(size));
}

TEST(StockToolTest, ShowsTheRecordsThatInspectShows) {
  const std::string dhtnode = find_dhtnode();
  if (dhtnode.empty()) GTEST_SKIP() << "no dhtnode (docs/dht.md says how to unpack it without installing)";
  const KeyPair run = key_of_number(1), ann = key_of_number(2), ben = key_of_number(3);
  const std::string key = stage_key(run_of(run), StageId(0));
  RealDirectoryRig rig;
  DhtDirectory& a = rig.make(run_of(run));
  DhtDirectory& b = rig.make(run_of(run));
  const std::string record_a = packed(peer_record(run, ann, 0, 1, rig.loop().wall()), ann);
  const std::string record_b = packed(peer_record(run, ben, 0, 1, rig.loop().wall()), ben);
  a.announce(record_a, key);
  b.announce(record_b, key);
  const std::string record_run = packed(run_record(run, 1, rig.loop().wall()), run);
  a.announce(record_run, run_key_name(run_of(run)));

  DhtDirectory& reader = rig.make(run_of(run));
  std::optional<RunReport> report;
  const TimePoint limit = rig.loop().now() + 30s;
  while ((!report || !report->record || report->stages.at(0).claims.size() < 2) && rig.loop().now() < limit) {
    report.reset();
    InspectOptions options;
    options.run = run_of(run);
    options.budget = 2s;
    inspect_run(reader, rig.loop(), options, [&](RunReport found) { report = std::move(found); });
    ASSERT_TRUE(rig.run_until([&] { return report.has_value(); }, 10s));
  }
  ASSERT_TRUE(report->record.has_value());
  ASSERT_EQ(report->stages.at(0).claims.size(), 2u);

  auto tool = SpawnedChild::spawn(
      {dhtnode, "-n", std::to_string(rig.network()), "-b", "127.0.0.1:" + std::to_string(rig.seed_port()), "-p", "0"});
  ASSERT_TRUE(tool.ok());
  std::string output;
  const auto shows_all = [&] {
    read_more(*tool, output);
    return output.find(record_a) != std::string::npos && output.find(record_b) != std::string::npos &&
           output.find(record_run) != std::string::npos;
  };
  const std::string question = "g " + key + "\ng " + run_key_name(run_of(run)) + "\n";
  bool shown = false;
  for (int i = 0; i < 20 && !shown; ++i) {
    ASSERT_GT(::send(tool->socket(), question.data(), question.size(), MSG_NOSIGNAL), 0);
    shown = rig.run_until(shows_all, 500ms);
  }
  EXPECT_TRUE(shown) << output;

  // The same figures, read from the tool's output by whoever has the documented format, and from inspect.
  for (const PeerRecord& peer : report->stages[0].claims) {
    const auto same = parse_peer_record(peer.peer == ann.id() ? record_a : record_b, run_of(run));
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(peer.whereabouts.addresses, same->whereabouts.addresses);
    EXPECT_EQ(peer.figures.rate, same->figures.rate);
    EXPECT_EQ(peer.version, same->version);
    EXPECT_EQ(peer.sequence, same->sequence);
  }
  tool->kill_now();
}

}  // namespace
}  // namespace shoal
