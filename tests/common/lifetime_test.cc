#include "common/lifetime.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

namespace shoal {
namespace {

TEST(LifetimeTest, AGuardedCallbackRunsWithItsArgumentsWhileTheLifetimeLasts) {
  const Lifetime lifetime;
  std::string heard;
  const std::function<void(std::unique_ptr<int>, const std::string&)> tell = lifetime.guard(
      [&](std::unique_ptr<int> number, const std::string& word) { heard = word + std::to_string(*number); });
  tell(std::make_unique<int>(7), "seven ");
  EXPECT_EQ(heard, "seven 7");
}

TEST(LifetimeTest, ItDoesNothingOnceTheOwnerIsGone) {
  int calls = 0;
  std::optional<Lifetime> lifetime(std::in_place);
  const std::function<void()> count = lifetime->guard([&] { ++calls; });
  const std::function<void()> copy = count;
  count();
  lifetime.reset();
  count();
  copy();
  EXPECT_EQ(calls, 1);
}

TEST(LifetimeTest, EndIsForGoodAndHoldsForCallbacksThatAreMadeLater) {
  int calls = 0;
  Lifetime lifetime;
  EXPECT_FALSE(lifetime.over());
  const std::function<void()> before = lifetime.guard([&] { ++calls; });
  lifetime.end();
  lifetime.end();
  const std::function<void()> after = lifetime.guard([&] { ++calls; });
  before();
  after();
  EXPECT_TRUE(lifetime.over());
  EXPECT_EQ(calls, 0);
}

TEST(LifetimeTest, ACallbackMayEndTheLifetimeThatGuardsIt) {
  struct Owner {
    Lifetime lifetime;
  };
  int calls = 0;
  auto owner = std::make_unique<Owner>();
  const std::function<void()> last = owner->lifetime.guard([&owner, &calls] {
    owner.reset();
    ++calls;
  });
  const Lifetime::Watch watch = owner->lifetime.watch();
  EXPECT_FALSE(watch.over());
  last();
  EXPECT_TRUE(watch.over());
  last();
  EXPECT_EQ(calls, 1);
}

TEST(LifetimeTest, OneOwnersEndIsNotAnothers) {
  int calls = 0;
  Lifetime session;
  const Lifetime object;
  const std::function<void()> of_session = session.guard([&] { ++calls; });
  const std::function<void()> of_object = object.guard([&] { calls += 10; });
  session.end();
  of_session();
  of_object();
  EXPECT_EQ(calls, 10);
}

}  // namespace
}  // namespace shoal
