#pragma once
// A fixture whose tests log errors alone: Quiet<testing::Test>, Quiet<testing::TestWithParam<...>>.
#include "common/log.h"

namespace shoal {

template <class Fixture>
class Quiet : public Fixture {
 protected:
  void SetUp() override { set_log_level(LogLevel::kError); }
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

}  // namespace shoal
