// More connections than the process has descriptors for: of those who say nothing, and of those who are no members.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <vector>

#include "common/os/descriptors.h"
#include "tests/transport/raw_curve.h"
#include "tests/transport/zmq_lab.h"
#include "transport/limits.h"
#include "transport/zmq/connection_bounds.h"
#include "transport/zmq/lane_greeting.h"

namespace shoal {
namespace {

// While it lives this process may have so many descriptors open.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t soft) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few = {soft, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

constexpr rlim_t kFew = 400;

class ZmqCrowdTest : public testing::Test {
 protected:
  HostPort control() { return *parse_host_port(lab.address(1)); }
  std::uint64_t refused(Refusal cause) { return lab.wire(1).refusals()[static_cast<std::size_t>(cause)]; }
  bool is_served(int index) {
    lab.wire(index).set_listener(&log[index]);
    (void)lab.wire(index).connect(lab.peer(1), lab.address(1));
    return lab.run_until([&] { return log[index].ups.size() == 1; }, 10s);
  }
  // Of a key of its own, greeted on its control lane alone.
  std::unique_ptr<RawCurve> stranger(int number) {
    std::array<std::uint8_t, 32> seed{};
    seed.fill(static_cast<std::uint8_t>(number));
    seed[0] = 200;
    const KeyPair key = KeyPair::from_seed(seed);
    auto raw = std::make_unique<RawCurve>(control());
    EXPECT_TRUE(raw->ok() && raw->exchange_keys(key, *curve_public_of(lab.peer(1))));
    EXPECT_TRUE(raw->send_part(pack_lane_greeting({Lane::kControl, key.id(), {1}}), false));
    return raw;
  }

