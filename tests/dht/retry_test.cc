// Look-ups over an access that answers when it is told to.
#include <gtest/gtest.h>

#include "dht/dht_directory.h"
#include "sim/sim_loop.h"
#include "tests/dht/records.h"

namespace shoal {
namespace {

// Remembers what it was asked; the test answers.
class ScriptedAccess final : public DhtAccess {
 public:
  explicit ScriptedAccess(std::vector<std::uint64_t>& gets) : gets_(gets) {}
  void set_listener(Listener* listener) override { listener_ = listener; }
  void put(const std::string&, std::uint64_t, std::uint16_t, const std::string&) override {}
  void withdraw(const std::string&, std::uint64_t) override {}
  void get(std::uint64_t tag, const std::string&) override { gets_.push_back(tag); }
  void bootstrap(const std::string&) override {}
  bool alive() const override { return true; }
  Listener& listener() { return *listener_; }

 private:
  Listener* listener_ = nullptr;
  std::vector<std::uint64_t>& gets_;
};

class RetryTest : public ::testing::Test {
 protected:
  RetryTest() {
    auto access = std::make_unique<ScriptedAccess>(gets_);
    access_ = access.get();
    DhtDirectoryOptions options;
    options.run = run_of(run_);
    directory_ = std::make_unique<DhtDirectory>(loop_, std::move(access), nullptr, std::move(options));
    listener().on_dht_up(1);
  }
  DhtAccess::Listener& listener() { return access_->listener(); }

  const KeyPair run_ = key_of_number(1);
  SimLoop loop_{kTestWall};
  std::vector<std::uint64_t> gets_;
  ScriptedAccess* access_ = nullptr;
  std::unique_ptr<DhtDirectory> directory_;
};

// The question of before the outage had its pause pending when the one of after it was answered.
TEST_F(RetryTest, APauseOfBeforeAnOutageDoesNotOutliveItsLookUp) {
  bool answered = false;
  directory_->look_up_stage(StageId(0), 2s, [&](std::vector<PeerRecord>) { answered = true; });
  ASSERT_EQ(gets_.size(), 1u);
  listener().on_dht_done(gets_[0]);  // empty: asked again in a while
  loop_.run_for(100ms);
  listener().on_dht_down(make_error(ErrorCode::kUnreachable, "test"));
  listener().on_dht_up(1);  // asked at once
  ASSERT_EQ(gets_.size(), 2u);
  listener().on_dht_done(gets_[1]);
  loop_.run_for(450ms);
  EXPECT_EQ(gets_.size(), 2u) << "the pause begins with the newest answer";
  loop_.run_for(100ms);
  ASSERT_EQ(gets_.size(), 3u);
  DhtStatus joined;
  joined.good_nodes = 1;
  listener().on_dht_status(joined);
  listener().on_dht_done(gets_[2]);
  loop_.run_for(600ms);
  ASSERT_EQ(gets_.size(), 4u);
  listener().on_dht_done(gets_[3]);  // the second empty one of a DHT that is joined is believed
  EXPECT_TRUE(answered);
  loop_.run_for(5s);
  EXPECT_EQ(gets_.size(), 4u);
}

}  // namespace
}  // namespace shoal