  ZmqLab lab;
  WireLog log[3];
};

TEST(ConnectionBoundsTest, StrangersNeverGetAllDescriptors) {
  for (const std::uint64_t descriptors : {16u, 256u, 1024u, 4096u, 65536u, 1u << 30}) {
    const ConnectionBounds bounds = connection_bounds(descriptors);
    EXPECT_LT(bounds.descriptors, descriptors);
    EXPECT_LT(2 * bounds.accepted, bounds.descriptors) << "dials have a part";
    EXPECT_GE(bounds.ungreeted, 1u);
    EXPECT_GE(bounds.strangers, 1u);
    EXPECT_LE(bounds.ungreeted_per_address, bounds.ungreeted);
    EXPECT_LE(bounds.strangers_per_address, bounds.strangers);
    if (descriptors >= 256) {
      EXPECT_LT(bounds.ungreeted + bounds.strangers, bounds.accepted) << "members have a part";
    }
  }
  const ConnectionBounds many = connection_bounds(1u << 20);
  EXPECT_EQ(many.accepted, limits::kAcceptedMax);
  EXPECT_EQ(many.ungreeted_per_address, limits::kUngreetedPerAddressMax);
  EXPECT_EQ(many.strangers, limits::kStrangersMax);
}

TEST_F(ZmqCrowdTest, ADialWithoutADescriptorFailsAndTheNextOneDoesNot) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs a descriptor, to see what memory may be read";
#endif
  lab.wire(1).set_listener(&log[1]);
  lab.wire(0).set_listener(&log[0]);
  {
    const FewDescriptors none(3);  // what is open stays open
    (void)lab.wire(0).connect(lab.peer(1), lab.address(1));
    ASSERT_TRUE(lab.run_until([&] { return log[0].downs.size() == 1; }, 10s));
  }
  EXPECT_EQ(log[0].downs[0].cause.code, ErrorCode::kUnreachable);
  EXPECT_NE(log[0].downs[0].cause.message.find("HINT"), std::string::npos) << log[0].downs[0].cause.message;
  EXPECT_TRUE(is_served(0));
}

TEST_F(ZmqCrowdTest, IdleConnectionsAreBoundedAndKeepNobodyOut) {
  const FewDescriptors few(kFew);
  lab.wire(1).set_listener(&log[1]);
  const std::size_t bound = connection_bounds(kFew).ungreeted_per_address;
  std::vector<std::unique_ptr<RawCurve>> idle;
  for (std::size_t i = 0; i < 3 * bound; ++i) idle.push_back(std::make_unique<RawCurve>(control()));
  ASSERT_TRUE(lab.run_until([&] { return refused(Refusal::kCrowd) >= 2 * bound; }, 10s)) << refused(Refusal::kCrowd);
  EXPECT_TRUE(idle.front()->closed_within(5s)) << "who stands longest goes first";
  EXPECT_TRUE(is_served(2));
}

// Each of them is gone before the next one comes; what stands is of no matter.
TEST_F(ZmqCrowdTest, AnAddressThatConnectsWithoutEndIsCutBeforeTheExchangeOfKeys) {
  lab.wire(1).set_listener(&log[1]);
  ASSERT_TRUE(is_served(2));
  int tried = 0;
  while (refused(Refusal::kCrowd) == 0 && tried++ < 20'000) (void)RawCurve(control());
  EXPECT_GE(tried, static_cast<int>(limits::kAcceptedPerAddressBurst) / 2);
  EXPECT_GE(refused(Refusal::kCrowd), 1u) << "of " << tried;
  EXPECT_TRUE(log[2].downs.empty()) << "what stands stays";
  lab.wire(0).set_listener(&log[0]);
  for (int dials = 0; dials < 200 && log[0].ups.empty(); ++dials) {
    (void)lab.wire(0).connect(lab.peer(1), lab.address(1));
    const std::size_t ends = log[0].downs.size();
    (void)lab.run_until([&] { return !log[0].ups.empty() || log[0].downs.size() > ends; }, 10s);
    (void)lab.run_until([&] { return !log[0].ups.empty(); }, 100ms);
  }
  EXPECT_EQ(log[0].ups.size(), 1u) << "who dials again, in his turn, is let in behind the flood";
}

TEST_F(ZmqCrowdTest, WhoExchangesKeysAndNeverGreetsIsCutOff) {
  lab.wire(1).set_listener(&log[1]);
  RawCurve raw(control());
  ASSERT_TRUE(raw.ok() && raw.exchange_keys(KeyPair::generate(), *curve_public_of(lab.peer(1))));
  EXPECT_TRUE(raw.closed_within(2 * limits::kGreetingTime));
  EXPECT_EQ(refused(Refusal::kGreeting), 1u);
}

TEST_F(ZmqCrowdTest, StrangersPushOutStrangersAndNoMember) {
  const FewDescriptors few(kFew);
  lab.wire(1).set_listener(&log[1]);
  lab.wire(1).favour({lab.peer(2)});
  ASSERT_TRUE(is_served(2));
  ASSERT_TRUE(is_served(0)) << "a stranger, and the one that stands longest";
  const std::size_t bound = connection_bounds(kFew).strangers_per_address;
  std::vector<std::unique_ptr<RawCurve>> flood;
  for (std::size_t i = 0; i < bound + 8; ++i) flood.push_back(stranger(static_cast<int>(i)));
  ASSERT_TRUE(lab.run_until([&] { return !log[0].downs.empty() && !log[1].downs.empty(); }, 10s));
  EXPECT_GE(refused(Refusal::kCrowd), 1u);
  EXPECT_TRUE(log[2].downs.empty());
  ASSERT_EQ(log[1].downs.size(), 1u);
  EXPECT_EQ(log[1].downs[0].cause.code, ErrorCode::kRefused);
}

// A process that goes on with a run knows its members before anybody tells it a list.
TEST_F(ZmqCrowdTest, WhoIsFavouredFromTheStartIsPushedOutByNobody) {
  const FewDescriptors few(kFew);
  lab.favour_from_start(1, {lab.peer(2)});
  lab.wire(1).set_listener(&log[1]);
  ASSERT_TRUE(is_served(2));
  ASSERT_TRUE(is_served(0)) << "a stranger, which stands behind the member";
  const std::size_t bound = connection_bounds(kFew).strangers_per_address;
  std::vector<std::unique_ptr<RawCurve>> flood;
  for (std::size_t i = 0; i < bound + 8; ++i) flood.push_back(stranger(static_cast<int>(i)));
  ASSERT_TRUE(lab.run_until([&] { return !log[0].downs.empty(); }, 10s));
  EXPECT_TRUE(log[2].downs.empty());
}

TEST_F(ZmqCrowdTest, WhoIsNoMemberAnyMoreIsAStrangerAgain) {
  const FewDescriptors few(kFew);
  lab.wire(1).set_listener(&log[1]);
  lab.wire(1).favour({lab.peer(0), lab.peer(2)});
  ASSERT_TRUE(is_served(2));
  lab.wire(1).favour({lab.peer(0)});
  const std::size_t bound = connection_bounds(kFew).strangers_per_address;
  std::vector<std::unique_ptr<RawCurve>> flood;
  for (std::size_t i = 0; i < bound + 8; ++i) flood.push_back(stranger(static_cast<int>(i)));
  EXPECT_TRUE(lab.run_until([&] { return log[2].downs.size() == 1; }, 10s));
}

}  // namespace
}  // namespace shoal
